-- Guard for a table of facts that only migrations write: no statement changes it, INSERT included.
set local role durable_owner;

create or replace function durable.protect_read_only(target regclass)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    perform durable.check_guardable(protect_read_only.target);
    execute format(
        'create or replace trigger _100_read_only before insert or update or delete on %s for each row execute function durable.refuse_rewrite()',
        protect_read_only.target
    );
    execute format(
        'create or replace trigger _100_read_only_truncate before truncate on %s for each statement execute function durable.refuse_truncate()',
        protect_read_only.target
    );
    execute format('alter table %s enable always trigger _100_read_only', protect_read_only.target);
    execute format('alter table %s enable always trigger _100_read_only_truncate', protect_read_only.target);
end
$$;

comment on function durable.protect_read_only(regclass) is
'Refuses INSERT, UPDATE, DELETE and TRUNCATE of the table (23W01) for every role. Idempotent.';

revoke all on function durable.protect_read_only(regclass) from public;
