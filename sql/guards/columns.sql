-- Guards for single columns of any table you own: written once, frozen, only growing. Each is one row trigger, whose
-- WHEN holds the comparison; the function behind it only says what was refused.
set local role durable_owner;

-- Puts one row trigger over several columns on a table, and adds columns to it when it is there already: calling a
-- guard again never takes a column away. AFTER, so that no other trigger can change the row behind the guard's back;
-- the comparison stands in WHEN, so that a statement that keeps the rule calls no function.
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

comment on function durable.put_column_guard is
'For the protect_ functions: creates or widens a row trigger whose WHEN joins a condition for each column, written with @ for the column. Raises 42W06.';

revoke all on function durable.put_column_guard from public;

-- Guard for any table you own: each named column goes from NULL to a value exactly once; the same value again is
-- accepted. Example: select durable.protect_write_once('public.agent_runs', 'tools_executed');
create or replace function durable.protect_write_once(target regclass, variadic columns text[])
returns void
language sql volatile
begin atomic
    select durable.put_column_guard(
        protect_write_once.target,
        '_200_write_once',
        'refuse_write_once',
        -- DISTINCT FROM NULL and not IS NOT NULL, which asks every field of a composite value.
        '(old.@ is distinct from null and old.@ is distinct from new.@)',
        protect_write_once.columns
    );
end;

comment on function durable.protect_write_once is
'Refuses to change a stored value of these columns (23W02) for every role; calling it again adds columns. Raises 42W06 for an unfit table or column.';

revoke all on function durable.protect_write_once from public;

-- Guard for any table you own: the named columns keep what INSERT gave them, NULL included.
create or replace function durable.protect_frozen(target regclass, variadic columns text[])
returns void
language sql volatile
begin atomic
    select durable.put_column_guard(
        protect_frozen.target,
        '_300_frozen',
        'refuse_frozen',
        '(old.@ is distinct from new.@)',
        protect_frozen.columns
    );
end;

comment on function durable.protect_frozen is
'Refuses to change these columns after INSERT (23W03) for every role; calling it again adds columns. Raises 42W06 for an unfit table or column.';

revoke all on function durable.protect_frozen from public;

-- Guard for any table you own: the named counters never become smaller, so that a number given out as a token is never
-- given out again.
create or replace function durable.protect_growing(target regclass, variadic columns text[])
returns void
language sql volatile
begin atomic
    select durable.put_column_guard(
        protect_growing.target,
        '_350_growing',
        'refuse_shrinking',
        '(new.@ < old.@)',
        protect_growing.columns
    );
end;

comment on function durable.protect_growing is
'Refuses to make these columns smaller (23W12) for every role; calling it again adds columns. Raises 42W06 for an unfit table or column.';

revoke all on function durable.protect_growing from public;

-- Trigger function behind protect_write_once: its WHEN has found a stored value about to change; this names it.
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

comment on function durable.refuse_write_once is 'Row trigger that raises 23W02 and shows the stored value.';

revoke all on function durable.refuse_write_once from public;

-- Trigger function behind protect_frozen: its WHEN has found a frozen column about to change; this names it.
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

comment on function durable.refuse_frozen is 'Row trigger that raises 23W03 and names the column.';

revoke all on function durable.refuse_frozen from public;

-- Trigger function behind protect_growing: its WHEN has found a counter about to become smaller; this names it.
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

comment on function durable.refuse_shrinking is 'Row trigger that raises 23W12 and shows both numbers.';

revoke all on function durable.refuse_shrinking from public;
