-- Calls a run off, even under a live lease: its holder is refused from then on. For the app (its user's runs) and for
-- operators (their tenant's, with an audit row); which of the two is decided by the role that calls, and each half
-- checks for itself.
set local role durable_owner;

create or replace function durable.cancel_run(me text default null, run_uid uuid default null, reason text default null)
returns durable.run_outcome
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    perform durable.check_me(cancel_run.me);
    if pg_has_role(current_user, 'durable_operator', 'USAGE') then
        return durable.cancel_tenant_run(cancel_run.run_uid, cancel_run.reason);
    end if;
    return durable.cancel_own_run(cancel_run.run_uid, cancel_run.reason);
end
$$;

comment on function durable.cancel_run is
'Settles a run as cancelled, with {"reason": reason} as its error; outcome settled, or already_settled when it was cancelled before. An operator''s leaves an audit row. Raises 22W03, 42W01, 42W02, 42W05, 55W03 (it has another outcome), 55W05.';

revoke all on function durable.cancel_run from public;
grant execute on function durable.cancel_run to durable_app, durable_operator;

set local role durable_engine;

-- cancel_run for the app: runs of its tenant and user.
create or replace function durable.cancel_own_run(run_uid uuid, reason text)
returns durable.run_outcome
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return durable.cancel_open_run(cancel_own_run.run_uid, cancel_own_run.reason);
end
$$;

comment on function durable.cancel_own_run is 'What cancel_run does for an app; see there.';

revoke all on function durable.cancel_own_run from public;
grant execute on function durable.cancel_own_run to durable_app;

set local role durable_steward;

-- cancel_run for operators: runs of their tenant. Leaves an audit row in the same transaction.
create or replace function durable.cancel_tenant_run(run_uid uuid, reason text)
returns durable.run_outcome
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_outcome durable.run_outcome := durable.cancel_open_run(cancel_tenant_run.run_uid, cancel_tenant_run.reason);
begin
    if v_outcome.outcome = 'settled' then
        insert into durable.audit_log (tenant_id, acted_by, action, subject_kind, subject_uid, reason)
        values (
            durable.current_tenant(), durable.current_user_id(), 'cancel_run', 'run', v_outcome.run_uid,
            cancel_tenant_run.reason
        );
    end if;
    return v_outcome;
end
$$;

comment on function durable.cancel_tenant_run is 'What cancel_run does for an operator; see there.';

revoke all on function durable.cancel_tenant_run from public;
grant execute on function durable.cancel_tenant_run to durable_operator;

set local role durable_owner;

-- Calls a run off, whoever holds it; its worker is refused from then on. For the functions behind cancel_run.
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

comment on function durable.cancel_open_run is
'The run, settled as cancelled with the reason as its error; already_settled when it was cancelled before. Raises 22W03, 42W05, 55W03, 55W05.';

revoke all on function durable.cancel_open_run from public;
grant execute on function durable.cancel_open_run to durable_engine, durable_steward;
