-- Trigger function: refuses the statement, whoever runs it. Behind the guards that let recorded rows be.
set local role durable_owner;

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

comment on function durable.refuse_rewrite() is 'Row trigger that raises 23W01.';

revoke all on function durable.refuse_rewrite() from public;
