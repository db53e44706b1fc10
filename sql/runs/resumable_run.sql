-- What list_resumable returns: where a run is and whose, nothing that anybody said.
set local role durable_owner;

create type durable.resumable_run as (
    tenant_id durable.identifier,
    user_id durable.identifier,
    app_name durable.identifier,
    session_uid uuid,
    run_uid uuid,
    invocation_id durable.identifier,
    status text,
    attempt durable.counter,
    since timestamptz,
    unverified durable.counter
);

comment on type durable.resumable_run is
'A run that nobody executes. since: when its lease was over or given back; unverified: how many of its effects somebody has to look into first.';

grant usage on type durable.resumable_run to durable_janitor;
