-- The runs that the caller may see, newest first: an app its user's own, an operator its tenant's.
set local role durable_owner;

create or replace function durable.list_runs(me text default null, session_uid uuid default null)
returns setof durable.run_row
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform durable.check_me(list_runs.me);
    return query
    select
        r.run_uid, r.session_uid, r.user_id, r.invocation_id, r.generation, r.trigger, durable.unescape_json(r.input),
        r.status, r.attempt, r.max_attempts, r.lease_holder, r.lease_expires_at, durable.unescape_json(r.interrupted_with),
        r.tools_executed, durable.unescape_json(r.result), durable.unescape_json(r.error), r.started_at, r.settled_at
    from durable.runs as r
    where r.tenant_id = durable.current_tenant()
        and (list_runs.session_uid is null or r.session_uid = list_runs.session_uid)
    order by r.started_at desc, r.run_uid desc;
end
$$;

comment on function durable.list_runs is
'Runs, of one session or of all, under the caller''s own row policies. Raises 42W01, 42W02.';

revoke all on function durable.list_runs from public;
grant execute on function durable.list_runs to durable_app, durable_operator;
