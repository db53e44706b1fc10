-- Says why an event can't follow what is recorded: the caller is behind, the run is settled, or its attempt does not
-- hold it.
set local role durable_engine;

create or replace function durable.refuse_append(
    event durable.events, session durable.sessions, run durable.runs, expected_revision integer, attempt integer
)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if run.settled_at is not null then
        perform durable.refuse_attempt(run, refuse_append.attempt);
    end if;
    if refuse_append.attempt is not null and event.invocation_id is null then
        raise exception using
            errcode = '22W03',
            message = 'attempt is given and invocation_id is not',
            hint = 'An attempt is one of an invocation''s run: pass its invocation_id too, or the event belongs to no run.',
            schema = 'durable',
            column = 'invocation_id';
    end if;
    if refuse_append.attempt is not null and run.run_uid is null then
        raise exception using
            errcode = '55W04',
            message = format('attempt %s is not the current one of invocation %L', refuse_append.attempt, event.invocation_id),
            detail = 'the invocation has no run',
            hint = 'Stop this worker: nothing was started under this name. Check the invocation_id.',
            schema = 'durable',
            table = 'runs';
    elsif refuse_append.attempt is not null or (run.run_uid is not null and event.author <> 'user') then
        if durable.holds_run(run, refuse_append.attempt) is not true then
            perform durable.refuse_attempt(run, refuse_append.attempt);
        end if;
    end if;
    raise exception using
        errcode = '55W02',
        message = format('session %s has moved on', session.session_uid),
        detail = format('expected revision %s, current revision %s', refuse_append.expected_revision, session.revision),
        hint = 'Read the events after the last seq you know, decide again, then append with the current revision.',
        schema = 'durable',
        table = 'sessions',
        column = 'revision';
end
$$;

comment on function durable.refuse_append(durable.events, durable.sessions, durable.runs, integer, integer) is
'Raises 22W03 for an attempt without an invocation, 55W03 for a settled run, 55W04 for an attempt that does not hold it or is missing, 55W02 for a stale revision.';

revoke all on function durable.refuse_append(durable.events, durable.sessions, durable.runs, integer, integer)
from public;
