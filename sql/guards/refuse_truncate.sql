-- Trigger function: refuses TRUNCATE, which no row trigger sees and row-level security does not stop.
set local role durable_owner;

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

comment on function durable.refuse_truncate() is 'Statement trigger that raises 23W01 on TRUNCATE.';

revoke all on function durable.refuse_truncate() from public;
