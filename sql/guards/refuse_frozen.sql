-- Trigger function behind protect_frozen: its WHEN has found a frozen column about to change; this names it.
set local role durable_owner;

create or replace function durable.refuse_frozen()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_old constant jsonb := to_jsonb(old);
    v_new constant jsonb := to_jsonb(new);
    v_column text;
begin
    foreach v_column in array tg_argv loop
        exit when v_old -> v_column <> v_new -> v_column;
    end loop;
    raise exception using
        errcode = '23W03',
        message = format('%I.%I.%I never changes after INSERT', tg_table_schema, tg_table_name, v_column),
        detail = format('stored: %s', coalesce(left(v_old ->> v_column, 500), 'NULL')),
        hint = 'Insert a new row under a new key.',
        schema = tg_table_schema,
        table = tg_table_name,
        column = v_column,
        constraint = tg_name;
end
$$;

comment on function durable.refuse_frozen() is 'Row trigger that raises 23W03 and names the column.';

revoke all on function durable.refuse_frozen() from public;
