-- cancel_run for operators: runs of their tenant. Leaves an audit row in the same transaction.
set local role durable_steward;

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

comment on function durable.cancel_tenant_run(uuid, text) is 'What cancel_run does for an operator; see there.';

revoke all on function durable.cancel_tenant_run(uuid, text) from public;
grant execute on function durable.cancel_tenant_run(uuid, text) to durable_operator;
