-- Guard for any table you own: rows may change where other guards let them, but none is removed, so that no key can
-- be deleted and taken again with another story. Calling it again changes nothing.
set local role durable_owner;

create or replace function durable.protect_rows(target regclass)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    perform durable.check_guardable(protect_rows.target);
    execute format(
        'create or replace trigger _100_rows_stay before delete on %s for each row execute function durable.refuse_rewrite()',
        protect_rows.target
    );
    execute format(
        'create or replace trigger _100_rows_stay_truncate before truncate on %s for each statement execute function durable.refuse_truncate()',
        protect_rows.target
    );
    execute format('alter table %s enable always trigger _100_rows_stay', protect_rows.target);
    execute format('alter table %s enable always trigger _100_rows_stay_truncate', protect_rows.target);
end
$$;

comment on function durable.protect_rows(regclass) is
'Refuses DELETE and TRUNCATE of the table (23W01) for every role. Idempotent. Raises 42W06 for what is not a table.';

revoke all on function durable.protect_rows(regclass) from public;
