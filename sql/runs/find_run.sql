-- A run by its uid, under the caller's own row policies; another user's is as absent as one that never was.
set local role durable_owner;

create or replace function durable.find_run(run_uid uuid)
returns durable.runs
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_run durable.runs;
begin
    select r.* into v_run from durable.runs as r where r.run_uid = find_run.run_uid;
    if not found then
        perform durable.refuse_run(find_run.run_uid);
    end if;
    return v_run;
end
$$;

comment on function durable.find_run(uuid) is
'The run. Raises 42W05 when the caller''s policies show none, 22W03 for NULL.';

revoke all on function durable.find_run(uuid) from public;
grant execute on function durable.find_run(uuid) to durable_app, durable_operator, durable_auditor;
