-- Trigger function behind protect_write_once: its WHEN has found a stored value about to change; this names it.
set local role durable_owner;

create or replace function durable.refuse_write_once()
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
        exit when v_old -> v_column <> 'null'::jsonb and v_old -> v_column <> v_new -> v_column;
    end loop;
    raise exception using
        errcode = '23W02',
        message = format('%I.%I.%I is written once and is written already', tg_table_schema, tg_table_name, v_column),
        detail = format('stored: %s; refused: %s', left(v_old ->> v_column, 500), coalesce(left(v_new ->> v_column, 500), 'NULL')),
        hint = 'Keep the stored value. Writing the same value again is accepted.',
        schema = tg_table_schema,
        table = tg_table_name,
        column = v_column,
        constraint = tg_name;
end
$$;

comment on function durable.refuse_write_once() is 'Row trigger that raises 23W02 and shows the stored value.';

revoke all on function durable.refuse_write_once() from public;
