-- Closes a session for good: hidden from lists, its name free again, later appends refused. What is recorded stays.
-- For the app. A repeat is told already_closed; a run that is still executing may yet settle.
set local role durable_engine;

create or replace function durable.close_session(
    me text default null,
    session_uid uuid default null,
    reason text default null
)
returns durable.session_row
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_session durable.sessions;
begin
    perform durable.check_me(close_session.me);
    if char_length(close_session.reason) > 2000 then
        perform durable.refuse_argument(
            'reason',
            format('reason has %s characters, the limit is 2000', char_length(close_session.reason)),
            'Say it shorter; it is shown with every refusal of the closed session.'
        );
    end if;
    v_session := durable.lock_session(close_session.session_uid, closed_too => true);
    if v_session.closed_at is not null then
        return durable.session_as_row(v_session, 'already_closed');
    end if;
    update durable.sessions as s
    set closed_at = clock_timestamp(), close_reason = close_session.reason, updated_at = clock_timestamp()
    where s.tenant_id = v_session.tenant_id and s.session_uid = v_session.session_uid
    returning s.* into strict v_session;
    return durable.session_as_row(v_session, 'closed');
end
$$;

comment on function durable.close_session is
'Closes the session; outcome closed, or already_closed with the first closing''s time. Raises 22W03, 42W01, 42W02, 42W04.';

revoke all on function durable.close_session from public;
grant execute on function durable.close_session to durable_app;
