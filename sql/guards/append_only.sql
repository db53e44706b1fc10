-- Guards for the rows of any table you own: never changed, never removed, or not written at all. For every role, the
-- owner included.
set local role durable_owner;

-- Guard for any table you own: rows can be added, never changed or removed, by anybody, TRUNCATE included.
-- Calling it again changes nothing.
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

comment on function durable.protect_append_only is
'Refuses UPDATE, DELETE and TRUNCATE of the table (23W01) for every role. Idempotent. Raises 42W06 for what is not a table.';

revoke all on function durable.protect_append_only from public;

-- Guard for any table you own: rows may change where other guards let them, but none is removed, so that no key can
-- be deleted and taken again with another story. Calling it again changes nothing.
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

comment on function durable.protect_rows is
'Refuses DELETE and TRUNCATE of the table (23W01) for every role. Idempotent. Raises 42W06 for what is not a table.';

revoke all on function durable.protect_rows from public;

-- Guard for a table of facts that only migrations write: no statement changes it, INSERT included.
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

comment on function durable.protect_read_only is
'Refuses INSERT, UPDATE, DELETE and TRUNCATE of the table (23W01) for every role. Idempotent.';

revoke all on function durable.protect_read_only from public;

-- Trigger function: refuses the statement, whoever runs it. Behind the guards that let recorded rows be.
create or replace function durable.refuse_rewrite()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using
        errcode = '23W01',
        message = format('%s of %I.%I is refused: its rows are recorded for good', tg_op, tg_table_schema, tg_table_name),
        detail = format('guard %s, for every role including the owner', tg_name),
        hint = 'Record a new row that says what changed.',
        schema = tg_table_schema,
        table = tg_table_name,
        constraint = tg_name;
end
$$;

comment on function durable.refuse_rewrite is 'Row trigger that raises 23W01.';

revoke all on function durable.refuse_rewrite from public;

-- Trigger function: refuses TRUNCATE, which no row trigger sees and row-level security does not stop.
create or replace function durable.refuse_truncate()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using
        errcode = '23W01',
        message = format('TRUNCATE of %I.%I is refused: its rows are recorded for good', tg_table_schema, tg_table_name),
        detail = format('guard %s, for every role including the owner', tg_name),
        hint = 'Nothing empties this table; remove single rows only where the table has a documented way.',
        schema = tg_table_schema,
        table = tg_table_name,
        constraint = tg_name;
end
$$;

comment on function durable.refuse_truncate is 'Statement trigger that raises 23W01 on TRUNCATE.';

revoke all on function durable.refuse_truncate from public;
