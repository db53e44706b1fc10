-- Puts one row trigger over several columns on a table, and adds columns to it when it is there already: calling a
-- guard again never takes a column away. AFTER, so that no other trigger can change the row behind the guard's back;
-- the comparison stands in WHEN, so that a statement that keeps the rule calls no function.
set local role durable_owner;

create or replace function durable.put_column_guard(
    target regclass, trigger_name text, refusal text, condition text, columns text[]
)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_columns text[];
begin
    perform durable.check_guardable(put_column_guard.target, put_column_guard.columns);

    -- tgargs is a list of strings, each ended by a zero byte; 'escape' shows that byte as a backslash and 000.
    select array_agg(convert_from(decode(given.name, 'escape'), 'UTF8') order by given.place)
    into v_columns
    from pg_trigger as t
    cross join unnest(string_to_array(encode(t.tgargs, 'escape'), chr(92) || '000')) with ordinality as given (name, place)
    where t.tgrelid = put_column_guard.target and t.tgname = put_column_guard.trigger_name and given.name <> '';
    v_columns := coalesce(v_columns, '{}');

    select v_columns || coalesce(array_agg(distinct added.name), '{}')
    into v_columns
    from unnest(put_column_guard.columns) as added (name)
    where added.name <> all (v_columns);

    -- An own table has no other row trigger that could change the row, so its guards need only look at statements that
    -- name a guarded column: Postgres plans the WHEN of every trigger that a statement meets.
    execute format(
        'create or replace trigger %I after update %s on %s for each row when (%s) execute function durable.%I(%s)',
        put_column_guard.trigger_name,
        case
            when exists (
                select from pg_class as c
                where c.oid = put_column_guard.target and c.relnamespace = 'durable'::regnamespace
            ) then (select 'of ' || string_agg(quote_ident(c.name), ', ') from unnest(v_columns) as c (name))
        end,
        put_column_guard.target,
        (select string_agg(replace(put_column_guard.condition, '@', quote_ident(c.name)), ' or ') from unnest(v_columns) as c (name)),
        put_column_guard.refusal,
        (select string_agg(quote_literal(c.name), ', ') from unnest(v_columns) as c (name))
    );
    execute format('alter table %s enable always trigger %I', put_column_guard.target, put_column_guard.trigger_name);
exception
    when undefined_function then
        raise exception using
            errcode = '42W06',
            message = format('a column of %s can''t be compared: %s', put_column_guard.target, array_to_string(put_column_guard.columns, ', ')),
            detail = sqlerrm,
            hint = 'The guard needs a type with equality; use jsonb instead of json.',
            schema = 'durable';
end
$$;

comment on function durable.put_column_guard(regclass, text, text, text, text[]) is
'For the protect_ functions: creates or widens a row trigger whose WHEN joins a condition for each column, written with @ for the column. Raises 42W06.';

revoke all on function durable.put_column_guard(regclass, text, text, text, text[]) from public;
