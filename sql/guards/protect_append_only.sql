-- Guard for any table you own: rows can be added, never changed or removed, by anybody, TRUNCATE included.
-- Calling it again changes nothing.
set local role durable_owner;

create or replace function durable.protect_append_only(target regclass)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    perform durable.check_guardable(protect_append_only.target);
    execute format(
        'create or replace trigger _100_append_only before update or delete on %s for each row execute function durable.refuse_rewrite()',
        protect_append_only.target
    );
    execute format(
        'create or replace trigger _100_append_only_truncate before truncate on %s for each statement execute function durable.refuse_truncate()',
        protect_append_only.target
    );
    -- ALWAYS: session_replication_role = replica does not switch it off.
    execute format('alter table %s enable always trigger _100_append_only', protect_append_only.target);
    execute format('alter table %s enable always trigger _100_append_only_truncate', protect_append_only.target);
end
$$;

comment on function durable.protect_append_only(regclass) is
'Refuses UPDATE, DELETE and TRUNCATE of the table (23W01) for every role. Idempotent. Raises 42W06 for what is not a table.';

revoke all on function durable.protect_append_only(regclass) from public;
