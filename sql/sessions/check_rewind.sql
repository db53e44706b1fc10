-- A rewind must leave the runs alone that are not settled: what their workers still record would belong to another
-- generation, or to nobody. Called when the rewind is in the log and the session row is not updated yet.
set local role durable_engine;

create or replace function durable.check_rewind(session durable.sessions, rewind durable.events)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_session durable.sessions := check_rewind.session;
    v_running text;
begin
    -- As the session will be.
    v_session.last_seq := rewind.seq;
    v_session.rewinds := v_session.rewinds + 1;

    select r.invocation_id into v_running
    from durable.runs as r
    where r.tenant_id = rewind.tenant_id
        and r.session_uid = rewind.session_uid
        and r.settled_at is null
        and (
            r.generation <> durable.current_generation(v_session, r.invocation_id)
            or exists (
                select
                from durable.events as e
                where e.tenant_id = r.tenant_id
                    and e.session_uid = r.session_uid
                    and e.invocation_id = r.invocation_id
                    and e.generation = r.generation
                    and e.seq between rewind.rewind_to and rewind.seq - 1
            )
        )
    limit 1;
    if found then
        raise exception using
            errcode = '55W08',
            message = format('the rewind would take back invocation %L, whose run is not settled', v_running),
            detail = format('it reaches back to seq %s', rewind.rewind_to),
            hint = 'Settle that run first, or call it off with cancel_run; then rewind.',
            schema = 'durable',
            table = 'runs';
    end if;
end
$$;

comment on function durable.check_rewind(durable.sessions, durable.events) is
'Raises 55W08 when the rewind would take back events of a run that executes, or move its invocation to another generation.';

revoke all on function durable.check_rewind(durable.sessions, durable.events) from public;
