-- The app whose session a run belongs to; a closed session begins nothing new.
set local role durable_engine;

create or replace function durable.open_app_name(run durable.runs)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_session durable.sessions;
begin
    select s.* into v_session
    from durable.sessions as s
    where s.tenant_id = (run).tenant_id and s.session_uid = (run).session_uid;
    if v_session.closed_at is not null then
        perform durable.refuse_session((run).session_uid, v_session.closed_at, v_session.close_reason);
    end if;
    return v_session.app_name;
end
$$;

comment on function durable.open_app_name(durable.runs) is 'The app_name of the run''s session. Raises 55W01 for a closed one.';

revoke all on function durable.open_app_name(durable.runs) from public;
