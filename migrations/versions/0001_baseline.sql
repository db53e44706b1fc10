--! sql/schema.sql
-- The schema itself: who may look into it, and what new objects give to PUBLIC (nothing).
-- The bootstrap (roles.sql) has created it for durable_owner; this runs once, first, in the first revision.
set local role durable_owner;

do $encoding$
begin
    if current_setting('server_encoding') <> 'UTF8' then
        raise exception using
            errcode = '22W03',
            message = format('durable_pg needs a database in UTF8, this one is %s', current_setting('server_encoding')),
            detail = 'The reversible escape for NUL and lone surrogates, and every digest, are defined over UTF-8.',
            hint = 'Create the database with ENCODING ''UTF8'' TEMPLATE template0.',
            schema = 'durable';
    end if;
end
$encoding$;

comment on schema durable is
'durable_pg: what an AI-agent run did is recorded once, can''t be rewritten and is shown to its own tenant and user only. Objects belong to durable_owner, functions that write to back roles.';

revoke all on schema durable from public;
grant usage on schema durable to
durable_app, durable_operator, durable_maintainer, durable_auditor, durable_engine, durable_steward, durable_janitor;

-- Without IN SCHEMA: the per-schema form adds to the built-in default and can't take EXECUTE from PUBLIC.
alter default privileges revoke execute on functions from public;
alter default privileges revoke usage on types from public;
set local role durable_engine;
alter default privileges revoke execute on functions from public;
set local role durable_steward;
alter default privileges revoke execute on functions from public;
set local role durable_janitor;
alter default privileges revoke execute on functions from public;
set local role durable_owner;

-- Alembic makes the same table by itself when it gets here first.
create table if not exists durable.alembic_version (
    version_num varchar(32) not null,
    constraint alembic_version_pkc primary key (version_num)
);
comment on table durable.alembic_version is 'The revision this schema is at; written by the migration job only.';
grant select on durable.alembic_version to durable_auditor;
--! sql/schema_open.sql
-- Opens a migration: back roles may create their functions until schema_seal.sql. Part of every revision.
set local role durable_owner;

grant create on schema durable to durable_engine, durable_steward, durable_janitor;
--! sql/identity/is_identifier.sql
-- Says whether a caller's name may be stored: 1 to 512 characters, nothing blank or invisible at either end.
-- The domain identifier keeps the same test on every column that holds such a name.
set local role durable_owner;

create or replace function durable.is_identifier(value text)
returns boolean
language sql immutable parallel safe
return char_length(value) between 1 and 512
    and value = btrim(
        value,
        U&'\0020\0009\000a\000b\000c\000d\0085\00a0\1680\2000\2001\2002\2003\2004\2005\2006\2007\2008\2009\200a'
        '\2028\2029\202f\205f\3000'
        '\00ad\180e\200b\200c\200d\200e\200f\2060\2061\2062\2063\2064\2800\3164\feff\fffe'
        '\0001\0002\0003\0004\0005\0006\0007\0008\000e\000f\0010\0011\0012\0013\0014\0015\0016\0017\0018\0019'
        '\001a\001b\001c\001d\001e\001f\007f'
    );

comment on function durable.is_identifier(text) is
'True for 1 to 512 characters without white space, invisible or control characters at either end; NULL for NULL.';

revoke all on function durable.is_identifier(text) from public;
grant execute on function durable.is_identifier(text) to
durable_app, durable_operator, durable_engine, durable_steward, durable_janitor;
--! sql/identity/identifier.sql
-- The domains of the columns: what a value must be to be stored anywhere, whoever writes it. Domains and not CHECKs on
-- each table: a session plans a domain's condition once, a table's CHECKs are planned again for every statement.
set local role durable_owner;

create domain durable.identifier as text
constraint identifier_is_1_to_512_unpadded check (durable.is_identifier(value));

comment on domain durable.identifier is 'A caller''s own name for something: 1 to 512 characters without white space at its ends.';

grant usage on domain durable.identifier to durable_engine, durable_steward, durable_janitor;
--! sql/identity/counter.sql
-- Counters that drivers read are integer: some drivers turn bigint into strings.
set local role durable_owner;

create domain durable.counter as integer
constraint counter_is_not_negative check (value >= 0);

comment on domain durable.counter is 'A count or a place in an order, from 0.';

grant usage on domain durable.counter to durable_engine, durable_steward, durable_janitor;
--! sql/identity/refuse_identifier.sql
-- Raises 22W01 for a name that is_identifier refuses, and says which of the rules it breaks.
set local role durable_owner;

create or replace function durable.refuse_identifier(field text, value text)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_length constant integer := char_length(refuse_identifier.value);
    v_problem text;
begin
    v_problem := case
        when v_length is null then 'is missing'
        when v_length = 0 then 'is empty'
        when v_length > 512 then format('has %s characters, the limit is 512', v_length)
        when btrim(refuse_identifier.value) = '' then 'is blank'
        else 'begins or ends with white space or an invisible character'
    end;
    raise exception using
        errcode = '22W01',
        message = format('%s %s', refuse_identifier.field, v_problem),
        detail = format('field %s, limit 512 characters, length %s', refuse_identifier.field, coalesce(v_length::text, 'none')),
        hint = 'Give a name of 1 to 512 characters without white space at its ends; it is stored exactly as given.',
        schema = 'durable',
        column = refuse_identifier.field;
end
$$;

comment on function durable.refuse_identifier(text, text) is
'Raises 22W01 naming the field, the limit and the length. Call it when is_identifier is not true.';

revoke all on function durable.refuse_identifier(text, text) from public;
grant execute on function durable.refuse_identifier(text, text) to
durable_app, durable_operator, durable_engine, durable_steward, durable_janitor;
--! sql/identity/check_key_size.sql
-- Names that form one key together must fit an index entry, which Postgres limits to about 2,700 bytes.
-- Four names of 512 ASCII characters do; this refuses (22W01) the few that don't before an index raises a bare 54000.
set local role durable_owner;

create or replace function durable.check_key_size(fields text, variadic names text[])
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_bytes constant integer := octet_length(array_to_string(check_key_size.names, ''));
begin
    if v_bytes > 2600 then
        raise exception using
            errcode = '22W01',
            message = format('%s are too long together: %s bytes, the limit is 2600', check_key_size.fields, v_bytes),
            detail = format('field %s, limit 2600 bytes of UTF-8 in all, length %s', check_key_size.fields, v_bytes),
            hint = 'Use shorter names; 512 characters of ASCII each always fit.',
            schema = 'durable';
    end if;
end
$$;

comment on function durable.check_key_size(text, text[]) is
'Raises 22W01 when the names of one key exceed 2,600 bytes of UTF-8 together.';

revoke all on function durable.check_key_size(text, text[]) from public;
grant execute on function durable.check_key_size(text, text[]) to durable_engine, durable_steward;
--! sql/identity/identity_missing.sql
-- The loud half of current_tenant and current_user_id: reached only when the transaction carries no identity.
-- STABLE, so that a plan over an empty table meets it too.
set local role durable_owner;

create or replace function durable.identity_missing()
returns text
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using
        errcode = '42W01',
        message = 'no identity is set in this transaction',
        detail = 'Every read and write of durable_pg happens as one tenant and one user.',
        hint = 'Call durable.act_as(tenant_id, user_id) first in the same transaction, or pass me => durable.act_as(tenant_id, user_id).',
        schema = 'durable';
end
$$;

comment on function durable.identity_missing() is 'Raises 42W01; never returns.';

revoke all on function durable.identity_missing() from public;
grant execute on function durable.identity_missing() to
durable_app, durable_operator, durable_maintainer, durable_auditor, durable_engine, durable_steward, durable_janitor;
--! sql/identity/current_tenant.sql
-- The tenant this transaction acts as; raises 42W01 where there is none. Policies compare with it.
-- Plain SQL without SET: the planner inlines it, so it serves as an index condition.
set local role durable_owner;

create or replace function durable.current_tenant()
returns text
language sql stable parallel safe
return coalesce(nullif(current_setting('durable.tenant_id', true), ''), durable.identity_missing());

comment on function durable.current_tenant() is
'The tenant set by act_as for this transaction; raises 42W01 when no identity is set.';

revoke all on function durable.current_tenant() from public;
grant execute on function durable.current_tenant() to
durable_app, durable_operator, durable_maintainer, durable_auditor, durable_engine, durable_steward, durable_janitor;
--! sql/identity/current_user_id.sql
-- The user this transaction acts as; raises 42W01 where there is none. Policies compare with it.
-- Plain SQL without SET: the planner inlines it, so it serves as an index condition.
set local role durable_owner;

create or replace function durable.current_user_id()
returns text
language sql stable parallel safe
return coalesce(nullif(current_setting('durable.user_id', true), ''), durable.identity_missing());

comment on function durable.current_user_id() is
'The user set by act_as for this transaction; raises 42W01 when no identity is set.';

revoke all on function durable.current_user_id() from public;
grant execute on function durable.current_user_id() to
durable_app, durable_operator, durable_maintainer, durable_auditor, durable_engine, durable_steward, durable_janitor;
--! sql/identity/act_as.sql
-- Sets tenant and user for this transaction only, and returns what the me argument of every call takes.
-- For front roles that act as somebody. Refuses a bad name (22W01) and a second identity in one transaction (42W02).
set local role durable_owner;

create or replace function durable.act_as(tenant_id text, user_id text)
returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    -- An ended transaction leaves a setting behind as ''.
    v_tenant constant text := nullif(current_setting('durable.tenant_id', true), '');
    v_user constant text := nullif(current_setting('durable.user_id', true), '');
begin
    if durable.is_identifier(act_as.tenant_id) is not true then
        perform durable.refuse_identifier('tenant_id', act_as.tenant_id);
    end if;
    if durable.is_identifier(act_as.user_id) is not true then
        perform durable.refuse_identifier('user_id', act_as.user_id);
    end if;

    if v_tenant is null and v_user is null then
        -- SET LOCAL and not set_config: Citus forwards only the statement to its workers.
        execute format('set local durable.tenant_id = %L; set local durable.user_id = %L', act_as.tenant_id, act_as.user_id);
    elsif v_tenant is distinct from act_as.tenant_id or v_user is distinct from act_as.user_id then
        raise exception using
            errcode = '42W02',
            message = 'this transaction already acts as somebody else',
            detail = format('tenant %L, user %L; asked for tenant %L, user %L', v_tenant, v_user, act_as.tenant_id, act_as.user_id),
            hint = 'End the transaction first: one transaction acts as one tenant and one user.',
            schema = 'durable';
    end if;
    return jsonb_build_array(act_as.tenant_id, act_as.user_id)::text;
end
$$;

comment on function durable.act_as(text, text) is
'Makes this transaction act as one tenant and user; pass its result as me, or call it once and leave me out. Transaction-local: the next transaction of the connection has no identity. Raises 22W01, 42W02.';

revoke all on function durable.act_as(text, text) from public;
grant execute on function durable.act_as(text, text) to durable_app, durable_operator;
--! sql/identity/is_me.sql
-- Says whether a me argument is what act_as returned in this transaction.
set local role durable_owner;

create or replace function durable.is_me(me text)
returns boolean
language sql stable parallel safe
return me = jsonb_build_array(durable.current_tenant(), durable.current_user_id())::text;

comment on function durable.is_me(text) is 'True for the identity of this transaction in the form that act_as returns. Raises 42W01 without one.';

revoke all on function durable.is_me(text) from public;
grant execute on function durable.is_me(text) to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;
--! sql/identity/check_me.sql
-- The me argument is the result of act_as in this transaction. A text made by hand would be silently ignored,
-- and the call done as whoever the transaction acts as: refuse it (42W02).
set local role durable_owner;

create or replace function durable.check_me(me text)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if durable.is_me(check_me.me) is not true then
        raise exception using
            errcode = '42W02',
            message = 'me is not the identity of this transaction',
            detail = format('me is %L', left(check_me.me, 200)),
            hint = 'Pass me => durable.act_as(tenant_id, user_id), or leave me out.',
            schema = 'durable';
    end if;
end
$$;

comment on function durable.check_me(text) is 'Raises 42W02 unless me is what act_as returned in this transaction.';

revoke all on function durable.check_me(text) from public;
grant execute on function durable.check_me(text) to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;
--! sql/identity/refuse_owner.sql
-- The policy of durable_owner on every table: under FORCE ROW LEVEL SECURITY the owner would otherwise work on
-- no rows and be told that all went well. A backfill lifts FORCE and restores it in the same transaction. Compared with
-- tenant_id, because the planner then calls it: alone in a filter it would be reached by rows only, and not by all.
set local role durable_owner;

create or replace function durable.refuse_owner()
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using
        errcode = '42W03',
        message = 'durable_owner reads and writes no rows',
        detail = 'The owner changes the schema in migrations; rows belong to tenants and users.',
        hint = 'Read as a login in durable_auditor. In a revision, lift FORCE ROW LEVEL SECURITY, change the rows, restore it.',
        schema = 'durable';
end
$$;

comment on function durable.refuse_owner() is 'Raises 42W03; the owner''s row policy on every table.';

revoke all on function durable.refuse_owner() from public;
--! sql/identity/new_uid.sql
-- A new uid, ordered by time: random ones touch a new index page each and multiply the WAL after a checkpoint.
set local role durable_owner;

create or replace function durable.new_uid()
returns uuid
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_bytes bytea;
begin
    if current_setting('server_version_num')::integer >= 180000 then
        return uuidv7();
    end if;
    -- RFC 9562, version 7: 48 bits of milliseconds, then random bits around the version and the variant.
    v_bytes := overlay(
        uuid_send(gen_random_uuid())
        placing substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
        from 1 for 6
    );
    return encode(set_byte(v_bytes, 6, (get_byte(v_bytes, 6) & 15) | 112), 'hex')::uuid;
end
$$;

comment on function durable.new_uid() is 'A uuid of version 7: uuidv7() on Postgres 18, composed here below it.';

revoke all on function durable.new_uid() from public;
grant execute on function durable.new_uid() to durable_engine, durable_steward, durable_janitor;
--! sql/guards/refuse_rewrite.sql
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
--! sql/guards/refuse_truncate.sql
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
--! sql/guards/refuse_write_once.sql
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
--! sql/guards/refuse_frozen.sql
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
--! sql/guards/check_guardable.sql
-- Refuses (42W06) a relation that can't carry a guard: a view, a foreign table, a column it does not have.
set local role durable_owner;

create or replace function durable.check_guardable(target regclass, columns text[] default '{}')
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_kind constant "char" := (select c.relkind from pg_class as c where c.oid = check_guardable.target);
    v_missing text;
begin
    if v_kind is null or v_kind not in ('r', 'p') then
        raise exception using
            errcode = '42W06',
            message = format('%s is not a table, a guard would protect nothing', check_guardable.target),
            hint = 'Name a table or a partitioned table.',
            schema = 'durable';
    end if;
    select string_agg(quote_ident(wanted.name), ', ')
    into v_missing
    from unnest(check_guardable.columns) as wanted (name)
    where not exists (
        select from pg_attribute as a
        where a.attrelid = check_guardable.target and a.attname = wanted.name and a.attnum > 0 and not a.attisdropped
    );
    if v_missing is not null then
        raise exception using
            errcode = '42W06',
            message = format('%s has no column %s', check_guardable.target, v_missing),
            hint = 'Name existing columns, as they are spelled in the catalog.',
            schema = 'durable';
    end if;
end
$$;

comment on function durable.check_guardable(regclass, text[]) is
'Raises 42W06 unless target is a table that has the columns.';

revoke all on function durable.check_guardable(regclass, text[]) from public;
--! sql/guards/put_column_guard.sql
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
--! sql/guards/protect_append_only.sql
-- Guard for any table you own: rows can be added, never changed or removed, by anybody, TRUNCATE included.
-- Calling it again changes nothing.
set local role durable_owner;

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

comment on function durable.protect_append_only(regclass) is
'Refuses UPDATE, DELETE and TRUNCATE of the table (23W01) for every role. Idempotent. Raises 42W06 for what is not a table.';

revoke all on function durable.protect_append_only(regclass) from public;
--! sql/guards/protect_rows.sql
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
--! sql/guards/protect_read_only.sql
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
--! sql/guards/protect_write_once.sql
-- Guard for any table you own: each named column goes from NULL to a value exactly once; the same value again is
-- accepted. Example: select durable.protect_write_once('public.agent_runs', 'tools_executed');
set local role durable_owner;

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

comment on function durable.protect_write_once(regclass, text[]) is
'Refuses to change a stored value of these columns (23W02) for every role; calling it again adds columns. Raises 42W06 for an unfit table or column.';

revoke all on function durable.protect_write_once(regclass, text[]) from public;
--! sql/guards/protect_frozen.sql
-- Guard for any table you own: the named columns keep what INSERT gave them, NULL included.
set local role durable_owner;

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

comment on function durable.protect_frozen(regclass, text[]) is
'Refuses to change these columns after INSERT (23W03) for every role; calling it again adds columns. Raises 42W06 for an unfit table or column.';

revoke all on function durable.protect_frozen(regclass, text[]) from public;
--! sql/guards/transitions.sql
-- Every legal move of every status, as rows: the triggers and the state pictures in docs/ read the same table.
-- A status that no row leads out of is final. Nobody writes here but a migration, which lifts the guard for it.
set local role durable_owner;

create table durable.transitions (
    entity text not null,
    from_status text not null,
    to_status text not null,
    meaning text not null,
    constraint transitions_pkey primary key (entity, from_status, to_status)
);

comment on table durable.transitions is 'The legal moves of every status; from_status is empty for the birth of a row.';

insert into durable.transitions (entity, from_status, to_status, meaning) values
('run', '', 'running', 'start_run: an invocation begins to execute'),
('run', 'running', 'succeeded', 'settle_run: it is done and has a result'),
('run', 'running', 'failed', 'settle_run: it is given up'),
('run', 'running', 'cancelled', 'settle_run: it is called off');

select durable.protect_read_only('durable.transitions');

grant select on durable.transitions to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;
--! sql/guards/enforce_transitions.sql
-- Trigger function behind protect_transitions: a status is born and moves only along the rows of durable.transitions,
-- and a row in a final status (one that no row leads out of) never changes again.
set local role durable_owner;

create or replace function durable.enforce_transitions()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_entity constant text := tg_argv[0];
    v_from text := ''; -- a birth
begin
    if tg_op = 'UPDATE' then
        v_from := old.status;
        if old.status = new.status then
            if old is not distinct from new
                or exists (select from durable.transitions as t where t.entity = v_entity and t.from_status = old.status)
            then
                return null;
            end if;
        end if;
    end if;
    if exists (
        select from durable.transitions as t
        where t.entity = v_entity and t.from_status = v_from and t.to_status = new.status
    ) then
        return null;
    end if;
    raise exception using
        errcode = '23W04',
        message = case
            when v_from = '' then format('no %s begins as %s', v_entity, coalesce(new.status, 'NULL'))
            when v_from = new.status then format('a %s that has %s never changes', v_entity, v_from)
            else format('no %s goes from %s to %s', v_entity, v_from, coalesce(new.status, 'NULL'))
        end,
        detail = format(
            'legal: %s',
            coalesce(
                (
                    select string_agg(t.to_status, ', ' order by t.to_status)
                    from durable.transitions as t
                    where t.entity = v_entity and t.from_status = v_from
                ),
                'none, it is final'
            )
        ),
        hint = 'The table durable.transitions lists every legal move.',
        schema = tg_table_schema,
        table = tg_table_name,
        column = 'status',
        constraint = tg_name;
end
$$;

comment on function durable.enforce_transitions() is
'Row trigger with the entity as its argument; raises 23W04 for a birth or a move that durable.transitions does not list, and for any change of a final row.';

revoke all on function durable.enforce_transitions() from public;
--! sql/guards/protect_transitions.sql
-- Guard for an own table with a column status: it is born and moves only along the rows of durable.transitions.
set local role durable_owner;

create or replace function durable.protect_transitions(target regclass, entity text)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    perform durable.check_guardable(protect_transitions.target, array['status']);
    execute format(
        'create or replace trigger _400_legal_transitions after insert or update on %s for each row execute function durable.enforce_transitions(%L)',
        protect_transitions.target,
        protect_transitions.entity
    );
    execute format('alter table %s enable always trigger _400_legal_transitions', protect_transitions.target);
end
$$;

comment on function durable.protect_transitions(regclass, text) is
'Refuses births and moves of status that durable.transitions does not list for the entity, and any change of a final row (23W04), for every role.';

revoke all on function durable.protect_transitions(regclass, text) from public;
--! sql/formats/json_object.sql
-- For columns that hold keys and values: state, metadata, detail.
set local role durable_owner;

create domain durable.json_object as jsonb
constraint json_object_is_an_object check (jsonb_typeof(value) = 'object');

comment on domain durable.json_object is 'A JSON object in its stored form; see escape_json.';

grant usage on domain durable.json_object to durable_engine, durable_steward, durable_janitor;
--! sql/formats/digest.sql
-- For columns that hold a SHA-256.
set local role durable_owner;

create domain durable.digest as bytea
constraint digest_has_32_bytes check (octet_length(value) = 32);

comment on domain durable.digest is 'A SHA-256.';

grant usage on domain durable.digest to durable_engine, durable_steward, durable_janitor;
--! sql/formats/escape_text.sql
-- The escape of what jsonb can't hold, on the text of a JSON value: U+0000 and half a surrogate pair become U+FFFE (a
-- noncharacter) and the four hex digits of the code unit; U+FFFE itself becomes U+FFFE and fffe, so nothing is
-- ambiguous.
set local role durable_owner;

create or replace function durable.escape_text(value text)
returns text
language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
as $$
declare
    v_text text := escape_text.value;
    v_mark constant text := chr(65534);
    v_slash constant text := chr(92) || chr(92);
    -- An escape counts only if its backslash is not itself escaped: an even number of backslashes goes before.
    v_even constant text := '(?<!' || v_slash || ')((?:' || v_slash || v_slash || ')*)' || v_slash || 'u';
    v_group_1 constant text := chr(92) || '1';
    v_group_2 constant text := chr(92) || '2';
    v_group_3 constant text := chr(92) || '3';
begin
    v_text := regexp_replace(v_text, v_even || '[fF]{3}[eE]', v_group_1 || v_mark, 'g');
    v_text := replace(v_text, v_mark, v_mark || 'fffe');
    if strpos(v_text, v_slash) = 0 then
        -- No escaped backslash anywhere: NULs, by far the most common guests, need no look at what goes before.
        v_text := replace(v_text, chr(92) || 'u0000', v_mark || '0000');
    end if;
    if v_text !~* (v_slash || 'u(0000|d)') then
        return v_text;
    end if;
    -- Whole pairs step aside, so that the surrogates left over are the lone ones. A raw control character can't occur in
    -- JSON, so chr(1) is free as a mark in between.
    v_text := regexp_replace(
        v_text,
        v_even || '([dD][89abAB][0-9a-fA-F]{2})' || v_slash || 'u([dD][c-fC-F][0-9a-fA-F]{2})',
        v_group_1 || chr(1) || v_group_2 || v_group_3,
        'g'
    );
    v_text := regexp_replace(
        v_text, v_even || '(0000|[dD][89a-fA-F][0-9a-fA-F]{2})', v_group_1 || v_mark || v_group_2, 'g'
    );
    return regexp_replace(
        v_text, chr(1) || '(.{4})(.{4})', v_slash || 'u' || v_group_1 || v_slash || 'u' || v_group_2, 'g'
    );
end
$$;

comment on function durable.escape_text(text) is
'The text of a JSON value with NUL, lone surrogates and U+FFFE as U+FFFE and four hex digits; injective.';

revoke all on function durable.escape_text(text) from public;
grant execute on function durable.escape_text(text) to durable_app, durable_operator, durable_engine, durable_steward;
--! sql/formats/json_fault_path.sql
-- Where in a JSON value the part stands that jsonb refuses, as content.parts[0].text; for error messages only.
set local role durable_owner;

create or replace function durable.json_fault_path(value json, field text)
returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_path text := json_fault_path.field;
    v_value json := durable.escape_text(json_fault_path.value::text)::json;
    v_child record;
    v_descended boolean;
begin
    loop
        v_descended := false;
        for v_child in
            select '.' || member.key as step, member.value as child
            from json_each(case json_typeof(v_value) when 'object' then v_value else '{}'::json end) as member (key, value)
            union all
            select '[' || element.place - 1 || ']', element.value
            from json_array_elements(case json_typeof(v_value) when 'array' then v_value else '[]'::json end)
                with ordinality as element (value, place)
        loop
            begin
                perform v_child.child::jsonb;
            exception
                when numeric_value_out_of_range or untranslatable_character then
                    v_path := v_path || v_child.step;
                    v_value := v_child.child;
                    v_descended := true;
                    exit;
            end;
        end loop;
        exit when not v_descended;
    end loop;
    return v_path;
end
$$;

comment on function durable.json_fault_path(json, text) is
'The path of the first member that jsonb refuses, beginning with field; field alone when the whole value is too deep or too large.';

revoke all on function durable.json_fault_path(json, text) from public;
grant execute on function durable.json_fault_path(json, text) to
durable_app, durable_operator, durable_engine, durable_steward;
--! sql/formats/refuse_json.sql
-- Raises 22W02 for a JSON value that jsonb can't hold, naming the path of the part at fault.
set local role durable_owner;

create or replace function durable.refuse_json(value json, field text, reason text)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using
        errcode = '22W02',
        message = format('%s can''t be stored exactly', durable.json_fault_path(refuse_json.value, refuse_json.field)),
        detail = refuse_json.reason,
        hint = 'Send the value as a string, or leave it out.',
        schema = 'durable',
        column = refuse_json.field;
end
$$;

comment on function durable.refuse_json(json, text, text) is 'Raises 22W02 with the path of the first member that jsonb refuses.';

revoke all on function durable.refuse_json(json, text, text) from public;
grant execute on function durable.refuse_json(json, text, text) to
durable_app, durable_operator, durable_engine, durable_steward;
--! sql/formats/refuse_large_json.sql
-- Raises 22W02 for a JSON value that is too deep or too large as a whole; no path leads to a part at fault.
set local role durable_owner;

create or replace function durable.refuse_large_json(field text, reason text)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using
        errcode = '22W02',
        message = format('%s is nested too deep or too large to be stored', refuse_large_json.field),
        detail = refuse_large_json.reason,
        hint = 'Store the large part elsewhere and refer to it.',
        schema = 'durable',
        column = refuse_large_json.field;
end
$$;

comment on function durable.refuse_large_json(text, text) is 'Raises 22W02.';

revoke all on function durable.refuse_large_json(text, text) from public;
grant execute on function durable.refuse_large_json(text, text) to
durable_app, durable_operator, durable_engine, durable_steward;
--! sql/formats/check_expansion.sql
-- jsonb writes numbers out: 1e131071 is 8 bytes as sent and 131,072 digits in every answer. A few kilobytes of them
-- would make every list they appear in too large for Postgres, for operators too. Refuse them where they come in.
set local role durable_owner;

create or replace function durable.check_expansion(value json, stored jsonb, field text)
returns jsonb
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if octet_length(check_expansion.value::text) > 134217728 then
        perform durable.refuse_large_json(check_expansion.field, 'limit 128 MB of text');
    end if;
    -- Only an exponent of three digits or more makes a number much longer than it was sent.
    if check_expansion.value::text ~ '[0-9][eE][-+]?[0-9]{3}'
        and octet_length(check_expansion.stored::text) > greatest(4096, 16 * octet_length(check_expansion.value::text))
    then
        perform durable.refuse_large_json(
            check_expansion.field, 'its numbers, written out in full, take more than 16 times its own length'
        );
    end if;
    return check_expansion.stored;
end
$$;

comment on function durable.check_expansion(json, jsonb, text) is
'stored, if it is not much longer as text than value. Raises 22W02 beyond 128 MB, or when numbers with large exponents expand it.';

revoke all on function durable.check_expansion(json, jsonb, text) from public;
grant execute on function durable.check_expansion(json, jsonb, text) to
durable_app, durable_operator, durable_engine, durable_steward;
--! sql/formats/escape_rare_json.sql
-- escape_json for the values that do need the escape.
set local role durable_owner;

create or replace function durable.escape_rare_json(value json, field text)
returns jsonb
language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
as $$
begin
    return durable.check_expansion(
        escape_rare_json.value, durable.escape_text(escape_rare_json.value::text)::jsonb, escape_rare_json.field
    );
exception
    when numeric_value_out_of_range then
        perform durable.refuse_json(escape_rare_json.value, escape_rare_json.field, sqlerrm);
    when statement_too_complex or program_limit_exceeded then
        perform durable.refuse_large_json(escape_rare_json.field, sqlerrm);
end
$$;

comment on function durable.escape_rare_json(json, text) is 'The stored form of a JSON value that holds NUL, a lone surrogate or U+FFFE. Raises 22W02.';

revoke all on function durable.escape_rare_json(json, text) from public;
grant execute on function durable.escape_rare_json(json, text) to
durable_app, durable_operator, durable_engine, durable_steward;
--! sql/formats/escape_json.sql
-- JSON as a caller sends it -> jsonb as it is stored. NUL and lone surrogates, which jsonb can't hold and tools do
-- return, are kept by the reversible escape of escape_text; unescape_json is the inverse. What can't be kept is refused
-- (22W02). Postgres is asked first: almost every value needs no escape, and whole surrogate pairs it reads itself.
set local role durable_owner;

create or replace function durable.escape_json(value json, field text)
returns jsonb
language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Only the escape's own mark, U+FFFE, has to be looked for: Postgres would take it as it is.
    if strpos(escape_json.value::text, chr(65534)) = 0
        and (strpos(escape_json.value::text, chr(92) || 'u') = 0 or escape_json.value::text !~* (repeat(chr(92), 2) || 'ufffe'))
    then
        return durable.check_expansion(escape_json.value, escape_json.value::text::jsonb, escape_json.field);
    end if;
    return durable.escape_rare_json(escape_json.value, escape_json.field);
exception
    -- U+0000, and half a surrogate pair.
    when untranslatable_character or invalid_text_representation then
        return durable.escape_rare_json(escape_json.value, escape_json.field);
    when numeric_value_out_of_range then
        perform durable.refuse_json(escape_json.value, escape_json.field, sqlerrm);
    when statement_too_complex or program_limit_exceeded then
        perform durable.refuse_large_json(escape_json.field, sqlerrm);
end
$$;

comment on function durable.escape_json(json, text) is
'The stored form of a JSON value; NUL, lone surrogates and U+FFFE become U+FFFE and four hex digits. Raises 22W02 naming the path of what jsonb can''t hold.';

revoke all on function durable.escape_json(json, text) from public;
grant execute on function durable.escape_json(json, text) to
durable_app, durable_operator, durable_engine, durable_steward;
--! sql/formats/escape_object.sql
-- escape_json for arguments that are an object by contract (state, state_delta, metadata): anything else is refused.
set local role durable_owner;

create or replace function durable.escape_object(value json, field text)
returns jsonb
language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
as $$
begin
    if json_typeof(escape_object.value) <> 'object' then
        raise exception using
            errcode = '22W03',
            message = format('%s is a JSON %s, it has to be an object', escape_object.field, json_typeof(escape_object.value)),
            hint = 'Send an object such as {"key": "value"}, or leave the argument out.',
            schema = 'durable',
            column = escape_object.field;
    end if;
    return durable.escape_json(escape_object.value, escape_object.field);
end
$$;

comment on function durable.escape_object(json, text) is
'The stored form of a JSON object, NULL for NULL. Raises 22W03 for any other JSON type, 22W02 for what can''t be stored.';

revoke all on function durable.escape_object(json, text) from public;
grant execute on function durable.escape_object(json, text) to durable_engine;
--! sql/formats/unescape_json.sql
-- Stored jsonb -> the JSON its caller sent: the inverse of escape_json. The result is json and not jsonb, because
-- only json can carry what the escape stands for.
set local role durable_owner;

create or replace function durable.unescape_json(value jsonb)
returns json
language sql immutable parallel safe
return case
    when strpos(unescape_json.value::text, chr(65534)) = 0 then unescape_json.value::json
    else regexp_replace(
        unescape_json.value::text, chr(65534) || '([0-9a-fA-F]{4})', chr(92) || chr(92) || 'u' || chr(92) || '1', 'g'
    )::json
end;

comment on function durable.unescape_json(jsonb) is 'A stored JSON value as its caller sent it, key order and white space aside.';

revoke all on function durable.unescape_json(jsonb) from public;
grant execute on function durable.unescape_json(jsonb) to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;
--! sql/formats/check_tool_names.sql
-- Tool names as a caller gives them: an array of one dimension, without NULLs and blanks.
set local role durable_owner;

create or replace function durable.check_tool_names(names text[], field text)
returns text[]
language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
as $$
declare
    v_bad integer;
begin
    select min(tool.place) into v_bad
    from unnest(check_tool_names.names) with ordinality as tool (name, place)
    where tool.name is null or tool.name !~ '[^[:space:]]';
    if v_bad is not null or array_ndims(check_tool_names.names) > 1 then
        raise exception using
            errcode = '22W03',
            message = case
                when v_bad is null then format('%s is an array of arrays', check_tool_names.field)
                else format('%s[%s] is no tool name', check_tool_names.field, v_bad)
            end,
            hint = 'Give a plain list with the name of each tool, as the agent calls it.',
            schema = 'durable',
            column = check_tool_names.field;
    end if;
    return check_tool_names.names;
end
$$;

comment on function durable.check_tool_names(text[], text) is 'The names, NULL for NULL. Raises 22W03 for a NULL or blank among them, or for an array of arrays.';

revoke all on function durable.check_tool_names(text[], text) from public;
grant execute on function durable.check_tool_names(text[], text) to durable_engine;
--! sql/formats/tool_name.sql
-- The name of a called tool, for every format: a call without a usable name is still a call.
-- Promises a text that is never null or blank, whatever JSON stands where the name should be.
set local role durable_owner;

create or replace function durable.tool_name(name jsonb) returns text
language sql immutable parallel safe
return coalesce(
    pg_catalog.jsonb_path_query_first(name, 'strict $ ? (@ like_regex "[^[:space:]]")') #>> '{}', '(unnamed)'
);

comment on function durable.tool_name(jsonb) is
'The name of a called tool as text; (unnamed) when it is missing, null, blank or not a string.';

revoke all on function durable.tool_name(jsonb) from public;
grant execute on function durable.tool_name(jsonb) to durable_engine, durable_app, durable_operator, durable_auditor;
--! sql/formats/part_says_something.sql
-- Whether a part that is neither a call nor a result says something: text that isn't empty, media, data, odd shapes.
-- What is not recognised counts as said: a user's words are then never taken for silence. null is an absent field.
set local role durable_owner;

create or replace function durable.part_says_something(part jsonb) returns boolean
language sql immutable parallel safe
return case pg_catalog.jsonb_typeof(part)
    when 'object' then case
        when pg_catalog.jsonb_typeof(part -> 'text') <> 'string' or part -> 'text' is null
            then part @? 'strict $.* ? (@ != null)'
        else part ->> 'text' <> ''
            or part @? 'strict $.* ? (@.type() == "object" || @.type() == "array" && @.size() > 0)'
    end
    when 'string' then part #>> '{}' <> ''
    when 'array' then pg_catalog.jsonb_array_length(part) > 0
    when 'null' then false
    else part is not null
end;

comment on function durable.part_says_something(jsonb) is
'Whether a part that is no call and no result says anything: not if it is null, empty or holds nothing but null.';

revoke all on function durable.part_says_something(jsonb) from public;
grant execute on function durable.part_says_something(jsonb) to
durable_engine, durable_app, durable_operator, durable_auditor;
--! sql/formats/scan_message.sql
-- Walks a message once and counts what it holds, as one format sees it (adk, openai_chat, openai_responses, anthropic)
-- or, with format null, as all four do. Takes a message, a part, a list of either, or a provider's whole answer.
-- Never raises, whatever JSON it is given. A mark belongs to one format and is read in one place: one entry a call.
set local role durable_owner;

create or replace function durable.scan_message(
    content jsonb, format text, out tool_calls text[], out results integer, out others integer
)
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    v_list jsonb;
    v_item jsonb;
    v_is_message boolean;
    v_is_result boolean;
    v_is_inside boolean;
    v_bodies jsonb[];
    v_body jsonb;
    v_part jsonb;
    v_type text;
    v_mark text;
begin
    tool_calls := '{}';
    results := 0;
    others := 0;

    -- #> '{}' unpacks a compressed value once; otherwise every step below would do it again.
    v_list := case
        when jsonb_typeof(scan_message.content) = 'array' then scan_message.content #> '{}'
        when jsonb_typeof(scan_message.content) <> 'object'
            or scan_message.content ?| array['role', 'content', 'parts', 'type'] then null
        -- A whole answer of Responses, chat completions or Gemini; Anthropic's is a message already.
        when jsonb_typeof(scan_message.content -> 'output') = 'array' then scan_message.content -> 'output'
        when jsonb_typeof(scan_message.content -> 'choices') = 'array' then scan_message.content -> 'choices'
        when jsonb_typeof(scan_message.content -> 'candidates') = 'array' then scan_message.content -> 'candidates'
    end;

    -- Few and large expressions: each one costs about a microsecond the first time a transaction meets it.
    for v_item_index in 0 .. coalesce(jsonb_array_length(v_list), 1) - 1 loop
        v_item := case
            when v_list is null then scan_message.content #> '{}'
            when v_list -> v_item_index ?| array['role', 'content', 'parts', 'type'] then v_list -> v_item_index
            -- A choice of a chat completion.
            else coalesce(nullif(v_list -> v_item_index -> 'message', 'null'), v_list -> v_item_index)
        end;
        v_is_message := jsonb_typeof(v_item) = 'object' and (
            v_item ?| array['role', 'parts', 'tool_calls']
            or v_item ? 'content' and coalesce(v_item ->> 'type', 'message') = 'message'
            or v_item ?& array['author', 'actions']
        );
        v_bodies := case
            when not v_is_message then array[v_item]
            when coalesce(nullif(v_item -> 'content', 'null'), nullif(v_item -> 'parts', 'null')) is not null then array[
                v_item, v_item -> 'parts', coalesce(v_item -> 'content' -> 'parts', v_item -> 'content'),
                v_item -> 'refusal', v_item -> 'audio'
            ]
            -- An ADK event without content carries actions and says nothing.
            when v_item ?& array['author', 'actions'] then array[v_item]
        end;
        if v_bodies is null then
            v_bodies := v_item || array(
                select f.value from jsonb_each(v_item) as f
                where f.key not in ('role', 'name', 'type', 'tool_calls', 'function_call')
            );
        end if;
        v_is_result := v_is_message and coalesce(scan_message.format = 'openai_chat', true)
            and coalesce(v_item ->> 'role' in ('tool', 'function'), false);
        if v_is_result then
            results := results + 1;
        end if;

        -- What a message says is inside it: the first body, the message itself, counts only where it bears a mark.
        v_is_inside := not v_is_message;
        foreach v_body in array v_bodies loop
            for v_part_index in 0 .. case
                when v_body is null then -1
                when jsonb_typeof(v_body) = 'array' then jsonb_array_length(v_body) - 1
                else 0
            end loop
                v_part := case when jsonb_typeof(v_body) = 'array' then v_body -> v_part_index else v_body end;
                v_type := v_part ->> 'type';
                if scan_message.format is null then
                    v_mark := coalesce(
                        durable.openai_responses_mark(v_part, v_type), durable.anthropic_mark(v_part, v_type),
                        durable.adk_mark(v_part)
                    );
                else
                    v_mark := case scan_message.format
                        when 'adk' then case
                            -- A type that marks a part outranks its keys.
                            when coalesce(
                                durable.openai_responses_mark(v_part, v_type), durable.anthropic_mark(v_part, v_type)
                            ) is null then durable.adk_mark(v_part)
                        end
                        when 'openai_responses' then durable.openai_responses_mark(v_part, v_type)
                        when 'anthropic' then durable.anthropic_mark(v_part, v_type)
                    end;
                end if;
                if v_mark <> '' then
                    tool_calls := tool_calls || v_mark;
                elsif v_is_result then
                    continue;
                elsif v_mark = '' then
                    results := results + 1;
                elsif v_is_inside and durable.part_says_something(v_part) then
                    others := others + 1;
                end if;
            end loop;
            v_is_inside := true;
        end loop;

        if v_is_message and v_item ?| array['tool_calls', 'function_call']
            and coalesce(scan_message.format = 'openai_chat', true)
        then
            tool_calls := tool_calls || durable.openai_chat_calls(v_item);
        end if;
    end loop;
end
$$;

comment on function durable.scan_message(jsonb, text) is
'Tool calls by name, in order, results and other parts of a message, as one format sees it or all four (null).';

revoke all on function durable.scan_message(jsonb, text) from public;
grant execute on function durable.scan_message(jsonb, text) to
durable_engine, durable_app, durable_operator, durable_auditor;
--! sql/formats/adk.sql
-- ADK and Gemini: a part is known by its key, in snake_case (ADK, Python) or camelCase (REST, JavaScript).
-- A part is one call or one result at most. Beside a role, function_call belongs to an OpenAI chat message.
set local role durable_owner;

create or replace function durable.adk_mark(part jsonb) returns text
language sql immutable parallel safe
return case
    when not part ?| array[
        'function_call', 'functionCall', 'function_response', 'functionResponse',
        'tool_call', 'toolCall', 'tool_response', 'toolResponse',
        'executable_code', 'executableCode', 'code_execution_result', 'codeExecutionResult'
    ] or part ? 'role' and part -> 'function_call' <> 'null' then null
    when part @? 'strict $ ? (@.function_call != null || @.functionCall != null)'
        or part @? 'strict $ ? (@.tool_call != null || @.toolCall != null)'
        then durable.tool_name(coalesce(
            part -> 'function_call' -> 'name', part -> 'functionCall' -> 'name',
            part -> 'tool_call' -> 'tool_type', part -> 'toolCall' -> 'toolType'
        ))
    when part @? 'strict $ ? (@.executable_code != null || @.executableCode != null)' then 'code_execution'
    when part @? 'strict $ ? (@.function_response != null || @.functionResponse != null)'
        or part @? 'strict $ ? (@.tool_response != null || @.toolResponse != null)'
        or part @? 'strict $ ? (@.code_execution_result != null || @.codeExecutionResult != null)' then ''
end;

comment on function durable.adk_mark(jsonb) is
'The tool an ADK or Gemini part calls; empty text for a function, tool or code response; null for any other part.';

revoke all on function durable.adk_mark(jsonb) from public;
grant execute on function durable.adk_mark(jsonb) to durable_engine, durable_app, durable_operator, durable_auditor;

create or replace function durable.adk_parts(
    content jsonb, out tool_calls text[], out results integer, out others integer
)
language sql immutable parallel safe
begin atomic
    select
        s.tool_calls,
        s.results,
        s.others
    from durable.scan_message(content, 'adk') as s;
end;

comment on function durable.adk_parts(jsonb) is
'What ADK finds in a message: function and tool calls and executable code, their responses as results, others.';

revoke all on function durable.adk_parts(jsonb) from public;
grant execute on function durable.adk_parts(jsonb) to durable_engine, durable_app, durable_operator, durable_auditor;
--! sql/formats/anthropic.sql
-- Anthropic: a content block is known by its type. tool_use, server_tool_use, mcp_tool_use (and agent.*_tool_use) are
-- calls; tool_result, web_search_tool_result and every other *tool_result are results.
set local role durable_owner;

create or replace function durable.anthropic_mark(part jsonb, type text) returns text
language sql immutable parallel safe
return case
    when pg_catalog."right"(type, 8) = 'tool_use' then durable.tool_name(part -> 'name')
    when pg_catalog."right"(type, 11) = 'tool_result' then ''
end;

comment on function durable.anthropic_mark(jsonb, text) is
'The tool an Anthropic content block of this type uses; empty text for a tool result; null for any other block.';

revoke all on function durable.anthropic_mark(jsonb, text) from public;
grant execute on function durable.anthropic_mark(jsonb, text) to
durable_engine, durable_app, durable_operator, durable_auditor;

create or replace function durable.anthropic_parts(
    content jsonb, out tool_calls text[], out results integer, out others integer
)
language sql immutable parallel safe
begin atomic
    select
        s.tool_calls,
        s.results,
        s.others
    from durable.scan_message(content, 'anthropic') as s;
end;

comment on function durable.anthropic_parts(jsonb) is
'What Anthropic finds in a message: *tool_use blocks as calls, *tool_result blocks as results, the rest as others.';

revoke all on function durable.anthropic_parts(jsonb) from public;
grant execute on function durable.anthropic_parts(jsonb) to
durable_engine, durable_app, durable_operator, durable_auditor;
--! sql/formats/openai_chat.sql
-- OpenAI chat: calls stand beside the content, in tool_calls (function or custom) or the older function_call; a message
-- of role tool or function is a result as a whole. A call that gateways repeat as a content block counts there only.
set local role durable_owner;

create or replace function durable.openai_chat_calls(message jsonb) returns text[]
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    v_calls jsonb := openai_chat_calls.message -> 'tool_calls';
    v_call jsonb;
    v_name text;
    v_names text[] := '{}'::text[];
    v_in_blocks jsonb;
begin
    if v_calls in ('null', 'false', '""', '{}') then
        v_calls := null;
    end if;

    if v_calls is not null and jsonb_typeof(openai_chat_calls.message -> 'content') = 'array' then
        select jsonb_object_agg(coalesce(b.block ->> 'call_id', b.block ->> 'id'), durable.tool_name(b.block -> 'name'))
        into v_in_blocks
        from jsonb_array_elements(openai_chat_calls.message -> 'content') as b (block)
        where coalesce(b.block ->> 'call_id', b.block ->> 'id') is not null
            and coalesce(
                durable.openai_responses_mark(b.block, b.block ->> 'type'),
                durable.anthropic_mark(b.block, b.block ->> 'type')
            ) <> '';
    end if;

    for v_index in 0 .. case
        when v_calls is null then -1
        when jsonb_typeof(v_calls) = 'array' then jsonb_array_length(v_calls) - 1
        else 0
    end loop
        v_call := case when jsonb_typeof(v_calls) = 'array' then v_calls -> v_index else v_calls end;
        v_name := durable.tool_name(
            coalesce(v_call -> 'function' -> 'name', v_call -> 'custom' -> 'name', v_call -> 'name')
        );
        if v_in_blocks is null or v_in_blocks ->> (v_call ->> 'id') is distinct from v_name then
            v_names := v_names || v_name;
        end if;
    end loop;

    if openai_chat_calls.message ? 'role' and jsonb_typeof(openai_chat_calls.message -> 'function_call') <> 'null' then
        v_names := v_names || durable.tool_name(openai_chat_calls.message -> 'function_call' -> 'name');
    end if;
    return v_names;
end
$$;

comment on function durable.openai_chat_calls(jsonb) is
'The tools an OpenAI chat message calls, in order, but for those that its content blocks hold too (same id and name).';

revoke all on function durable.openai_chat_calls(jsonb) from public;
grant execute on function durable.openai_chat_calls(jsonb) to
durable_engine, durable_app, durable_operator, durable_auditor;

create or replace function durable.openai_chat_parts(
    content jsonb, out tool_calls text[], out results integer, out others integer
)
language sql immutable parallel safe
begin atomic
    select
        s.tool_calls,
        s.results,
        s.others
    from durable.scan_message(content, 'openai_chat') as s;
end;

comment on function durable.openai_chat_parts(jsonb) is
'What OpenAI chat finds in a message: tool_calls and function_call, messages of role tool as results, others.';

revoke all on function durable.openai_chat_parts(jsonb) from public;
grant execute on function durable.openai_chat_parts(jsonb) to
durable_engine, durable_app, durable_operator, durable_auditor;
--! sql/formats/openai_responses.sql
-- OpenAI Responses: an item is known by its type. Every *_call is a call (function_call, mcp_call, web_search_call),
-- every *_output and the answer to a request for approval a result. A hosted tool is named by its type:
-- local_shell_call calls local_shell.
set local role durable_owner;

create or replace function durable.openai_responses_mark(part jsonb, type text) returns text
language sql immutable parallel safe
return case
    when pg_catalog."right"(type, 5) = '_call' then case
        when type in ('function_call', 'custom_tool_call', 'mcp_call', 'tool_call', '_call') or part ? 'name'
            then durable.tool_name(part -> 'name')
        else pg_catalog."left"(type, -5)
    end
    when type = 'program' then type
    when pg_catalog."right"(type, 7) = '_output' or type = 'mcp_approval_response' then ''
end;

comment on function durable.openai_responses_mark(jsonb, text) is
'The tool an OpenAI Responses item of this type calls; empty text for the output of a call; null for any other item.';

revoke all on function durable.openai_responses_mark(jsonb, text) from public;
grant execute on function durable.openai_responses_mark(jsonb, text) to
durable_engine, durable_app, durable_operator, durable_auditor;

create or replace function durable.openai_responses_parts(
    content jsonb, out tool_calls text[], out results integer, out others integer
)
language sql immutable parallel safe
begin atomic
    select
        s.tool_calls,
        s.results,
        s.others
    from durable.scan_message(content, 'openai_responses') as s;
end;

comment on function durable.openai_responses_parts(jsonb) is
'What OpenAI Responses finds in a message: *_call items as calls, *_output items as results, the rest as others.';

revoke all on function durable.openai_responses_parts(jsonb) from public;
grant execute on function durable.openai_responses_parts(jsonb) to
durable_engine, durable_app, durable_operator, durable_auditor;
--! sql/formats/read_message.sql
-- What the store needs to know of a message in any format: the tools it calls, and whether it says something itself.
-- One entry a call, repeats kept, a nameless one as (unnamed). Never raises: an odd shape counts as said.
set local role durable_owner;

create or replace function durable.read_message(
    content jsonb, out tool_calls text[], out says_something boolean
)
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    v_scan record;
begin
    if jsonb_typeof(read_message.content -> 'content') = 'string'
        and not read_message.content ?| array['type', 'parts', 'tool_calls', 'function_call', 'refusal', 'audio']
        and durable.adk_mark(read_message.content) is null
    then
        -- The commonest message by far, {"role": "user", "content": "hi"}, judged as the scan would.
        tool_calls := '{}';
        says_something := read_message.content ->> 'content' <> ''
            and coalesce(read_message.content ->> 'role' not in ('tool', 'function'), true);
    else
        v_scan := durable.scan_message(read_message.content, null);
        tool_calls := v_scan.tool_calls;
        says_something := v_scan.others > 0 or cardinality(v_scan.tool_calls) > 0;
    end if;
end
$$;

comment on function durable.read_message(jsonb) is
'The tools a message calls, by name in order, and whether some part is neither a function response nor a tool result.';

revoke all on function durable.read_message(jsonb) from public;
grant execute on function durable.read_message(jsonb) to durable_engine, durable_app, durable_operator, durable_auditor;
--! sql/formats/may_call_tools.sql
-- A quick look before read_message: false only when no format could find a tool call in this content. Every mark of a
-- call is a key or a type that holds one of these pieces; texts that hold one by chance are merely read in full.
set local role durable_owner;

create or replace function durable.may_call_tools(content jsonb)
returns boolean
language sql immutable parallel safe
return content::text ~ '_call|Call|tool_use|_code|Code|program';

comment on function durable.may_call_tools(jsonb) is
'False only for content in which read_message finds no tool call; NULL for NULL. One pass over the text.';

revoke all on function durable.may_call_tools(jsonb) from public;
grant execute on function durable.may_call_tools(jsonb) to
durable_app, durable_operator, durable_auditor, durable_engine;
--! sql/sessions/app_states.sql
-- State shared by all users of one app in one tenant: the keys that callers write with the prefix app:
set local role durable_owner;

create table durable.app_states (
    tenant_id durable.identifier not null,
    app_name durable.identifier not null,
    state durable.json_object not null default '{}',
    revision durable.counter not null default 0,
    updated_at timestamptz not null default clock_timestamp(),
    constraint app_states_pkey primary key (tenant_id, app_name)
);

comment on table durable.app_states is
'State shared by all users of an app; one row as soon as the app has a session. The app reads its tenant''s, functions write.';

select durable.protect_rows('durable.app_states');
select durable.protect_frozen('durable.app_states', 'tenant_id', 'app_name');

grant select on durable.app_states to durable_app, durable_operator, durable_auditor, durable_engine;
grant insert (tenant_id, app_name), update (state, revision, updated_at) on durable.app_states to durable_engine;
--! sql/sessions/user_states.sql
-- State of one user of one app over all sessions: the keys that callers write with the prefix user:
set local role durable_owner;

create table durable.user_states (
    tenant_id durable.identifier not null,
    user_id durable.identifier not null,
    app_name durable.identifier not null,
    state durable.json_object not null default '{}',
    revision durable.counter not null default 0,
    updated_at timestamptz not null default clock_timestamp(),
    constraint user_states_pkey primary key (tenant_id, user_id, app_name),
    constraint user_states_app_exists foreign key (tenant_id, app_name) references durable.app_states
);

comment on table durable.user_states is
'State of a user of an app over all sessions; one row as soon as the user has a session. The user''s own, functions write.';

select durable.protect_rows('durable.user_states');
select durable.protect_frozen('durable.user_states', 'tenant_id', 'user_id', 'app_name');

grant select on durable.user_states to durable_app, durable_operator, durable_auditor, durable_engine;
grant insert (tenant_id, user_id, app_name), update (state, revision, updated_at) on durable.user_states to
durable_engine;
--! sql/sessions/sessions.sql
-- One conversation of one user in one app. The row also carries the head of its event log (last_seq, head_hash), which
-- every append and every settlement updates: that is the lock which puts them in one order.
set local role durable_owner;

create table durable.sessions (
    tenant_id durable.identifier not null,
    session_uid uuid not null default durable.new_uid(),
    app_name durable.identifier not null,
    user_id durable.identifier not null,
    session_id durable.identifier not null,
    state durable.json_object not null default '{}',
    opened_with durable.json_object,
    revision durable.counter not null default 0,
    last_seq durable.counter not null default 0,
    head_hash durable.digest,
    rewinds durable.counter not null default 0,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    closed_at timestamptz,
    close_reason text,
    constraint sessions_pkey primary key (tenant_id, session_uid),
    constraint sessions_owner_key unique (tenant_id, session_uid, user_id),
    constraint sessions_user_state_exists foreign key (tenant_id, user_id, app_name) references durable.user_states,
    constraint sessions_head_belongs_to_events check ((last_seq = 0) = (head_hash is null)),
    constraint sessions_only_closed_has_reason check (close_reason is null or closed_at is not null)
);

-- A closed session's name is free again. Names of other tenants and users never meet.
create unique index sessions_one_open_of_a_name
on durable.sessions (tenant_id, user_id, app_name, session_id)
where closed_at is null;

comment on table durable.sessions is
'Conversations. The app reads its user''s own; functions write. Rows are never deleted by an application: closing hides them.';
comment on column durable.sessions.opened_with is
'The initial state as open_session got it, but for temp: keys: a repeated open with another one is refused, not lost.';
comment on column durable.sessions.revision is 'Grows by one with every append; a writer that expects another one is stale.';
comment on column durable.sessions.last_seq is 'The seq of the newest event; gapless from 1.';
comment on column durable.sessions.head_hash is 'The hash of the newest event: a cut tail shows.';
comment on column durable.sessions.rewinds is 'How many events of this session are rewinds.';

select durable.protect_rows('durable.sessions');
select durable.protect_write_once('durable.sessions', 'closed_at', 'close_reason');
select durable.protect_frozen(
    'durable.sessions', 'tenant_id', 'session_uid', 'app_name', 'user_id', 'session_id', 'opened_with', 'created_at'
);

grant select on durable.sessions to durable_app, durable_operator, durable_auditor, durable_engine;
grant
insert (tenant_id, session_uid, app_name, user_id, session_id, opened_with),
update (state, revision, last_seq, head_hash, rewinds, updated_at, closed_at, close_reason)
on durable.sessions to durable_engine;
--! sql/sessions/events.sql
-- The append-only log of a session. seq is gapless and the only order; content is what was said and what identity is
-- judged by; metadata is out-of-band and never part of a duplicate check. What the message contains (opening,
-- tool_calls) is read out of content by the database, whatever the client claims.
set local role durable_owner;

create table durable.events (
    tenant_id durable.identifier not null,
    session_uid uuid not null,
    seq durable.counter not null,
    event_id durable.identifier not null,
    invocation_id durable.identifier,
    author durable.identifier not null,
    content jsonb,
    metadata durable.json_object not null default '{}',
    occurred_at timestamptz not null,
    recorded_at timestamptz not null,
    user_id durable.identifier not null,
    attempt durable.counter,
    opening boolean not null,
    repeatable boolean not null,
    generation durable.counter not null,
    tool_calls text[] not null,
    extra_tool_calls text[] not null,
    rewind_to durable.counter,
    content_digest durable.digest not null,
    hash durable.digest not null,
    hash_version smallint not null,
    constraint events_pkey primary key (tenant_id, session_uid, seq),
    constraint events_event_id_once unique (tenant_id, session_uid, event_id),
    constraint events_session_is_the_users foreign key (tenant_id, session_uid, user_id)
    references durable.sessions (tenant_id, session_uid, user_id),
    constraint events_opening_is_the_users check (
        not opening or (author = 'user' and invocation_id is not null and not repeatable)
    ),
    constraint events_seq_from_1_and_rewinds_go_back check (
        seq >= 1 and (rewind_to is null or rewind_to between 1 and seq - 1)
    )
);

-- The rule one-opening-message: one invocation is opened once, however often and from wherever it is retried.
create unique index events_one_opening_message
on durable.events (tenant_id, session_uid, invocation_id, author, generation)
where opening;

-- For settlement and verdicts, which ask what is recorded of one invocation.
create index events_by_invocation
on durable.events (tenant_id, session_uid, invocation_id, seq)
where invocation_id is not null;

create index events_rewinds
on durable.events (tenant_id, session_uid, seq)
where rewind_to is not null;

comment on table durable.events is
'What was said and done, in order of seq. Rows are added by append_event and never change. The app reads its user''s own.';
comment on column durable.events.occurred_at is 'When the caller says it happened; never used for order.';
comment on column durable.events.recorded_at is 'When the database stored it, by its own clock.';
comment on column durable.events.opening is 'True for the user message that opens its invocation.';
comment on column durable.events.repeatable is 'The caller said that this invocation may hold several user texts; never an opening message.';
comment on column durable.events.generation is 'How many rewinds had removed the invocation''s opening message when this was recorded.';
comment on column durable.events.tool_calls is 'The tools called in content, one entry a call, found by the database.';
comment on column durable.events.extra_tool_calls is 'Further tool calls the caller named; it can name more than are found, never fewer.';
comment on column durable.events.rewind_to is 'For a rewind: the first seq it takes back. Events stay; readers skip them.';
comment on column durable.events.hash is 'SHA-256 over this event and the hash before it; see durable.event_hash.';

select durable.protect_append_only('durable.events');

grant select on durable.events to durable_app, durable_operator, durable_auditor, durable_engine;
grant insert on durable.events to durable_engine;
--! sql/runs/runs.sql
-- The record of executing one invocation. It is born running, settles once, and its name never comes back with another
-- answer: rows stay, keys and input are frozen, outcomes are written once, a settled row never changes.
set local role durable_owner;

create table durable.runs (
    tenant_id durable.identifier not null,
    run_uid uuid not null default durable.new_uid(),
    session_uid uuid not null,
    user_id durable.identifier not null,
    invocation_id durable.identifier not null,
    generation durable.counter not null,
    trigger durable.identifier not null,
    input jsonb,
    status text not null default 'running',
    attempt durable.counter not null default 1,
    tools_executed text[],
    result jsonb,
    error jsonb,
    started_at timestamptz not null default clock_timestamp(),
    settled_at timestamptz,
    constraint runs_pkey primary key (tenant_id, run_uid),
    constraint runs_one_of_an_invocation unique (tenant_id, session_uid, invocation_id, generation),
    constraint runs_session_is_the_users foreign key (tenant_id, session_uid, user_id)
    references durable.sessions (tenant_id, session_uid, user_id),
    constraint runs_attempt_is_positive check (attempt >= 1),
    constraint runs_only_settled_has_outcome check (
        settled_at is not null or num_nonnulls(tools_executed, result, error) = 0
    ),
    constraint runs_running_is_not_settled check ((status = 'running') = (settled_at is null)),
    constraint runs_tools_are_named check (array_position(tools_executed, null) is null)
);

-- What a user's own rows are found by: without it, one user's list reads all runs of the tenant.
create index runs_of_a_user on durable.runs (tenant_id, user_id, run_uid);

comment on table durable.runs is
'One row for each invocation that is or was executed. The app reads its user''s own; start_run and settle_run write.';
comment on column durable.runs.generation is 'How many rewinds had removed the invocation''s opening message when it started.';
comment on column durable.runs.attempt is 'The fencing token: grows with every run of the invocation; a write that carries another is refused.';
comment on column durable.runs.trigger is 'What started it, in the caller''s words.';
comment on column durable.runs.tools_executed is
'The tools this run called, sorted, each once; NULL as long as nobody knows. Goes from NULL to a value exactly once.';

select durable.protect_rows('durable.runs');
select durable.protect_write_once('durable.runs', 'tools_executed', 'result', 'error', 'settled_at');
select durable.protect_frozen(
    'durable.runs',
    'tenant_id', 'run_uid', 'session_uid', 'user_id', 'invocation_id', 'generation', 'trigger', 'input', 'started_at'
);
select durable.protect_transitions('durable.runs', 'run');

grant select on durable.runs to durable_app, durable_operator, durable_auditor, durable_engine;
grant
insert (tenant_id, run_uid, session_uid, user_id, invocation_id, generation, trigger, input, attempt),
update (status, tools_executed, result, error, settled_at)
on durable.runs to durable_engine;
--! sql/audit/audit_log.sql
-- What operators and maintainers did. Written by the functions they call, through back roles, in the same transaction;
-- who and when are stamped by the database, so nobody can forge or omit a row.
set local role durable_owner;

create table durable.audit_log (
    tenant_id durable.identifier not null,
    audit_uid uuid not null default durable.new_uid(),
    acted_at timestamptz not null default clock_timestamp(),
    login text not null default session_user,
    acted_by durable.identifier,
    action durable.identifier not null,
    subject_kind durable.identifier not null,
    subject_uid uuid,
    reason text not null,
    detail durable.json_object not null default '{}',
    constraint audit_log_pkey primary key (tenant_id, audit_uid),
    constraint audit_log_reason_is_given check (btrim(reason) <> '')
);

comment on table durable.audit_log is
'Acts of operators and maintainers, one row each, append-only. Operators read their tenant''s, auditors all, the app none.';
comment on column durable.audit_log.login is 'The login that acted, as the database knows it.';
comment on column durable.audit_log.acted_by is 'The user_id an operator acted as; NULL for a maintainer, who acts as nobody.';

select durable.protect_append_only('durable.audit_log');

grant select on durable.audit_log to durable_operator, durable_auditor;
-- Neither acted_at nor login: their defaults are the stamp.
grant insert (tenant_id, acted_by, action, subject_kind, subject_uid, reason, detail)
on durable.audit_log to durable_steward, durable_janitor;
--! sql/sessions/session_row.sql
-- What the session functions return.
set local role durable_owner;

create type durable.session_row as (
    session_uid uuid,
    app_name durable.identifier,
    user_id durable.identifier,
    session_id durable.identifier,
    state json,
    revision durable.counter,
    last_seq durable.counter,
    created_at timestamptz,
    updated_at timestamptz,
    closed_at timestamptz,
    outcome text
);

comment on type durable.session_row is
'A session as callers see it; outcome is created or found (open_session), closed or already_closed (close_session), open (list_sessions).';

grant usage on type durable.session_row to durable_engine;
--! sql/sessions/appended_event.sql
-- What append_event returns.
set local role durable_owner;

create type durable.appended_event as (
    seq durable.counter,
    event_id durable.identifier,
    revision durable.counter,
    outcome text
);

comment on type durable.appended_event is
'Where an event is recorded; outcome is appended, or duplicate when it was there already and nothing was written.';

grant usage on type durable.appended_event to durable_engine;
--! sql/sessions/event_row.sql
-- What read_events returns.
set local role durable_owner;

create type durable.event_row as (
    seq durable.counter,
    event_id durable.identifier,
    invocation_id durable.identifier,
    author durable.identifier,
    content json,
    metadata json,
    occurred_at timestamptz,
    recorded_at timestamptz,
    attempt durable.counter,
    opening boolean,
    repeatable boolean,
    generation durable.counter,
    tool_calls text[],
    extra_tool_calls text[],
    rewind_to durable.counter,
    hash durable.digest
);

comment on type durable.event_row is 'An event as callers see it: content and metadata equal to what was sent.';
--! sql/sessions/session_as_row.sql
-- A row of sessions in the form that callers get; the head of the chain stays inside.
set local role durable_owner;

create or replace function durable.session_as_row(session durable.sessions, outcome text)
returns durable.session_row
language sql stable
begin atomic
    select
        (session).session_uid,
        (session).app_name,
        (session).user_id,
        (session).session_id,
        durable.unescape_json((session).state),
        (session).revision,
        (session).last_seq,
        (session).created_at,
        (session).updated_at,
        (session).closed_at,
        session_as_row.outcome;
end;

comment on function durable.session_as_row(durable.sessions, text) is 'A session as callers see it.';

revoke all on function durable.session_as_row(durable.sessions, text) from public;
grant execute on function durable.session_as_row(durable.sessions, text) to
durable_app, durable_operator, durable_engine;
--! sql/sessions/refuse_session.sql
-- Raises the one answer to a session_uid that leads to no row, the same for a foreign session and for none; or says
-- that the session is closed.
set local role durable_owner;

create or replace function durable.refuse_session(
    session_uid uuid, closed_at timestamptz default null, close_reason text default null
)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if refuse_session.session_uid is null then
        raise exception using
            errcode = '22W03',
            message = 'session_uid is missing',
            hint = 'Pass the session_uid that open_session returned.',
            schema = 'durable',
            column = 'session_uid';
    end if;
    if refuse_session.closed_at is not null then
        raise exception using
            errcode = '55W01',
            message = format('session %s is closed', refuse_session.session_uid),
            detail = format('closed at %s%s', refuse_session.closed_at, ', reason: ' || refuse_session.close_reason),
            hint = 'It stays closed. open_session with its name gives a new, empty session, which knows none of its invocations and event ids: a late worker must not go on there.',
            schema = 'durable',
            table = 'sessions';
    end if;
    raise exception using
        errcode = '42W04',
        message = format('there is no session %s here', refuse_session.session_uid),
        hint = 'Check tenant and user of act_as, and use the session_uid that open_session returned to the same user.',
        schema = 'durable',
        table = 'sessions';
end
$$;

comment on function durable.refuse_session(uuid, timestamptz, text) is
'Raises 55W01 for a closed session, else 42W04; 22W03 for NULL.';

revoke all on function durable.refuse_session(uuid, timestamptz, text) from public;
grant execute on function durable.refuse_session(uuid, timestamptz, text) to
durable_app, durable_operator, durable_auditor, durable_engine;
--! sql/sessions/find_session.sql
-- A session by its uid, under the caller's own row policies; another user's is as absent as one that never was.
set local role durable_owner;

create or replace function durable.find_session(session_uid uuid, closed_too boolean default false)
returns durable.sessions
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_session durable.sessions;
begin
    select s.* into v_session from durable.sessions as s where s.session_uid = find_session.session_uid;
    if not found or (v_session.closed_at is not null and not find_session.closed_too) then
        perform durable.refuse_session(find_session.session_uid, v_session.closed_at, v_session.close_reason);
    end if;
    return v_session;
end
$$;

comment on function durable.find_session(uuid, boolean) is
'The session. Raises 42W04 when the caller''s policies show none, 55W01 for a closed one unless closed_too, 22W03 for NULL.';

revoke all on function durable.find_session(uuid, boolean) from public;
grant execute on function durable.find_session(uuid, boolean) to durable_app, durable_operator, durable_auditor;
--! sql/sessions/lock_session.sql
-- Takes the lock that comes first: the session row. What the next statement reads is at least as new as this lock
-- under READ COMMITTED; under stricter levels a row that moved on since the snapshot gives 40001.
set local role durable_engine;

create or replace function durable.lock_session(session_uid uuid, closed_too boolean default false)
returns durable.sessions
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_session durable.sessions;
begin
    select s.* into v_session
    from durable.sessions as s
    where s.session_uid = lock_session.session_uid
    for no key update;
    if not found or (v_session.closed_at is not null and not lock_session.closed_too) then
        perform durable.refuse_session(lock_session.session_uid, v_session.closed_at, v_session.close_reason);
    end if;
    return v_session;
end
$$;

comment on function durable.lock_session(uuid, boolean) is
'The session, locked FOR NO KEY UPDATE. Raises 42W04 when the policies show none, 55W01 for a closed one unless closed_too, 22W03 for NULL.';

revoke all on function durable.lock_session(uuid, boolean) from public;
--! sql/sessions/split_state.sql
-- Sorts the keys of a state delta by prefix: app: and user: go to the shared states without it, temp: goes nowhere,
-- everything else belongs to the session.
set local role durable_owner;

create or replace function durable.split_state(
    delta jsonb, out session_part jsonb, out app_part jsonb, out user_part jsonb
)
language sql immutable parallel safe
begin atomic
    select
        -- json_object_agg: jsonb_object_agg takes time with the square of what a value holds.
        coalesce(
            (
                json_object_agg(entry.key, entry.value) filter (
                    where not starts_with(entry.key, 'app:')
                        and not starts_with(entry.key, 'user:')
                        and not starts_with(entry.key, 'temp:')
                )
            )::jsonb,
            '{}'
        ),
        coalesce(
            (
                json_object_agg(substr(entry.key, 5), entry.value) filter (where starts_with(entry.key, 'app:'))
            )::jsonb,
            '{}'
        ),
        coalesce(
            (
                json_object_agg(substr(entry.key, 6), entry.value) filter (where starts_with(entry.key, 'user:'))
            )::jsonb,
            '{}'
        )
    from jsonb_each(split_state.delta) as entry (key, value);
end;

comment on function durable.split_state(jsonb) is
'The parts of a state delta for the session, the app and the user, prefixes removed; temp: keys are dropped.';

revoke all on function durable.split_state(jsonb) from public;
grant execute on function durable.split_state(jsonb) to durable_engine;
--! sql/sessions/merge_state.sql
-- Merges a state delta: the app: and user: parts into their rows, app first, one order for every caller; the rest into
-- the state of the session, which is returned for the caller's own update. temp: keys go nowhere.
set local role durable_engine;

create or replace function durable.merge_state(session durable.sessions, delta jsonb)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_parts constant record := durable.split_state(merge_state.delta);
begin
    if v_parts.app_part <> '{}' then
        update durable.app_states as a
        set state = a.state || v_parts.app_part, revision = a.revision + 1, updated_at = clock_timestamp()
        where a.tenant_id = session.tenant_id and a.app_name = session.app_name;
    end if;
    if v_parts.user_part <> '{}' then
        update durable.user_states as u
        set state = u.state || v_parts.user_part, revision = u.revision + 1, updated_at = clock_timestamp()
        where u.tenant_id = session.tenant_id and u.user_id = session.user_id and u.app_name = session.app_name;
    end if;
    return session.state || v_parts.session_part;
end
$$;

comment on function durable.merge_state(durable.sessions, jsonb) is
'Writes the shared parts of a state delta and returns the session''s merged state; later keys win.';

revoke all on function durable.merge_state(durable.sessions, jsonb) from public;
--! sql/sessions/open_session.sql
-- Creates the session of this name or finds the open one; with it the state rows of app and user, so that no session
-- is ever without them. For the app. Refuses a repeat with another initial state, which would be lost.
set local role durable_engine;

create or replace function durable.open_session(
    me text default null,
    app_name text default null,
    session_id text default null,
    state json default null
)
returns durable.session_row
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_tenant constant text := durable.current_tenant();
    v_user constant text := durable.current_user_id();
    v_state constant jsonb := durable.escape_object(open_session.state, 'state');
    v_uid constant uuid := durable.new_uid();
    v_name constant text := coalesce(open_session.session_id, v_uid::text);
    v_kept jsonb;
    v_session durable.sessions;
    v_outcome text := 'found';
begin
    if open_session.me is not null then
        perform durable.check_me(open_session.me);
    end if;
    if durable.is_identifier(open_session.app_name) is not true then
        perform durable.refuse_identifier('app_name', open_session.app_name);
    end if;
    if durable.is_identifier(v_name) is not true then
        perform durable.refuse_identifier('session_id', v_name);
    end if;
    perform durable.check_key_size('tenant_id, user_id, app_name and session_id', v_tenant, v_user, open_session.app_name, v_name);

    if v_state is not null then
        select coalesce(json_object_agg(entry.key, entry.value)::jsonb, '{}') into v_kept
        from jsonb_each(v_state) as entry (key, value)
        where not starts_with(entry.key, 'temp:');
    end if;

    -- Once, but for the rare round in which the session that stands in the way is closed before it is read back.
    loop
        select s.* into v_session
        from durable.sessions as s
        where s.tenant_id = v_tenant and s.user_id = v_user
            and s.app_name = open_session.app_name and s.session_id = v_name and s.closed_at is null;
        exit when found;

        insert into durable.app_states (tenant_id, app_name) values (v_tenant, open_session.app_name)
        on conflict (tenant_id, app_name) do nothing;
        insert into durable.user_states (tenant_id, user_id, app_name) values (v_tenant, v_user, open_session.app_name)
        on conflict (tenant_id, user_id, app_name) do nothing;
        insert into durable.sessions as s (tenant_id, session_uid, app_name, user_id, session_id, opened_with)
        values (v_tenant, v_uid, open_session.app_name, v_user, v_name, v_kept)
        on conflict (tenant_id, user_id, app_name, session_id) where closed_at is null do nothing
        returning s.* into v_session;
        if found then
            v_outcome := 'created';
            if v_kept is not null then
                update durable.sessions as s
                set state = durable.merge_state(v_session, v_kept)
                where s.tenant_id = v_tenant and s.session_uid = v_uid
                returning s.* into strict v_session;
            end if;
            exit;
        end if;
    end loop;

    if v_outcome = 'found' and v_kept is not null and v_session.opened_with is distinct from v_kept then
        raise exception using
            errcode = '23W09',
            message = format('session %L is open already and was opened with another state', v_name),
            detail = format('session_uid %s, opened at %s', v_session.session_uid, v_session.created_at),
            hint = 'Leave state out to get the open session, and change its state with append_event and state_delta.',
            schema = 'durable',
            table = 'sessions',
            column = 'opened_with';
    end if;
    return durable.session_as_row(v_session, v_outcome);
end
$$;

comment on function durable.open_session(text, text, text, json) is
'Creates or finds the open session of this user, app and session_id (made up when NULL); outcome created or found. Keys of state with the prefix app: or user: go to the shared states, temp: nowhere. Raises 22W01, 22W02, 22W03, 23W09, 42W01, 42W02.';

revoke all on function durable.open_session(text, text, text, json) from public;
grant execute on function durable.open_session(text, text, text, json) to durable_app;
--! sql/sessions/close_session.sql
-- Closes a session for good: hidden from lists, its name free again, later appends refused. What is recorded stays.
-- For the app. A repeat is told already_closed; a run that is still executing may yet settle.
set local role durable_engine;

create or replace function durable.close_session(
    me text default null,
    session_uid uuid default null,
    reason text default null
)
returns durable.session_row
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_session durable.sessions;
begin
    if close_session.me is not null then
        perform durable.check_me(close_session.me);
    end if;
    if char_length(close_session.reason) > 2000 then
        raise exception using
            errcode = '22W03',
            message = format('reason has %s characters, the limit is 2000', char_length(close_session.reason)),
            hint = 'Say it shorter; it is shown with every refusal of the closed session.',
            schema = 'durable',
            column = 'reason';
    end if;
    v_session := durable.lock_session(close_session.session_uid, closed_too => true);
    if v_session.closed_at is not null then
        return durable.session_as_row(v_session, 'already_closed');
    end if;
    update durable.sessions as s
    set closed_at = clock_timestamp(), close_reason = close_session.reason, updated_at = clock_timestamp()
    where s.tenant_id = v_session.tenant_id and s.session_uid = v_session.session_uid
    returning s.* into strict v_session;
    return durable.session_as_row(v_session, 'closed');
end
$$;

comment on function durable.close_session(text, uuid, text) is
'Closes the session; outcome closed, or already_closed with the first closing''s time. Raises 22W03, 42W01, 42W02, 42W04.';

revoke all on function durable.close_session(text, uuid, text) from public;
grant execute on function durable.close_session(text, uuid, text) to durable_app;
--! sql/sessions/list_sessions.sql
-- The open sessions that the caller may see, newest activity first: an app its user's own, an operator its tenant's.
set local role durable_owner;

create or replace function durable.list_sessions(me text default null, app_name text default null)
returns setof durable.session_row
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if list_sessions.me is not null then
        perform durable.check_me(list_sessions.me);
    end if;
    return query
    select (durable.session_as_row(s, 'open')).*
    from durable.sessions as s
    where s.closed_at is null
        and s.tenant_id = durable.current_tenant()
        and (list_sessions.app_name is null or s.app_name = list_sessions.app_name)
    order by s.updated_at desc, s.session_uid desc;
end
$$;

comment on function durable.list_sessions(text, text) is
'Open sessions, of one app or of all, under the caller''s own row policies. Raises 42W01, 42W02.';

revoke all on function durable.list_sessions(text, text) from public;
grant execute on function durable.list_sessions(text, text) to durable_app, durable_operator;
--! sql/sessions/get_state.sql
-- The state a turn works with: the session's own keys, the user's under user: and the app's under app:.
-- Without session_uid: the shared part only, for a user who has no session yet.
set local role durable_owner;

create or replace function durable.get_state(
    me text default null,
    app_name text default null,
    session_uid uuid default null
)
returns table (state json, revision integer)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_session durable.sessions;
    v_tenant constant text := durable.current_tenant();
    v_user text := durable.current_user_id();
    v_app text := get_state.app_name;
    v_user_part jsonb;
    v_app_part jsonb;
begin
    if get_state.me is not null then
        perform durable.check_me(get_state.me);
    end if;
    if get_state.session_uid is not null then
        v_session := durable.find_session(get_state.session_uid);
        if v_app is not null and v_app <> v_session.app_name then
            perform durable.refuse_session(get_state.session_uid);
        end if;
        v_user := v_session.user_id;
        v_app := v_session.app_name;
    elsif durable.is_identifier(v_app) is not true then
        perform durable.refuse_identifier('app_name', v_app);
    end if;

    -- json_object_agg: jsonb_object_agg takes time with the square of what a value holds.
    select json_object_agg('user:' || entry.key, entry.value)::jsonb into v_user_part
    from durable.user_states as u
    cross join jsonb_each(u.state) as entry (key, value)
    where u.tenant_id = v_tenant and u.user_id = v_user and u.app_name = v_app;

    select json_object_agg('app:' || entry.key, entry.value)::jsonb into v_app_part
    from durable.app_states as a
    cross join jsonb_each(a.state) as entry (key, value)
    where a.tenant_id = v_tenant and a.app_name = v_app;

    return query select
        durable.unescape_json(coalesce(v_session.state, '{}') || coalesce(v_user_part, '{}') || coalesce(v_app_part, '{}')),
        v_session.revision::integer;
end
$$;

comment on function durable.get_state(text, text, uuid) is
'The merged state of a session with its revision, or of user and app alone. Raises 22W01, 42W01, 42W02, 42W04, 55W01.';

revoke all on function durable.get_state(text, text, uuid) from public;
grant execute on function durable.get_state(text, text, uuid) to durable_app, durable_operator;
--! sql/sessions/content_digest.sql
-- SHA-256 of a stored JSON value: over the text of its jsonb, which has one form for key order, white space and
-- escapes.
set local role durable_owner;

create or replace function durable.content_digest(content jsonb)
returns bytea
language sql stable parallel safe
return sha256(convert_to(coalesce(content::text, ''), 'UTF8'));

comment on function durable.content_digest(jsonb) is 'SHA-256 of the jsonb''s text in UTF-8; of the empty text for NULL.';

revoke all on function durable.content_digest(jsonb) from public;
grant execute on function durable.content_digest(jsonb) to
durable_app, durable_operator, durable_auditor, durable_engine;
--! sql/sessions/event_hash.sql
-- The hash that chains an event to the one before it. Canonical form, version 1: the text of a jsonb array of text,
-- integers and hex only, so that no setting of a session (TimeZone, DateStyle, bytea_output) can change it.
-- content and metadata enter by their SHA-256, so the chain can be checked without them.
set local role durable_owner;

create or replace function durable.event_hash(event durable.events, previous bytea)
returns bytea
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return sha256(convert_to(
        jsonb_build_array(
            'durable_pg event 1',
            event.tenant_id,
            event.session_uid::text,
            event.user_id,
            event.seq,
            event.event_id,
            event.invocation_id,
            event.author,
            encode(durable.content_digest(event.content), 'hex'),
            encode(durable.content_digest(event.metadata), 'hex'),
            -- numeric: the last times that timestamptz holds don't fit in bigint.
            (extract(epoch from event.occurred_at) * 1000000)::numeric(20, 0),
            (extract(epoch from event.recorded_at) * 1000000)::numeric(20, 0),
            event.attempt,
            event.opening,
            event.repeatable,
            event.generation,
            to_jsonb(event.tool_calls),
            to_jsonb(event.extra_tool_calls),
            event.rewind_to,
            encode(event_hash.previous, 'hex')
        )::text,
        'UTF8'
    ));
end
$$;

comment on function durable.event_hash(durable.events, bytea) is
'SHA-256 over every column of the event and the previous event''s hash (NULL for the first one), in canonical form 1.';

revoke all on function durable.event_hash(durable.events, bytea) from public;
grant execute on function durable.event_hash(durable.events, bytea) to
durable_app, durable_operator, durable_auditor, durable_engine;
--! sql/sessions/is_rewound.sql
-- Says whether a rewind has taken an event back. Walks the rewinds from the newest backward, as ADK does: each one that
-- is still standing removes all from its target on, earlier rewinds included, and the walk goes on before the target.
set local role durable_owner;

create or replace function durable.is_rewound(session durable.sessions, seq integer)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_rewind record;
    v_before integer := (is_rewound.session).last_seq + 1;
begin
    for v_rewind in
        select e.seq, e.rewind_to
        from durable.events as e
        where e.tenant_id = (is_rewound.session).tenant_id
            and e.session_uid = (is_rewound.session).session_uid
            and e.rewind_to is not null
            and e.seq > is_rewound.seq
        order by e.seq desc
    loop
        if v_rewind.seq < v_before then
            if v_rewind.rewind_to <= is_rewound.seq then
                return true;
            end if;
            v_before := v_rewind.rewind_to;
        end if;
    end loop;
    return false;
end
$$;

comment on function durable.is_rewound(durable.sessions, integer) is
'True when a later rewind, not taken back itself, reaches back to this seq or beyond.';

revoke all on function durable.is_rewound(durable.sessions, integer) from public;
grant execute on function durable.is_rewound(durable.sessions, integer) to
durable_app, durable_operator, durable_auditor, durable_engine;
--! sql/sessions/current_generation.sql
-- The generation that the next event of an invocation and its run belong to: that of the opening message which stands,
-- or one more than the last when rewinds have removed them all. A rewound turn can so be said again, and what was
-- rewound stays in the log.
set local role durable_owner;

create or replace function durable.current_generation(session durable.sessions, invocation_id text)
returns integer
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_said record;
    v_next integer := 0;
begin
    if (current_generation.session).rewinds = 0 then
        return 0;
    end if;
    for v_said in
        -- A generation without an opening message is known by its first event.
        select e.generation, coalesce(min(e.seq) filter (where e.opening), min(e.seq)) as seq
        from durable.events as e
        where e.tenant_id = (current_generation.session).tenant_id
            and e.session_uid = (current_generation.session).session_uid
            and e.invocation_id = current_generation.invocation_id
        group by e.generation
        order by e.generation desc
    loop
        if not durable.is_rewound(current_generation.session, v_said.seq) then
            return v_said.generation;
        end if;
        v_next := greatest(v_next, v_said.generation + 1);
    end loop;
    return v_next;
end
$$;

comment on function durable.current_generation(durable.sessions, text) is
'The generation an invocation is in: 0, and one more each time that a rewind removed its opening message.';

revoke all on function durable.current_generation(durable.sessions, text) from public;
grant execute on function durable.current_generation(durable.sessions, text) to
durable_app, durable_operator, durable_auditor, durable_engine;
--! sql/sessions/rewind_target.sql
-- Where a rewind event reaches back to: the first event of the invocation that ADK puts into the event's actions;
-- callers of other frameworks may use the same key. Refuses (22W04) a rewind to what the session does not hold, and
-- (55W08) one that would take back a run while it executes: what it still records would belong to nobody.
set local role durable_owner;

create or replace function durable.rewind_target(session durable.sessions, metadata jsonb)
returns integer
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_named constant jsonb := coalesce(
        rewind_target.metadata #> array['actions', 'rewind_before_invocation_id'],
        rewind_target.metadata #> array['actions', 'rewindBeforeInvocationId']
    );
    v_invocation text;
    v_seq integer;
begin
    if jsonb_typeof(v_named) is distinct from 'string' or v_named = '""' then
        return null;
    end if;
    v_invocation := v_named #>> '{}';
    select min(e.seq) into v_seq
    from durable.events as e
    where e.tenant_id = (rewind_target.session).tenant_id
        and e.session_uid = (rewind_target.session).session_uid
        and e.invocation_id = v_invocation;
    if v_seq is null then
        raise exception using
            errcode = '22W04',
            message = format('the rewind names invocation %L, of which this session holds nothing', left(v_invocation, 512)),
            detail = 'metadata.actions.rewind_before_invocation_id',
            hint = 'Name an invocation of this session.',
            schema = 'durable',
            table = 'events',
            column = 'metadata';
    end if;
    return v_seq;
end
$$;

comment on function durable.rewind_target(durable.sessions, jsonb) is
'The first seq that metadata.actions.rewind_before_invocation_id takes back; NULL when the event is no rewind. Raises 22W04.';

revoke all on function durable.rewind_target(durable.sessions, jsonb) from public;
grant execute on function durable.rewind_target(durable.sessions, jsonb) to durable_engine;
--! sql/sessions/check_rewind.sql
-- A rewind must leave the runs alone that execute: what their workers still record would belong to another generation,
-- or to nobody. Called when the rewind is in the log and the session row is not updated yet.
set local role durable_engine;

create or replace function durable.check_rewind(session durable.sessions, rewind durable.events)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_session durable.sessions := check_rewind.session;
    v_running text;
begin
    -- As the session will be.
    v_session.last_seq := rewind.seq;
    v_session.rewinds := v_session.rewinds + 1;

    select r.invocation_id into v_running
    from durable.runs as r
    where r.tenant_id = rewind.tenant_id
        and r.session_uid = rewind.session_uid
        and r.settled_at is null
        and (
            r.generation <> durable.current_generation(v_session, r.invocation_id)
            or exists (
                select
                from durable.events as e
                where e.tenant_id = r.tenant_id
                    and e.session_uid = r.session_uid
                    and e.invocation_id = r.invocation_id
                    and e.generation = r.generation
                    and e.seq between rewind.rewind_to and rewind.seq - 1
            )
        )
    limit 1;
    if found then
        raise exception using
            errcode = '55W08',
            message = format('the rewind would take back invocation %L, whose run is executing', v_running),
            detail = format('it reaches back to seq %s', rewind.rewind_to),
            hint = 'Settle that run first, as cancelled if it is called off; then rewind.',
            schema = 'durable',
            table = 'runs';
    end if;
end
$$;

comment on function durable.check_rewind(durable.sessions, durable.events) is
'Raises 55W08 when the rewind would take back events of a run that executes, or move its invocation to another generation.';

revoke all on function durable.check_rewind(durable.sessions, durable.events) from public;
--! sql/sessions/refuse_repeat.sql
-- Says why an event is no repeat of the one that is recorded under its name: it would be lost, so it is refused.
set local role durable_engine;

create or replace function durable.refuse_repeat(event durable.events, recorded durable.events)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_differs constant text := coalesce(
        nullif(
            concat_ws(
                ', ',
                case when recorded.content is distinct from event.content then 'content' end,
                case when recorded.author <> event.author then 'author' end,
                case when recorded.invocation_id is distinct from event.invocation_id then 'invocation_id' end,
                case when not recorded.extra_tool_calls @> event.extra_tool_calls then 'extra_tool_calls' end
            ),
            ''
        ),
        'nothing, but it was rewound'
    );
begin
    if recorded.event_id = event.event_id then
        raise exception using
            errcode = '23W05',
            message = format('another event is recorded as %L', event.event_id),
            detail = format(
                'recorded: seq %s by %L in invocation %L; it differs in %s',
                recorded.seq, recorded.author, recorded.invocation_id, v_differs
            ),
            hint = 'Repeat an event as it was. After a crash read_events shows what is recorded: go on from there, and give only what is really another event another event_id.',
            schema = 'durable',
            table = 'events',
            constraint = 'events_event_id_once';
    end if;
    raise exception using
        errcode = '23W06',
        message = format('invocation %L was opened with another message', event.invocation_id),
        detail = format(
            'the opening message is seq %s, event_id %L; it differs in %s', recorded.seq, recorded.event_id, v_differs
        ),
        hint = 'A new turn gets a new invocation_id; a retry repeats the message as it was; further user texts of one invocation are appended with repeatable => true.',
        schema = 'durable',
        table = 'events',
        constraint = 'events_one_opening_message';
end
$$;

comment on function durable.refuse_repeat(durable.events, durable.events) is
'Raises 23W05 when the event_id is taken by another event, else 23W06: the invocation was opened with another message.';

revoke all on function durable.refuse_repeat(durable.events, durable.events) from public;
--! sql/sessions/refuse_event.sql
-- Says what is wrong with the names of an event that append_event has found unfit; never returns for such an event.
set local role durable_engine;

create or replace function durable.refuse_event(
    me text, author text, invocation_id text, event_id text, occurred_at timestamptz
)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if refuse_event.me is not null then
        perform durable.check_me(refuse_event.me);
    end if;
    if durable.is_identifier(refuse_event.author) is not true then
        perform durable.refuse_identifier('author', refuse_event.author);
    end if;
    if refuse_event.invocation_id <> '' and not durable.is_identifier(refuse_event.invocation_id) then
        perform durable.refuse_identifier('invocation_id', refuse_event.invocation_id);
    end if;
    if refuse_event.event_id <> '' and not durable.is_identifier(refuse_event.event_id) then
        perform durable.refuse_identifier('event_id', refuse_event.event_id);
    end if;
    perform durable.check_key_size(
        'tenant_id, invocation_id and author', durable.current_tenant(), refuse_event.invocation_id, refuse_event.author
    );
    perform durable.check_key_size('tenant_id and event_id', durable.current_tenant(), refuse_event.event_id);
    raise exception using
        errcode = '22W03',
        message = format('occurred_at is %s', refuse_event.occurred_at),
        -- Whoever reads the session next, in any language, has to be able to.
        detail = 'The limits are the years 1 and 9999 in UTC, beyond which many languages have no time.',
        hint = 'Pass a time within these years, or leave it out for now.',
        schema = 'durable',
        column = 'occurred_at';
end
$$;

comment on function durable.refuse_event(text, text, text, text, timestamptz) is
'Raises 42W02, 22W01 or 22W03 for arguments that append_event has found unfit.';

revoke all on function durable.refuse_event(text, text, text, text, timestamptz) from public;
--! sql/sessions/refuse_append.sql
-- Says why an event can't follow what is recorded: the caller is behind, the run is settled, the attempt is not its
-- own.
set local role durable_engine;

create or replace function durable.refuse_append(
    event durable.events, session durable.sessions, run durable.runs, expected_revision integer, attempt integer
)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if run.settled_at is not null then
        raise exception using
            errcode = '55W03',
            message = format('the run of invocation %L has %s', event.invocation_id, run.status),
            detail = format('run %s, settled at %s', run.run_uid, run.settled_at),
            hint = 'Nothing more is recorded for a settled run; a new turn gets a new invocation_id.',
            schema = 'durable',
            table = 'runs';
    end if;
    if refuse_append.attempt is not null and event.invocation_id is null then
        raise exception using
            errcode = '22W03',
            message = 'attempt is given and invocation_id is not',
            hint = 'An attempt is one of an invocation''s run: pass its invocation_id too, or the event belongs to no run.',
            schema = 'durable',
            column = 'invocation_id';
    end if;
    if refuse_append.attempt <> coalesce(run.attempt, 0) then
        raise exception using
            errcode = '55W04',
            message = format('attempt %s is not the current one of invocation %L', refuse_append.attempt, event.invocation_id),
            detail = case when run.attempt is null then 'the invocation has no run' else format('current attempt: %s', run.attempt) end,
            hint = 'Stop this worker: another attempt executes the invocation, or none was started. Check the invocation_id.',
            schema = 'durable',
            table = 'runs';
    end if;
    raise exception using
        errcode = '55W02',
        message = format('session %s has moved on', session.session_uid),
        detail = format('expected revision %s, current revision %s', refuse_append.expected_revision, session.revision),
        hint = 'Read the events after the last seq you know, decide again, then append with the current revision.',
        schema = 'durable',
        table = 'sessions',
        column = 'revision';
end
$$;

comment on function durable.refuse_append(durable.events, durable.sessions, durable.runs, integer, integer) is
'Raises 22W03 for an attempt without an invocation, 55W03 for a settled run, 55W04 for a stale attempt, 55W02 for a stale revision.';

revoke all on function durable.refuse_append(durable.events, durable.sessions, durable.runs, integer, integer)
from public;
--! sql/sessions/append_event.sql
-- Appends one event at the end of a session's log, once. For the app. A repeat is harmless and told so (duplicate);
-- whatever would lose what the caller said is refused. Locks the session row first, then only reads runs.
-- Few statements of many expressions each: PL/pgSQL sets up every expression anew in every transaction.
set local role durable_engine;

create or replace function durable.append_event(
    me text default null,
    session_uid uuid default null,
    author text default null,
    content json default null,
    invocation_id text default null,
    event_id text default null,
    metadata json default null,
    state_delta json default null,
    occurred_at timestamptz default null,
    repeatable boolean default false,
    extra_tool_calls text[] default null,
    expected_revision integer default null,
    attempt integer default null
)
returns durable.appended_event
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_session durable.sessions;
    v_content jsonb;
    v_metadata jsonb;
    v_tool_calls text[] := '{}'::text[];
    v_says_something boolean := false;
    v_event durable.events;
    v_recorded durable.events;
    v_run durable.runs;
begin
    if (
        (append_event.me is null or durable.is_me(append_event.me))
        and durable.is_identifier(append_event.author)
        and coalesce(durable.is_identifier(nullif(append_event.invocation_id, '')), true)
        and coalesce(durable.is_identifier(nullif(append_event.event_id, '')), true)
        and octet_length(concat(durable.current_tenant(), append_event.invocation_id, append_event.author)) <= 2600
        and octet_length(concat(durable.current_tenant(), append_event.event_id)) <= 2600
        and coalesce(
            append_event.occurred_at >= '0001-01-01 00:00:00+00' and append_event.occurred_at < '10000-01-01 00:00:00+00', true
        )
    ) is not true then
        perform durable.refuse_event(
            append_event.me, append_event.author, append_event.invocation_id, append_event.event_id, append_event.occurred_at
        );
    end if;

    select s.* into v_session
    from durable.sessions as s
    where s.session_uid = append_event.session_uid
    for no key update;
    if v_session.session_uid is null or v_session.closed_at is not null then
        perform durable.refuse_session(append_event.session_uid, v_session.closed_at, v_session.close_reason);
    end if;

    -- The event as the database reads it, whatever the client claims of it. An empty name is no name.
    v_content := durable.escape_json(append_event.content, 'content');
    v_metadata := coalesce(durable.escape_object(append_event.metadata, 'metadata'), '{}');
    if append_event.author = 'user' or durable.may_call_tools(v_content) then
        select m.tool_calls, m.says_something into v_tool_calls, v_says_something
        from durable.read_message(v_content) as m;
    end if;
    v_event := row(
        v_session.tenant_id,
        v_session.session_uid,
        v_session.last_seq + 1,
        nullif(append_event.event_id, ''),
        nullif(append_event.invocation_id, ''),
        append_event.author,
        v_content,
        v_metadata,
        append_event.occurred_at,
        clock_timestamp(),
        v_session.user_id,
        null, -- attempt: the run's
        coalesce(append_event.author = 'user' and append_event.invocation_id <> '', false)
        and append_event.repeatable is not true
        and v_says_something,
        append_event.repeatable is true,
        case when v_session.rewinds = 0 then 0 else durable.current_generation(v_session, append_event.invocation_id) end,
        v_tool_calls,
        coalesce(durable.check_tool_names(append_event.extra_tool_calls, 'extra_tool_calls'), '{}'),
        null, -- rewind_to: below
        durable.content_digest(v_content),
        null, -- hash: below, when all the rest is known
        1
    )::durable.events;

    -- Before any other check: a repeat of what is recorded stays harmless, whatever has happened since.
    if v_event.event_id is not null then
        select e.* into v_recorded
        from durable.events as e
        where e.tenant_id = v_event.tenant_id and e.session_uid = v_event.session_uid and e.event_id = v_event.event_id;
    end if;
    if v_event.opening and v_recorded.seq is null then
        select e.* into v_recorded
        from durable.events as e
        where e.tenant_id = v_event.tenant_id
            and e.session_uid = v_event.session_uid
            and e.invocation_id = v_event.invocation_id
            and e.author = v_event.author
            and e.generation = v_event.generation
            and e.opening;
    end if;
    if v_recorded.seq is not null then
        if v_recorded.content is distinct from v_event.content
            or v_recorded.author <> v_event.author
            or v_recorded.invocation_id is distinct from v_event.invocation_id
            or not v_recorded.extra_tool_calls @> v_event.extra_tool_calls
            or (v_session.rewinds > 0 and durable.is_rewound(v_session, v_recorded.seq))
        then
            perform durable.refuse_repeat(v_event, v_recorded);
        end if;
        return (v_recorded.seq, v_recorded.event_id, v_session.revision, 'duplicate')::durable.appended_event;
    end if;

    -- Settlement updates the session row, which this transaction holds: neither can miss the other.
    select r.* into v_run
    from durable.runs as r
    where r.tenant_id = v_event.tenant_id
        and r.session_uid = v_event.session_uid
        and r.invocation_id = v_event.invocation_id
        and r.generation = v_event.generation;
    if append_event.expected_revision <> v_session.revision
        or v_run.settled_at is not null
        or append_event.attempt <> coalesce(v_run.attempt, 0)
    then
        perform durable.refuse_append(v_event, v_session, v_run, append_event.expected_revision, append_event.attempt);
    end if;

    if v_event.metadata ? 'actions' then
        v_event.rewind_to := durable.rewind_target(v_session, v_event.metadata);
    end if;
    v_event.event_id := coalesce(v_event.event_id, durable.new_uid()::text);
    v_event.occurred_at := coalesce(v_event.occurred_at, v_event.recorded_at);
    v_event.attempt := v_run.attempt;
    v_event.hash := durable.event_hash(v_event, v_session.head_hash);
    insert into durable.events select (v_event).*;
    if v_event.rewind_to is not null then
        perform durable.check_rewind(v_session, v_event);
    end if;

    if append_event.state_delta is not null then
        v_session.state := durable.merge_state(v_session, durable.escape_object(append_event.state_delta, 'state_delta'));
    end if;
    update durable.sessions as s
    set
        last_seq = v_event.seq,
        head_hash = v_event.hash,
        revision = s.revision + 1,
        state = v_session.state,
        rewinds = s.rewinds + (v_event.rewind_to is not null)::integer,
        updated_at = v_event.recorded_at
    where s.tenant_id = v_event.tenant_id and s.session_uid = v_event.session_uid;
    return (v_event.seq, v_event.event_id, v_session.revision + 1, 'appended')::durable.appended_event;
end
$$;

comment on function durable.append_event(text, uuid, text, json, text, text, json, json, timestamptz, boolean, text[], integer, integer) is
'Appends an event; outcome appended, or duplicate when it is recorded already (then nothing is written, state_delta included). Raises 22W01, 22W02, 22W03, 22W04, 23W05, 23W06, 42W01, 42W02, 42W04, 55W01, 55W02, 55W03, 55W04, 55W08.';

revoke all on function
durable.append_event(text, uuid, text, json, text, text, json, json, timestamptz, boolean, text[], integer, integer)
from public;
grant execute on function
durable.append_event(text, uuid, text, json, text, text, json, json, timestamptz, boolean, text[], integer, integer)
to durable_app;
--! sql/sessions/read_events.sql
-- The events of a session in the order of seq, content as it was sent. Under the caller's own row policies: an app its
-- user's sessions, an operator its tenant's, an auditor all.
set local role durable_owner;

create or replace function durable.read_events(
    me text default null,
    session_uid uuid default null,
    after_seq integer default null,
    latest integer default null,
    after_time timestamptz default null
)
returns setof durable.event_row
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_session durable.sessions;
begin
    if read_events.me is not null then
        perform durable.check_me(read_events.me);
    end if;
    if read_events.latest < 0 then
        raise exception using
            errcode = '22W03',
            message = format('latest is %s', read_events.latest),
            hint = 'Pass how many of the newest events to read, 0 or more, or leave it out for all.',
            schema = 'durable',
            column = 'latest';
    end if;
    v_session := durable.find_session(read_events.session_uid);

    return query
    select
        newest.seq, newest.event_id, newest.invocation_id, newest.author,
        durable.unescape_json(newest.content), durable.unescape_json(newest.metadata),
        newest.occurred_at, newest.recorded_at, newest.attempt, newest.opening, newest.repeatable, newest.generation,
        newest.tool_calls, newest.extra_tool_calls, newest.rewind_to, newest.hash
    from (
        select e.*
        from durable.events as e
        where e.tenant_id = v_session.tenant_id
            and e.session_uid = v_session.session_uid
            and e.seq > coalesce(read_events.after_seq, 0)
            and (read_events.after_time is null or e.occurred_at >= read_events.after_time)
        order by e.seq desc
        limit read_events.latest
    ) as newest
    order by newest.seq;
end
$$;

comment on function durable.read_events(text, uuid, integer, integer, timestamptz) is
'Events after a seq, of an occurred_at at or after a time, or the latest so many of these; always in order of seq. Raises 22W03, 42W01, 42W02, 42W04, 55W01.';

revoke all on function durable.read_events(text, uuid, integer, integer, timestamptz) from public;
grant execute on function durable.read_events(text, uuid, integer, integer, timestamptz) to
durable_app, durable_operator, durable_auditor;
--! sql/sessions/verify_session.sql
-- Recomputes the chain of a session from its rows and says where it breaks first: an altered or missing event, or a cut
-- tail. For the app, operators and auditors, under their own row policies.
set local role durable_owner;

create or replace function durable.verify_session(
    me text default null,
    session_uid uuid default null,
    out intact boolean,
    out events_checked integer,
    out broken_seq integer,
    out problem text
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_session durable.sessions;
    v_event durable.events;
    v_previous bytea;
begin
    if verify_session.me is not null then
        perform durable.check_me(verify_session.me);
    end if;
    v_session := durable.find_session(verify_session.session_uid, closed_too => true);
    events_checked := 0;
    for v_event in
        select e.*
        from durable.events as e
        where e.tenant_id = v_session.tenant_id and e.session_uid = v_session.session_uid
        order by e.seq
    loop
        problem := case
            when v_event.seq <> events_checked + 1 then 'missing event'
            when v_event.hash_version <> 1 then 'unknown hash version'
            when v_event.content_digest <> durable.content_digest(v_event.content) then 'altered content'
            -- No recorded event has such a time, and the hash has no form for it.
            when not isfinite(v_event.occurred_at) or not isfinite(v_event.recorded_at) then 'altered event'
            when v_event.hash <> durable.event_hash(v_event, v_previous) then 'altered event'
        end;
        if problem is not null then
            broken_seq := case when v_event.seq <> events_checked + 1 then events_checked + 1 else v_event.seq end;
            intact := false;
            return;
        end if;
        events_checked := events_checked + 1;
        v_previous := v_event.hash;
    end loop;

    if v_session.last_seq <> events_checked then
        problem := case when v_session.last_seq > events_checked then 'missing tail' else 'events beyond the head' end;
        broken_seq := least(v_session.last_seq, events_checked) + 1;
    elsif v_session.head_hash is distinct from v_previous then
        problem := 'the head is not the last event';
        broken_seq := events_checked;
    end if;
    intact := problem is null;
end
$$;

comment on function durable.verify_session(text, uuid) is
'One row: intact, how many events were checked, and the first broken link with what is wrong there. Raises 22W03, 42W01, 42W02, 42W04.';

revoke all on function durable.verify_session(text, uuid) from public;
grant execute on function durable.verify_session(text, uuid) to durable_app, durable_operator, durable_auditor;
--! sql/runs/run_outcome.sql
-- What start_run and settle_run return.
set local role durable_owner;

create type durable.run_outcome as (
    run_uid uuid,
    attempt durable.counter,
    status text,
    outcome text,
    tools_executed text[],
    result json,
    error json
);

comment on type durable.run_outcome is
'A run after the call. outcome of start_run: started, busy (it is executing already), settled (with its result); of settle_run: settled, already_settled.';

grant usage on type durable.run_outcome to durable_engine;
--! sql/runs/run_row.sql
-- What list_runs returns.
set local role durable_owner;

create type durable.run_row as (
    run_uid uuid,
    session_uid uuid,
    user_id durable.identifier,
    invocation_id durable.identifier,
    generation durable.counter,
    trigger durable.identifier,
    input json,
    status text,
    attempt durable.counter,
    tools_executed text[],
    result json,
    error json,
    started_at timestamptz,
    settled_at timestamptz
);

comment on type durable.run_row is 'A run as callers see it: input, result and error equal to what was sent.';
--! sql/runs/run_as_outcome.sql
-- A row of runs in the form that start_run and settle_run return.
set local role durable_engine;

create or replace function durable.run_as_outcome(run durable.runs, outcome text)
returns durable.run_outcome
language sql stable
begin atomic
    select
        (run).run_uid,
        (run).attempt,
        (run).status,
        run_as_outcome.outcome,
        (run).tools_executed,
        durable.unescape_json((run).result),
        durable.unescape_json((run).error);
end;

comment on function durable.run_as_outcome(durable.runs, text) is 'A run as start_run and settle_run return it.';

revoke all on function durable.run_as_outcome(durable.runs, text) from public;
--! sql/runs/refuse_run.sql
-- Raises the one answer to a run_uid that leads to no row: the same for a foreign run and for none.
set local role durable_owner;

create or replace function durable.refuse_run(run_uid uuid)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if refuse_run.run_uid is null then
        raise exception using
            errcode = '22W03',
            message = 'run_uid is missing',
            hint = 'Pass the run_uid that start_run returned.',
            schema = 'durable',
            column = 'run_uid';
    end if;
    raise exception using
        errcode = '42W05',
        message = format('there is no run %s here', refuse_run.run_uid),
        hint = 'Check tenant and user of act_as, and use the run_uid that start_run returned to the same user.',
        schema = 'durable',
        table = 'runs';
end
$$;

comment on function durable.refuse_run(uuid) is 'Raises 42W05, or 22W03 for NULL.';

revoke all on function durable.refuse_run(uuid) from public;
grant execute on function durable.refuse_run(uuid) to durable_app, durable_operator, durable_auditor, durable_engine;
--! sql/runs/find_run.sql
-- A run by its uid, under the caller's own row policies; another user's is as absent as one that never was.
set local role durable_owner;

create or replace function durable.find_run(run_uid uuid)
returns durable.runs
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_run durable.runs;
begin
    select r.* into v_run from durable.runs as r where r.run_uid = find_run.run_uid;
    if not found then
        perform durable.refuse_run(find_run.run_uid);
    end if;
    return v_run;
end
$$;

comment on function durable.find_run(uuid) is
'The run. Raises 42W05 when the caller''s policies show none, 22W03 for NULL.';

revoke all on function durable.find_run(uuid) from public;
grant execute on function durable.find_run(uuid) to durable_app, durable_operator, durable_auditor;
--! sql/runs/check_isolation.sql
-- Calls that derive their answer from the log must see everything that was committed before their lock. Under
-- REPEATABLE READ and SERIALIZABLE the snapshot may be older than the lock: refuse instead of answering from the past.
set local role durable_owner;

create or replace function durable.check_isolation(call text)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        raise exception using
            errcode = '55W05',
            message = format('%s can''t run under %s', check_isolation.call, upper(current_setting('transaction_isolation'))),
            detail = 'Its answer is derived from the event log, and this snapshot may be older than the log.',
            hint = 'Call it in a transaction of its own, under READ COMMITTED.',
            schema = 'durable';
    end if;
end
$$;

comment on function durable.check_isolation(text) is 'Raises 55W05 under REPEATABLE READ and SERIALIZABLE.';

revoke all on function durable.check_isolation(text) from public;
grant execute on function durable.check_isolation(text) to
durable_app, durable_operator, durable_auditor, durable_engine;
--! sql/runs/recorded_tools.sql
-- The tools that the log holds for a run, sorted, each once: found in its events or named by its caller. NULL when
-- nothing but user texts is recorded: then nobody knows what it did, and {} would be a guess.
set local role durable_owner;

create or replace function durable.recorded_tools(run durable.runs)
returns text[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_session durable.sessions;
    v_tools text[];
    v_recorded boolean;
begin
    select s.* into v_session
    from durable.sessions as s
    where s.tenant_id = run.tenant_id and s.session_uid = run.session_uid;
    select
        array_agg(distinct tool.name collate "C" order by tool.name collate "C") filter (where tool.name is not null),
        coalesce(bool_or(e.author <> 'user' or tool.name is not null), false)
    into v_tools, v_recorded
    from durable.events as e
    left join lateral (select unnest(e.tool_calls) union all select unnest(e.extra_tool_calls)) as tool (name) on true
    where e.tenant_id = run.tenant_id
        and e.session_uid = run.session_uid
        and e.invocation_id = run.invocation_id
        -- After a partial rewind an older generation may still stand in part; what stands, happened.
        and (e.generation = run.generation or (v_session.rewinds > 0 and not durable.is_rewound(v_session, e.seq)));
    if not v_recorded then
        return null;
    end if;
    return coalesce(v_tools, '{}');
end
$$;

comment on function durable.recorded_tools(durable.runs) is
'The distinct tools recorded for a run; {} when its events call none; NULL when it has no event but the user''s.';

revoke all on function durable.recorded_tools(durable.runs) from public;
grant execute on function durable.recorded_tools(durable.runs) to
durable_app, durable_operator, durable_auditor, durable_engine;
--! sql/runs/lock_run.sql
-- Takes the locks of a settlement in their order: the session row, by an update that an append under an older snapshot
-- trips over, then the run row. A settled run never changes and needs no lock. Closed sessions too: a run that was
-- executing may still say how it ended.
set local role durable_engine;

create or replace function durable.lock_run(run_uid uuid)
returns durable.runs
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_run durable.runs;
begin
    select r.* into v_run from durable.runs as r where r.run_uid = lock_run.run_uid;
    if not found then
        perform durable.refuse_run(lock_run.run_uid);
    elsif v_run.settled_at is not null then
        return v_run;
    end if;
    update durable.sessions as s
    set updated_at = clock_timestamp()
    where s.tenant_id = v_run.tenant_id and s.session_uid = v_run.session_uid;
    select r.* into strict v_run
    from durable.runs as r
    where r.tenant_id = v_run.tenant_id and r.run_uid = v_run.run_uid
    for no key update;
    return v_run;
end
$$;

comment on function durable.lock_run(uuid) is
'The run, its session updated and both rows locked. Raises 42W05 when the policies show none, 22W03 for NULL.';

revoke all on function durable.lock_run(uuid) from public;
--! sql/runs/check_same_outcome.sql
-- A settled run settles again only as it did: an equal repeat is harmless, whatever would change the outcome is
-- refused, and the loser of a race is told what is stored.
set local role durable_engine;

create or replace function durable.check_same_outcome(run durable.runs, wanted durable.runs)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if wanted.tools_executed is not null and wanted.tools_executed is distinct from run.tools_executed then
        raise exception using
            errcode = '23W02',
            message = format('tools_executed of run %s is settled already', run.run_uid),
            detail = format('stored: %s; refused: %s', coalesce(run.tools_executed::text, 'NULL'), wanted.tools_executed),
            hint = 'Keep the stored value. Writing the same value again is accepted.',
            schema = 'durable',
            table = 'runs',
            column = 'tools_executed',
            constraint = '_200_write_once';
    end if;
    if wanted.status <> run.status or wanted.result is distinct from run.result or wanted.error is distinct from run.error then
        raise exception using
            errcode = '55W03',
            message = format('run %s has %s already, with another outcome', run.run_uid, run.status),
            detail = format(
                'settled at %s; it differs in %s',
                run.settled_at,
                concat_ws(
                    ', ',
                    case when wanted.status <> run.status then 'status' end,
                    case when wanted.result is distinct from run.result then 'result' end,
                    case when wanted.error is distinct from run.error then 'error' end
                )
            ),
            hint = 'Settling is final. start_run returns the stored outcome.',
            schema = 'durable',
            table = 'runs';
    end if;
end
$$;

comment on function durable.check_same_outcome(durable.runs, durable.runs) is
'Raises 23W02 for another tools_executed and 55W03 for another status, result or error than the settled run has.';

revoke all on function durable.check_same_outcome(durable.runs, durable.runs) from public;
--! sql/runs/start_run.sql
-- Starts the run of an invocation, once. For the app. Asked again it says busy, or settled with the recorded result: a
-- retry of a finished turn gets its answer. Another input under the same name is refused. Locks the session row.
set local role durable_engine;

create or replace function durable.start_run(
    me text default null,
    session_uid uuid default null,
    invocation_id text default null,
    trigger text default 'user',
    input json default null
)
returns durable.run_outcome
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_input constant jsonb := durable.escape_json(start_run.input, 'input');
    v_session durable.sessions;
    v_run durable.runs;
    v_generation integer;
begin
    if start_run.me is not null then
        perform durable.check_me(start_run.me);
    end if;
    if durable.is_identifier(start_run.invocation_id) is not true then
        perform durable.refuse_identifier('invocation_id', start_run.invocation_id);
    end if;
    if durable.is_identifier(start_run.trigger) is not true then
        perform durable.refuse_identifier('trigger', start_run.trigger);
    end if;
    perform durable.check_key_size('tenant_id and invocation_id', durable.current_tenant(), start_run.invocation_id);

    v_session := durable.lock_session(start_run.session_uid);
    v_generation := durable.current_generation(v_session, start_run.invocation_id);

    select r.* into v_run
    from durable.runs as r
    where r.tenant_id = v_session.tenant_id
        and r.session_uid = v_session.session_uid
        and r.invocation_id = start_run.invocation_id
        and r.generation = v_generation;
    if not found then
        insert into durable.runs as r (
            tenant_id, session_uid, user_id, invocation_id, generation, trigger, input, attempt
        )
        select
            v_session.tenant_id, v_session.session_uid, v_session.user_id,
            start_run.invocation_id, v_generation, start_run.trigger, v_input,
            -- A worker of a rewound generation must not pass for one of this run.
            1 + coalesce(max(o.attempt), 0)
        from durable.runs as o
        where o.tenant_id = v_session.tenant_id
            and o.session_uid = v_session.session_uid
            and o.invocation_id = start_run.invocation_id
        returning r.* into strict v_run;
        -- An append under an older snapshot, which can't see this run, trips over the update.
        update durable.sessions as s
        set updated_at = v_run.started_at
        where s.tenant_id = v_session.tenant_id and s.session_uid = v_session.session_uid;
        return durable.run_as_outcome(v_run, 'started');
    end if;

    if v_input is not null and v_run.input is distinct from v_input then
        raise exception using
            errcode = '23W07',
            message = format('the run of invocation %L was started with another input', start_run.invocation_id),
            detail = format('run %s, started at %s, %s', v_run.run_uid, v_run.started_at, v_run.status),
            hint = 'A new turn gets a new invocation_id; a retry repeats the input as it was, or leaves it out.',
            schema = 'durable',
            table = 'runs',
            column = 'input';
    end if;
    return durable.run_as_outcome(v_run, case when v_run.settled_at is null then 'busy' else 'settled' end);
end
$$;

comment on function durable.start_run(text, uuid, text, text, json) is
'Starts the run of an invocation or tells where it stands; outcome started, busy or settled (with tools_executed, result and error). Raises 22W01, 22W02, 22W03, 23W07, 42W01, 42W02, 42W04, 55W01.';

revoke all on function durable.start_run(text, uuid, text, text, json) from public;
grant execute on function durable.start_run(text, uuid, text, text, json) to durable_app;
--! sql/runs/settle_run.sql
-- Settles a run for good: its status, result, error and the tools it called. For the app. tools_executed must name
-- every recorded call, and is derived when not given. Takes the locks an append takes, session then run, and updates
-- the session: so no call can be recorded that the settled value leaves out.
set local role durable_engine;

create or replace function durable.settle_run(
    me text default null,
    run_uid uuid default null,
    attempt integer default null,
    status text default null,
    result json default null,
    error json default null,
    tools_executed text[] default null
)
returns durable.run_outcome
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_wanted durable.runs;
    v_run durable.runs;
    v_recorded text[];
begin
    if settle_run.me is not null then
        perform durable.check_me(settle_run.me);
    end if;
    perform durable.check_isolation('settle_run');
    v_wanted.status := settle_run.status;
    v_wanted.result := durable.escape_json(settle_run.result, 'result');
    v_wanted.error := durable.escape_json(settle_run.error, 'error');
    if settle_run.tools_executed is not null then
        select coalesce(array_agg(distinct tool.name collate "C" order by tool.name collate "C"), '{}')
        into v_wanted.tools_executed
        from unnest(durable.check_tool_names(settle_run.tools_executed, 'tools_executed')) as tool (name);
    end if;

    v_run := durable.lock_run(settle_run.run_uid);
    if settle_run.status is null or settle_run.status not in ('succeeded', 'failed', 'cancelled') then
        raise exception using
            errcode = '22W03',
            message = format('%s is no status that settles a run', coalesce(quote_literal(settle_run.status), 'NULL')),
            hint = 'Settle as succeeded, failed (given up) or cancelled (called off).',
            schema = 'durable',
            column = 'status';
    end if;
    if settle_run.attempt <> v_run.attempt then
        raise exception using
            errcode = '55W04',
            message = format('attempt %s is not the current one of run %s', settle_run.attempt, v_run.run_uid),
            detail = format('current attempt: %s', v_run.attempt),
            hint = 'Stop this worker: another one has taken the run over.',
            schema = 'durable',
            table = 'runs';
    end if;
    if v_run.settled_at is not null then
        perform durable.check_same_outcome(v_run, v_wanted);
        return durable.run_as_outcome(v_run, 'already_settled');
    end if;

    v_recorded := durable.recorded_tools(v_run);
    if v_wanted.tools_executed is not null and not v_wanted.tools_executed @> coalesce(v_recorded, '{}') then
        raise exception using
            errcode = '23W08',
            message = format('tools_executed leaves out recorded tool calls of run %s', v_run.run_uid),
            detail = format(
                'left out: %s',
                (select string_agg(tool.name, ', ') from unnest(v_recorded) as tool (name) where tool.name <> all (v_wanted.tools_executed))
            ),
            hint = 'Name them too, or leave tools_executed out: the database derives it from what is recorded.',
            schema = 'durable',
            table = 'runs',
            column = 'tools_executed';
    end if;

    update durable.runs as r
    set
        status = v_wanted.status,
        result = v_wanted.result,
        error = v_wanted.error,
        tools_executed = coalesce(v_wanted.tools_executed, v_recorded),
        settled_at = clock_timestamp()
    where r.tenant_id = v_run.tenant_id and r.run_uid = v_run.run_uid
    returning r.* into strict v_run;
    return durable.run_as_outcome(v_run, 'settled');
end
$$;

comment on function durable.settle_run(text, uuid, integer, text, json, json, text[]) is
'Settles a run; outcome settled, or already_settled for an equal repeat. tools_executed stays NULL when nothing but user texts is recorded and none are given. Raises 22W02, 22W03, 23W02 (another tools_executed; DETAIL shows the stored one), 23W08, 42W01, 42W02, 42W05, 55W03, 55W04, 55W05.';

revoke all on function durable.settle_run(text, uuid, integer, text, json, json, text[]) from public;
grant execute on function durable.settle_run(text, uuid, integer, text, json, json, text[]) to durable_app;
--! sql/runs/list_runs.sql
-- The runs that the caller may see, newest first: an app its user's own, an operator its tenant's.
set local role durable_owner;

create or replace function durable.list_runs(me text default null, session_uid uuid default null)
returns setof durable.run_row
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if list_runs.me is not null then
        perform durable.check_me(list_runs.me);
    end if;
    return query
    select
        r.run_uid, r.session_uid, r.user_id, r.invocation_id, r.generation, r.trigger, durable.unescape_json(r.input),
        r.status, r.attempt, r.tools_executed, durable.unescape_json(r.result), durable.unescape_json(r.error),
        r.started_at, r.settled_at
    from durable.runs as r
    where r.tenant_id = durable.current_tenant()
        and (list_runs.session_uid is null or r.session_uid = list_runs.session_uid)
    order by r.started_at desc, r.run_uid desc;
end
$$;

comment on function durable.list_runs(text, uuid) is
'Runs, of one session or of all, under the caller''s own row policies. Raises 42W01, 42W02.';

revoke all on function durable.list_runs(text, uuid) from public;
grant execute on function durable.list_runs(text, uuid) to durable_app, durable_operator;
--! sql/runs/retry_verdict.sql
-- May a failed attempt at this turn be sent again automatically (rate limit, empty answer)? Read from the record, not
-- from the exception: only while no tool call is recorded. Advice as of now; for the app, operators and auditors.
set local role durable_owner;

create or replace function durable.retry_verdict(
    me text default null,
    run_uid uuid default null,
    out allowed boolean,
    out reason text,
    out tools text[]
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_run durable.runs;
begin
    if retry_verdict.me is not null then
        perform durable.check_me(retry_verdict.me);
    end if;
    perform durable.check_isolation('retry_verdict');
    v_run := durable.find_run(retry_verdict.run_uid);
    tools := coalesce(durable.recorded_tools(v_run), '{}');
    reason := case
        when v_run.settled_at is not null then 'settled'
        when cardinality(tools) > 0 then 'tools_recorded'
        else 'no_tool_recorded'
    end;
    allowed := reason = 'no_tool_recorded';
end
$$;

comment on function durable.retry_verdict(text, uuid) is
'allowed, reason (no_tool_recorded; or settled, tools_recorded) and the tools that are recorded, by name. Raises 22W03, 42W01, 42W02, 42W05, 55W05.';

revoke all on function durable.retry_verdict(text, uuid) from public;
grant execute on function durable.retry_verdict(text, uuid) to durable_app, durable_operator, durable_auditor;
--! sql/runs/replay_verdict.sql
-- May a new run be started from this settled run's input? Only when it is known that nothing would happen twice. Knows
-- the event log and the run: every recorded tool counts as one with an effect. For the app, operators and auditors.
set local role durable_owner;

create or replace function durable.replay_verdict(
    me text default null,
    run_uid uuid default null,
    out allowed boolean,
    out reason text,
    out tools text[]
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_run durable.runs;
    v_recorded text[];
begin
    if replay_verdict.me is not null then
        perform durable.check_me(replay_verdict.me);
    end if;
    perform durable.check_isolation('replay_verdict');
    v_run := durable.find_run(replay_verdict.run_uid);
    v_recorded := durable.recorded_tools(v_run);
    tools := coalesce(v_run.tools_executed, v_recorded, '{}');
    reason := case
        when v_run.settled_at is null then 'not_settled'
        when v_run.status = 'succeeded' then 'succeeded'
        -- Nobody's word counts without a history: nothing is recorded, or it is gone.
        when v_run.tools_executed is null or v_recorded is null then 'unknown'
        when cardinality(v_run.tools_executed) > 0 then 'tools_executed'
        else 'nothing_executed'
    end;
    allowed := reason = 'nothing_executed';
end
$$;

comment on function durable.replay_verdict(text, uuid) is
'allowed, reason (nothing_executed; or not_settled, succeeded, unknown, tools_executed) and the tools that block, by name. Raises 22W03, 42W01, 42W02, 42W05, 55W05.';

revoke all on function durable.replay_verdict(text, uuid) from public;
grant execute on function durable.replay_verdict(text, uuid) to durable_app, durable_operator, durable_auditor;
--! sql/sessions/app_states_policies.sql
-- Who sees and writes which state of an app: it is the whole tenant's. No DELETE for anybody; no INSERT or UPDATE for a
-- front role.
set local role durable_owner;

alter table durable.app_states enable row level security;
alter table durable.app_states force row level security;

create policy refuse_owner on durable.app_states for all to durable_owner
using (tenant_id = durable.refuse_owner());

create policy select_tenant on durable.app_states for select to durable_app, durable_operator, durable_engine
using (tenant_id = durable.current_tenant());

create policy select_all on durable.app_states for select to durable_auditor
using (true);

create policy insert_tenant on durable.app_states for insert to durable_engine
with check (tenant_id = durable.current_tenant());

create policy update_tenant on durable.app_states for update to durable_engine
using (tenant_id = durable.current_tenant());
--! sql/sessions/user_states_policies.sql
-- Who sees and writes which state of a user. No DELETE for anybody; no INSERT or UPDATE for a front role.
set local role durable_owner;

alter table durable.user_states enable row level security;
alter table durable.user_states force row level security;

create policy refuse_owner on durable.user_states for all to durable_owner
using (tenant_id = durable.refuse_owner());

create policy select_own on durable.user_states for select to durable_app, durable_engine
using (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy select_tenant on durable.user_states for select to durable_operator
using (tenant_id = durable.current_tenant());

create policy select_all on durable.user_states for select to durable_auditor
using (true);

create policy insert_own on durable.user_states for insert to durable_engine
with check (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy update_own on durable.user_states for update to durable_engine
using (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());
--! sql/sessions/sessions_policies.sql
-- Who sees and writes which sessions. No DELETE for anybody; no INSERT or UPDATE for a front role.
set local role durable_owner;

alter table durable.sessions enable row level security;
alter table durable.sessions force row level security;

create policy refuse_owner on durable.sessions for all to durable_owner
using (tenant_id = durable.refuse_owner());

create policy select_own on durable.sessions for select to durable_app, durable_engine
using (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy select_tenant on durable.sessions for select to durable_operator
using (tenant_id = durable.current_tenant());

create policy select_all on durable.sessions for select to durable_auditor
using (true);

create policy insert_own on durable.sessions for insert to durable_engine
with check (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy update_own on durable.sessions for update to durable_engine
using (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());
--! sql/sessions/events_policies.sql
-- Who sees and writes which events. No UPDATE and no DELETE for anybody; no INSERT for a front role.
set local role durable_owner;

alter table durable.events enable row level security;
alter table durable.events force row level security;

create policy refuse_owner on durable.events for all to durable_owner
using (tenant_id = durable.refuse_owner());

create policy select_own on durable.events for select to durable_app, durable_engine
using (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy select_tenant on durable.events for select to durable_operator
using (tenant_id = durable.current_tenant());

create policy select_all on durable.events for select to durable_auditor
using (true);

create policy insert_own on durable.events for insert to durable_engine
with check (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());
--! sql/runs/runs_policies.sql
-- Who sees and writes which runs. No DELETE for anybody; no INSERT or UPDATE for a front role.
set local role durable_owner;

alter table durable.runs enable row level security;
alter table durable.runs force row level security;

create policy refuse_owner on durable.runs for all to durable_owner
using (tenant_id = durable.refuse_owner());

create policy select_own on durable.runs for select to durable_app, durable_engine
using (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy select_tenant on durable.runs for select to durable_operator
using (tenant_id = durable.current_tenant());

create policy select_all on durable.runs for select to durable_auditor
using (true);

create policy insert_own on durable.runs for insert to durable_engine
with check (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy update_own on durable.runs for update to durable_engine
using (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());
--! sql/audit/audit_log_policies.sql
-- Who sees and writes which audit rows. No UPDATE and no DELETE for anybody; no INSERT for a front role.
set local role durable_owner;

alter table durable.audit_log enable row level security;
alter table durable.audit_log force row level security;

create policy refuse_owner on durable.audit_log for all to durable_owner
using (tenant_id = durable.refuse_owner());

create policy select_tenant on durable.audit_log for select to durable_operator
using (tenant_id = durable.current_tenant());

create policy select_all on durable.audit_log for select to durable_auditor
using (true);

create policy insert_tenant on durable.audit_log for insert to durable_steward
with check (tenant_id = durable.current_tenant() and acted_by = durable.current_user_id());

create policy insert_all on durable.audit_log for insert to durable_janitor
with check (acted_by is null);
--! sql/schema_seal.sql
-- Closes a migration: back roles own functions and can create nothing more. Part of every revision.
set local role durable_owner;

revoke create on schema durable from durable_engine, durable_steward, durable_janitor;
