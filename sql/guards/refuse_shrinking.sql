-- Trigger function behind protect_growing: its WHEN has found a counter about to become smaller; this names it.
set local role durable_owner;

create or replace function durable.refuse_shrinking()
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
        exit when v_new -> v_column < v_old -> v_column;
    end loop;
    raise exception using
        errcode = '23W12',
        message = format('%I.%I.%I only grows', tg_table_schema, tg_table_name, v_column),
        detail = format('stored: %s; refused: %s', v_old ->> v_column, v_new ->> v_column),
        hint = 'Whoever held an older number must never hold the current one again.',
        schema = tg_table_schema,
        table = tg_table_name,
        column = v_column,
        constraint = tg_name;
end
$$;

comment on function durable.refuse_shrinking() is 'Row trigger that raises 23W12 and shows both numbers.';

revoke all on function durable.refuse_shrinking() from public;
