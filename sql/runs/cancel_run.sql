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
    if cancel_run.me is not null then
        perform durable.check_me(cancel_run.me);
    end if;
    if pg_has_role(current_user, 'durable_operator', 'USAGE') then
        return durable.cancel_tenant_run(cancel_run.run_uid, cancel_run.reason);
    end if;
    return durable.cancel_own_run(cancel_run.run_uid, cancel_run.reason);
end
$$;

comment on function durable.cancel_run(text, uuid, text) is
'Settles a run as cancelled, with {"reason": reason} as its error; outcome settled, or already_settled when it was cancelled before. An operator''s leaves an audit row. Raises 22W03, 42W01, 42W02, 42W05, 55W03 (it has another outcome), 55W05.';

revoke all on function durable.cancel_run(text, uuid, text) from public;
grant execute on function durable.cancel_run(text, uuid, text) to durable_app, durable_operator;
