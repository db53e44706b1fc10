-- A run as calls find it, refuse it and show it.
set local role durable_owner;

-- A run by its uid, under the caller's own row policies; another user's is as absent as one that never was.
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

comment on function durable.find_run is
'The run. Raises 42W05 when the caller''s policies show none, 22W03 for NULL.';

revoke all on function durable.find_run from public;
grant execute on function durable.find_run to durable_app, durable_operator, durable_auditor;

-- Raises the one answer to a run_uid that leads to no row: the same for a foreign run and for none.
create or replace function durable.refuse_run(run_uid uuid)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if refuse_run.run_uid is null then
        perform durable.refuse_argument(
            'run_uid',
            'run_uid is missing',
            'Pass the run_uid that start_run returned.'
        );
    end if;
    raise exception using
        errcode = '42W05',
        message = format('there is no run %s here', refuse_run.run_uid),
        hint = 'Check tenant and user of act_as, and use the run_uid that start_run returned to the same user.',
        schema = 'durable',
        table = 'runs';
end
$$;

comment on function durable.refuse_run is 'Raises 42W05, or 22W03 for NULL.';

revoke all on function durable.refuse_run from public;
grant execute on function durable.refuse_run to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;

-- A row of runs in the form that callers get it after a change. The attempt is the token of whoever executes the run:
-- a caller who was just told that it is another's gets none to go on with by mistake.
create or replace function durable.run_as_outcome(run durable.runs, outcome text)
returns durable.run_outcome
language sql stable
begin atomic
    select
        (run).run_uid,
        case when run_as_outcome.outcome not in ('busy', 'awaiting') then (run).attempt end,
        (run).status,
        run_as_outcome.outcome,
        (run).tools_executed,
        durable.unescape_json((run).result),
        durable.unescape_json((run).error),
        case when (run).status = 'running' then (run).lease_expires_at end;
end;

comment on function durable.run_as_outcome is
'A run as start_run, settle_run and their like return it; without its attempt when the outcome is busy or awaiting.';

revoke all on function durable.run_as_outcome from public;
grant execute on function durable.run_as_outcome to durable_engine, durable_steward;
