-- Calls a run off, whoever holds it; its worker is refused from then on. For the functions behind cancel_run.
set local role durable_owner;

create or replace function durable.cancel_open_run(run_uid uuid, reason text)
returns durable.run_outcome
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_run durable.runs;
    v_wanted durable.runs;
begin
    perform durable.check_isolation('cancel_run');
    v_wanted.status := 'cancelled';
    v_wanted.error := jsonb_build_object('reason', durable.check_reason(cancel_open_run.reason));
    v_run := durable.lock_run(cancel_open_run.run_uid);
    if v_run.status = 'cancelled' then
        return durable.run_as_outcome(v_run, 'already_settled');
    elsif v_run.settled_at is not null then
        perform durable.refuse_attempt(v_run, null);
    end if;
    return durable.settle_locked_run(v_run, v_wanted);
end
$$;

comment on function durable.cancel_open_run(uuid, text) is
'The run, settled as cancelled with the reason as its error; already_settled when it was cancelled before. Raises 22W03, 42W05, 55W03, 55W05.';

revoke all on function durable.cancel_open_run(uuid, text) from public;
grant execute on function durable.cancel_open_run(uuid, text) to durable_engine, durable_steward;
