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
--! sql/ground/identifiers.sql
-- A caller's own names for things: what may be stored, and what fits in a key.
set local role durable_owner;

-- A text without what can't be seen at its ends: white space, invisible and control characters.
create or replace function durable.trimmed(value text)
returns text
language sql immutable parallel safe
return btrim(
    value,
    U&'\0020\0009\000a\000b\000c\000d\0085\00a0\1680\2000\2001\2002\2003\2004\2005\2006\2007\2008\2009\200a'
    '\2028\2029\202f\205f\3000'
    '\00ad\180e\200b\200c\200d\200e\200f\2060\2061\2062\2063\2064\2800\3164\feff\fffe'
    '\0001\0002\0003\0004\0005\0006\0007\0008\000e\000f\0010\0011\0012\0013\0014\0015\0016\0017\0018\0019'
    '\001a\001b\001c\001d\001e\001f\007f'
);

comment on function durable.trimmed is
'The text without white space, invisible and control characters at either end; NULL for NULL.';

revoke all on function durable.trimmed from public;
grant execute on function durable.trimmed to
durable_app, durable_operator, durable_engine, durable_steward, durable_janitor;

-- Says whether a caller's name may be stored: 1 to 512 characters, nothing blank or invisible at either end.
-- The domain identifier keeps the same test on every column that holds such a name.
create or replace function durable.is_identifier(value text)
returns boolean
language sql immutable parallel safe
return char_length(value) between 1 and 512 and value = durable.trimmed(value);

comment on function durable.is_identifier is
'True for 1 to 512 characters without white space, invisible or control characters at either end; NULL for NULL.';

revoke all on function durable.is_identifier from public;
grant execute on function durable.is_identifier to
durable_app, durable_operator, durable_engine, durable_steward, durable_janitor;

-- Raises 22W01 for a name that is_identifier refuses, and says which of the rules it breaks.
create or replace function durable.refuse_identifier(field text, value text)
returns text
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

comment on function durable.refuse_identifier is
'Raises 22W01 naming the field, the limit and the length; never returns. For check_identifier.';

revoke all on function durable.refuse_identifier from public;
grant execute on function durable.refuse_identifier to
durable_app, durable_operator, durable_engine, durable_steward, durable_janitor;

-- Refuses a name that may not be stored. Plain SQL without SET: inlined, a good name costs no call.
create or replace function durable.check_identifier(field text, value text)
returns text
language sql immutable
return case when durable.is_identifier(value) then value else durable.refuse_identifier(field, value) end;

comment on function durable.check_identifier is 'The value. Raises 22W01 when is_identifier is not true, for NULL too.';

revoke all on function durable.check_identifier from public;
grant execute on function durable.check_identifier to durable_app, durable_operator, durable_engine, durable_steward;

-- Names that form one key together must fit an index entry, which Postgres limits to about 2,700 bytes.
-- Four names of 512 ASCII characters do.
create or replace function durable.fits_key(bytes integer)
returns boolean
language sql immutable parallel safe
return bytes <= 2600;

comment on function durable.fits_key is 'True for names of 2,600 bytes of UTF-8 together at most.';

revoke all on function durable.fits_key from public;
grant execute on function durable.fits_key to durable_engine, durable_steward;

-- Refuses the few names that don't fit before an index raises a bare 54000.
create or replace function durable.check_key_size(fields text, variadic names text[])
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_bytes constant integer := octet_length(array_to_string(check_key_size.names, ''));
begin
    if not durable.fits_key(v_bytes) then
        raise exception using
            errcode = '22W01',
            message = format('%s are too long together: %s bytes, the limit is 2600', check_key_size.fields, v_bytes),
            detail = format('field %s, limit 2600 bytes of UTF-8 in all, length %s', check_key_size.fields, v_bytes),
            hint = 'Use shorter names; 512 characters of ASCII each always fit.',
            schema = 'durable';
    end if;
end
$$;

comment on function durable.check_key_size is 'Raises 22W01 when the names of one key don''t fit; see fits_key.';

revoke all on function durable.check_key_size from public;
grant execute on function durable.check_key_size to durable_engine, durable_steward;
--! sql/ground/domains.sql
-- The domains of the columns: what a value must be to be stored anywhere, whoever writes it. Domains and not CHECKs on
-- each table: a session plans a domain's condition once, a table's CHECKs are planned again for every statement.
set local role durable_owner;

create domain durable.identifier as text
constraint identifier_is_1_to_512_unpadded check (durable.is_identifier(value));

comment on domain durable.identifier is 'A caller''s own name for something: 1 to 512 characters without white space at its ends.';

grant usage on domain durable.identifier to durable_engine, durable_steward, durable_janitor;

-- Counters that drivers read are integer: some drivers turn bigint into strings.
create domain durable.counter as integer
constraint counter_is_not_negative check (value >= 0);

comment on domain durable.counter is 'A count or a place in an order, from 0.';

grant usage on domain durable.counter to durable_engine, durable_steward, durable_janitor;

-- For columns that hold keys and values: state, metadata, detail.
create domain durable.json_object as jsonb
constraint json_object_is_an_object check (jsonb_typeof(value) = 'object');

comment on domain durable.json_object is 'A JSON object in its stored form; see escape_json.';

grant usage on domain durable.json_object to durable_engine, durable_steward, durable_janitor;

-- For columns that hold a SHA-256.
create domain durable.digest as bytea
constraint digest_has_32_bytes check (octet_length(value) = 32);

comment on domain durable.digest is 'A SHA-256.';

grant usage on domain durable.digest to durable_engine, durable_steward, durable_janitor;
--! sql/ground/arguments.sql
-- What an argument has to be, whoever calls: the one raise of 22W03, and the checks that several calls share. A check
-- returns the argument, or raises.
set local role durable_owner;

-- detail is left out and not empty where there is none: RAISE takes no NULL, and drivers tell the two apart.
create or replace function durable.refuse_argument(field text, message text, hint text, detail text default null)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if refuse_argument.detail is null then
        raise exception using
            errcode = '22W03',
            message = refuse_argument.message,
            hint = refuse_argument.hint,
            schema = 'durable',
            column = refuse_argument.field;
    end if;
    raise exception using
        errcode = '22W03',
        message = refuse_argument.message,
        detail = refuse_argument.detail,
        hint = refuse_argument.hint,
        schema = 'durable',
        column = refuse_argument.field;
end
$$;

comment on function durable.refuse_argument is 'Raises 22W03 for the argument that field names; never returns.';

revoke all on function durable.refuse_argument from public;
grant execute on function durable.refuse_argument to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward, durable_janitor;

-- The times that every language has: whoever reads one next, in any of them, has to be able to.
create or replace function durable.is_common_time(value timestamptz)
returns boolean
language sql immutable parallel safe
return extract(year from value at time zone 'UTC') between 1 and 9999;

comment on function durable.is_common_time is 'True from the year 1 to the year 9999 in UTC; NULL for NULL.';

revoke all on function durable.is_common_time from public;
grant execute on function durable.is_common_time to durable_engine;

-- Places in a run as a caller counts them: step, ordinal.
create or replace function durable.check_place(place integer, field text)
returns integer
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if (check_place.place >= 0) is not true then
        perform durable.refuse_argument(
            check_place.field,
            format('%s is %s', check_place.field, coalesce(check_place.place::text, 'missing')),
            'Count from 0 or 1; what is the same has the same number in every attempt.'
        );
    end if;
    return check_place.place;
end
$$;

comment on function durable.check_place is 'The place. Raises 22W03 for NULL and below 0.';

revoke all on function durable.check_place from public;
grant execute on function durable.check_place to durable_engine;

-- How long a lease may be: long enough to be renewed, short enough to be waited for. In seconds: a day is 25 hours
-- somewhere.
create or replace function durable.check_lease(lease interval)
returns interval
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_seconds constant float8 := extract(epoch from check_lease.lease)::float8;
begin
    if (v_seconds between 0.1 and 86400) is not true then
        perform durable.refuse_argument(
            'lease',
            format('lease is %s', coalesce(check_lease.lease::text, 'missing')),
            'Take a time after which a dead worker should be given up, such as 1 minute, and renew it in between.',
            'The limits are 100 milliseconds and 1 day.'
        );
    end if;
    return make_interval(secs => v_seconds);
end
$$;

comment on function durable.check_lease is
'The lease in seconds. Raises 22W03 for NULL or beyond 100 milliseconds to 1 day.';

revoke all on function durable.check_lease from public;
grant execute on function durable.check_lease to durable_engine;

-- How many rows one call of a maintainer works on: bounded, so that cron's transactions stay short.
create or replace function durable.check_batch(size integer, field text)
returns integer
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if (check_batch.size between 1 and 10000) is not true then
        perform durable.refuse_argument(
            check_batch.field,
            format('%s is %s', check_batch.field, coalesce(check_batch.size::text, 'missing')),
            'Call it again for more.',
            'The limits are 1 and 10000.'
        );
    end if;
    return check_batch.size;
end
$$;

comment on function durable.check_batch is 'The size. Raises 22W03 for NULL or beyond 1 to 10,000.';

revoke all on function durable.check_batch from public;
grant execute on function durable.check_batch to durable_janitor;

-- Why somebody overrides what a worker does: a reason is given, and is short enough to be shown wherever the act is.
create or replace function durable.check_reason(reason text)
returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if (durable.trimmed(check_reason.reason) <> '' and char_length(check_reason.reason) <= 2000) is not true then
        perform durable.refuse_argument(
            'reason',
            case
                when durable.trimmed(check_reason.reason) <> ''
                    then format('reason has %s characters, the limit is 2000', char_length(check_reason.reason))
                else 'reason is missing'
            end,
            'Say in a sentence why it is done; it is kept with the act.'
        );
    end if;
    return durable.trimmed(check_reason.reason);
end
$$;

comment on function durable.check_reason is
'The reason without blanks at its ends. Raises 22W03 when it is missing, blank or over 2,000 characters.';

revoke all on function durable.check_reason from public;
grant execute on function durable.check_reason to durable_engine, durable_steward;

-- Tool names as a caller gives them: an array of one dimension, without NULLs and blanks.
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
        perform durable.refuse_argument(
            check_tool_names.field,
            case
                when v_bad is null then format('%s is an array of arrays', check_tool_names.field)
                else format('%s[%s] is no tool name', check_tool_names.field, v_bad)
            end,
            'Give a plain list with the name of each tool, as the agent calls it.'
        );
    end if;
    return check_tool_names.names;
end
$$;

comment on function durable.check_tool_names is
'The names, NULL for NULL. Raises 22W03 for a NULL or blank among them, or for an array of arrays.';

revoke all on function durable.check_tool_names from public;
grant execute on function durable.check_tool_names to durable_engine;
--! sql/ground/identity.sql
-- Who a transaction acts as: one tenant and one user, set by act_as for this transaction only. Policies compare with
-- current_tenant and current_user_id, which raise 42W01 where there is no identity.
set local role durable_owner;

-- Sets tenant and user, and returns what the me argument of every call takes. For front roles that act as somebody.
-- Refuses a bad name (22W01) and a second identity in one transaction (42W02).
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
    -- Every call runs this: one expression where all is well.
    if (durable.is_identifier(act_as.tenant_id) and durable.is_identifier(act_as.user_id)) is not true then
        perform
            durable.check_identifier('tenant_id', act_as.tenant_id),
            durable.check_identifier('user_id', act_as.user_id);
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

comment on function durable.act_as is
'Makes this transaction act as one tenant and user; pass its result as me, or call it once and leave me out. Transaction-local: the next transaction of the connection has no identity. Raises 22W01, 42W02.';

revoke all on function durable.act_as from public;
grant execute on function durable.act_as to durable_app, durable_operator;

-- The loud half of current_tenant and current_user_id: reached only when the transaction carries no identity.
-- STABLE, so that a plan over an empty table meets it too.
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

comment on function durable.identity_missing is 'Raises 42W01; never returns.';

revoke all on function durable.identity_missing from public;
grant execute on function durable.identity_missing to
durable_app, durable_operator, durable_maintainer, durable_auditor, durable_engine, durable_steward, durable_janitor;

-- Policies compare with it. Plain SQL without SET: the planner inlines it, so it serves as an index condition.
create or replace function durable.current_tenant()
returns text
language sql stable parallel safe
return coalesce(nullif(current_setting('durable.tenant_id', true), ''), durable.identity_missing());

comment on function durable.current_tenant is
'The tenant set by act_as for this transaction; raises 42W01 when no identity is set.';

revoke all on function durable.current_tenant from public;
grant execute on function durable.current_tenant to
durable_app, durable_operator, durable_maintainer, durable_auditor, durable_engine, durable_steward, durable_janitor;

-- As current_tenant, for the user.
create or replace function durable.current_user_id()
returns text
language sql stable parallel safe
return coalesce(nullif(current_setting('durable.user_id', true), ''), durable.identity_missing());

comment on function durable.current_user_id is
'The user set by act_as for this transaction; raises 42W01 when no identity is set.';

revoke all on function durable.current_user_id from public;
grant execute on function durable.current_user_id to
durable_app, durable_operator, durable_maintainer, durable_auditor, durable_engine, durable_steward, durable_janitor;

-- Says whether a me argument is what act_as returned in this transaction.
create or replace function durable.is_me(me text)
returns boolean
language sql stable parallel safe
return me = jsonb_build_array(durable.current_tenant(), durable.current_user_id())::text;

comment on function durable.is_me is
'True for the identity of this transaction in the form that act_as returns; NULL for NULL. Raises 42W01 without one.';

revoke all on function durable.is_me from public;
grant execute on function durable.is_me to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;

-- Raises 42W02 for a me that is not of this transaction. STABLE: an immutable one may be run while a plan is made.
create or replace function durable.refuse_me(me text)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using
        errcode = '42W02',
        message = 'me is not the identity of this transaction',
        detail = format('me is %L', left(refuse_me.me, 200)),
        hint = 'Pass me => durable.act_as(tenant_id, user_id), or leave me out.',
        schema = 'durable';
end
$$;

comment on function durable.refuse_me is 'Raises 42W02; never returns. For check_me.';

revoke all on function durable.refuse_me from public;
grant execute on function durable.refuse_me to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;

-- A me made by hand would be ignored in silence, and the call done as whoever the transaction acts as: refuse it. NULL
-- is a me left out. Plain SQL without SET: inlined, it costs no call.
create or replace function durable.check_me(me text)
returns text
language sql stable
return case when me is null or durable.is_me(me) then me else durable.refuse_me(me) end;

comment on function durable.check_me is
'The value, NULL for NULL. Raises 42W02 for a me that act_as did not return in this transaction, 42W01 without one.';

revoke all on function durable.check_me from public;
grant execute on function durable.check_me to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;

-- The policy of durable_owner on every table. Under FORCE ROW LEVEL SECURITY the owner would otherwise work on no rows
-- and be told that all went well. Policies write tenant_id = refuse_owner(): to estimate a condition on a column the
-- planner calls its stable functions, so a statement raises even where it would meet no row.
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

comment on function durable.refuse_owner is 'Raises 42W03; the owner''s row policy on every table.';

revoke all on function durable.refuse_owner from public;
--! sql/ground/uid.sql
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

comment on function durable.new_uid is 'A uuid of version 7: uuidv7() on Postgres 18, composed here below it.';

revoke all on function durable.new_uid from public;
grant execute on function durable.new_uid to durable_engine, durable_steward, durable_janitor;
--! sql/ground/transactions.sql
-- What a call asks of its transaction: a commit that is on disk, a snapshot that is not older than its locks.
set local role durable_owner;

-- What a worker acts on outside must survive the server's crash: a begin that is forgotten is done twice, an attempt
-- that is forgotten is given out twice. Overrides synchronous_commit = off for this transaction.
create or replace function durable.commit_durably()
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    if current_setting('synchronous_commit') = 'off' then
        set local synchronous_commit = on;
    end if;
end
$$;

comment on function durable.commit_durably is 'Makes the commit of this transaction wait for the log to be on disk.';

revoke all on function durable.commit_durably from public;
grant execute on function durable.commit_durably to durable_engine;

-- Calls that derive their answer from the log must see everything that was committed before their lock. Under
-- REPEATABLE READ and SERIALIZABLE the snapshot may be older than the lock: refuse instead of answering from the past.
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

comment on function durable.check_isolation is 'Raises 55W05 under REPEATABLE READ and SERIALIZABLE.';

revoke all on function durable.check_isolation from public;
grant execute on function durable.check_isolation to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;
--! sql/ground/json.sql
-- JSON between callers and columns: escape_json for what comes in, unescape_json for what goes out.
set local role durable_owner;

-- JSON as a caller sends it -> jsonb as it is stored. NUL and lone surrogates, which jsonb can't hold and tools do
-- return, are kept by the reversible escape of escape_text; unescape_json is the inverse. What can't be kept is refused
-- (22W02). Postgres is asked first: almost every value needs no escape, and whole surrogate pairs it reads itself.
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

comment on function durable.escape_json is
'The stored form of a JSON value; NUL, lone surrogates and U+FFFE become U+FFFE and four hex digits. Raises 22W02 naming the path of what jsonb can''t hold.';

revoke all on function durable.escape_json from public;
grant execute on function durable.escape_json to durable_app, durable_operator, durable_engine, durable_steward;

-- escape_json for the values that do need the escape.
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

comment on function durable.escape_rare_json is 'The stored form of a JSON value that holds NUL, a lone surrogate or U+FFFE. Raises 22W02.';

revoke all on function durable.escape_rare_json from public;
grant execute on function durable.escape_rare_json to durable_app, durable_operator, durable_engine, durable_steward;

-- escape_json for arguments that are an object by contract (state, state_delta, metadata): anything else is refused.
create or replace function durable.escape_object(value json, field text)
returns jsonb
language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
as $$
begin
    if json_typeof(escape_object.value) <> 'object' then
        perform durable.refuse_argument(
            escape_object.field,
            format('%s is a JSON %s, it has to be an object', escape_object.field, json_typeof(escape_object.value)),
            'Send an object such as {"key": "value"}, or leave the argument out.'
        );
    end if;
    return durable.escape_json(escape_object.value, escape_object.field);
end
$$;

comment on function durable.escape_object is
'The stored form of a JSON object, NULL for NULL. Raises 22W03 for any other JSON type, 22W02 for what can''t be stored.';

revoke all on function durable.escape_object from public;
grant execute on function durable.escape_object to durable_engine, durable_steward;

-- Stored jsonb -> the JSON its caller sent: the inverse of escape_json. The result is json and not jsonb, because
-- only json can carry what the escape stands for.
create or replace function durable.unescape_json(value jsonb)
returns json
language sql immutable parallel safe
return case
    when strpos(unescape_json.value::text, chr(65534)) = 0 then unescape_json.value::json
    else regexp_replace(
        unescape_json.value::text, chr(65534) || '([0-9a-fA-F]{4})', chr(92) || chr(92) || 'u' || chr(92) || '1', 'g'
    )::json
end;

comment on function durable.unescape_json is 'A stored JSON value as its caller sent it, key order and white space aside.';

revoke all on function durable.unescape_json from public;
grant execute on function durable.unescape_json to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;

-- The escape of what jsonb can't hold, on the text of a JSON value: U+0000 and half a surrogate pair become U+FFFE (a
-- noncharacter) and the four hex digits of the code unit; U+FFFE itself becomes U+FFFE and fffe, so nothing is
-- ambiguous.
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
    -- Either case of the digits is the same half pair.
    select string_agg(
        case when p.place = 1 then p.piece else lower(left(p.piece, 4)) || substr(p.piece, 5) end, v_mark order by p.place
    )
    into v_text
    from unnest(string_to_array(v_text, v_mark)) with ordinality as p (piece, place);
    return regexp_replace(
        v_text, chr(1) || '(.{4})(.{4})', v_slash || 'u' || v_group_1 || v_slash || 'u' || v_group_2, 'g'
    );
end
$$;

comment on function durable.escape_text is
'The text of a JSON value with NUL, lone surrogates and U+FFFE as U+FFFE and four hex digits; injective.';

revoke all on function durable.escape_text from public;
grant execute on function durable.escape_text to durable_app, durable_operator, durable_engine, durable_steward;

-- jsonb writes numbers out: 1e131071 is 8 bytes as sent and 131,072 digits in every answer. A few kilobytes of them
-- would make every list they appear in too large for Postgres, for operators too. Refuse them where they come in.
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

comment on function durable.check_expansion is
'stored, if it is not much longer as text than value. Raises 22W02 beyond 128 MB, or when numbers with large exponents expand it.';

revoke all on function durable.check_expansion from public;
grant execute on function durable.check_expansion to durable_app, durable_operator, durable_engine, durable_steward;

-- Raises 22W02 for a JSON value that is too deep or too large as a whole; no path leads to a part at fault.
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

comment on function durable.refuse_large_json is 'Raises 22W02.';

revoke all on function durable.refuse_large_json from public;
grant execute on function durable.refuse_large_json to durable_app, durable_operator, durable_engine, durable_steward;

-- Raises 22W02 for a JSON value that jsonb can't hold, naming the path of the part at fault.
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

comment on function durable.refuse_json is 'Raises 22W02 with the path of the first member that jsonb refuses.';

revoke all on function durable.refuse_json from public;
grant execute on function durable.refuse_json to durable_app, durable_operator, durable_engine, durable_steward;

-- Where in a JSON value the part stands that jsonb refuses, as content.parts[0].text; for error messages only.
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

comment on function durable.json_fault_path is
'The path of the first member that jsonb refuses, beginning with field; field alone when the whole value is too deep or too large.';

revoke all on function durable.json_fault_path from public;
grant execute on function durable.json_fault_path to durable_app, durable_operator, durable_engine, durable_steward;
--! sql/guards/guardable.sql
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

comment on function durable.check_guardable is
'Raises 42W06 unless target is a table that has the columns.';

revoke all on function durable.check_guardable from public;
--! sql/guards/append_only.sql
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
--! sql/guards/columns.sql
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
('run', 'running', 'failed', 'settle_run: it is given up; interrupt_run: that was its last attempt'),
('run', 'running', 'cancelled', 'settle_run, cancel_run: it is called off'),
('run', 'running', 'interrupted', 'interrupt_run: its worker gave it back; reap_runs: its lease ran out'),
('run', 'running', 'awaiting', 'it waits for a decision of a person'),
('run', 'interrupted', 'running', 'start_run: the next attempt takes it up'),
('run', 'interrupted', 'failed', 'start_run: it has no attempt left'),
('run', 'interrupted', 'cancelled', 'cancel_run: it is called off'),
('run', 'awaiting', 'running', 'start_run: the decision is there'),
('run', 'awaiting', 'cancelled', 'cancel_run: it is called off'),
('effect', '', 'begun', 'begin_effect: the tool is about to be called'),
('effect', 'begun', 'succeeded', 'finish_effect, resolve_effect: it happened'),
('effect', 'begun', 'failed', 'finish_effect, resolve_effect: it certainly did not happen'),
('effect', 'begun', 'unverified', 'finish_effect, interrupt_run, reap_runs: nobody knows whether it happened'),
('effect', 'unverified', 'succeeded', 'resolve_effect: somebody looked; finish_effect: its worker is back'),
('effect', 'unverified', 'failed', 'resolve_effect: somebody looked; finish_effect: its worker is back'),
('effect', 'unverified', 'begun', 'begin_effect: same key again, while the provider still knows it');

select durable.protect_read_only('durable.transitions');

grant select on durable.transitions to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward, durable_janitor;
--! sql/guards/legal_transitions.sql
-- Guard for a column status: what is legal stands in durable.transitions, for the triggers and for people.
set local role durable_owner;

-- Guard for an own table with a column status: it is born and moves only along the rows of durable.transitions.
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

comment on function durable.protect_transitions is
'Refuses births and moves of status that durable.transitions does not list for the entity, and any change of a final row (23W04), for every role.';

revoke all on function durable.protect_transitions from public;

-- Trigger function behind protect_transitions: a status is born and moves only along the rows of durable.transitions,
-- and a row in a final status (one that no row leads out of) never changes again.
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

comment on function durable.enforce_transitions is
'Row trigger with the entity as its argument; raises 23W04 for a birth or a move that durable.transitions does not list, and for any change of a final row.';

revoke all on function durable.enforce_transitions from public;
--! sql/guards/begun_again.sql
-- Trigger function of durable.effects: its WHEN has found a row that changes hands without a new begin.
set local role durable_owner;

create or replace function durable.refuse_begun_again()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using
        errcode = '23W04',
        message = format('effect %s was to be begun again at no later time than before', old.effect_uid),
        detail = format('begun at %s by attempt %s', old.begun_at, old.attempt),
        hint = 'An unverified effect is begun again by begin_effect, while its provider still knows the key.',
        schema = tg_table_schema,
        table = tg_table_name,
        column = 'begun_at',
        constraint = tg_name;
end
$$;

comment on function durable.refuse_begun_again is 'Row trigger that raises 23W04.';

revoke all on function durable.refuse_begun_again from public;
--! sql/tables/types.sql
-- The rows that calls return. Apart from the functions that return them: a type can't be replaced, a migration alters
-- it by hand.
set local role durable_owner;

-- What the session functions return.
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

-- What append_event returns.
create type durable.appended_event as (
    seq durable.counter,
    event_id durable.identifier,
    revision durable.counter,
    outcome text
);

comment on type durable.appended_event is
'Where an event is recorded; outcome is appended, or duplicate when it was there already and nothing was written.';

grant usage on type durable.appended_event to durable_engine;

-- What read_events returns.
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

-- What the calls that change a run return.
create type durable.run_outcome as (
    run_uid uuid,
    attempt durable.counter,
    status text,
    outcome text,
    tools_executed text[],
    result json,
    error json,
    lease_expires_at timestamptz
);

comment on type durable.run_outcome is
'A run after the call. outcome of start_run: started, resumed, busy, awaiting (then without attempt: it is not the caller''s), settled (with its result); of settle_run and cancel_run: settled, already_settled; of renew_lease: renewed; of interrupt_run: interrupted, already_interrupted, settled.';

grant usage on type durable.run_outcome to durable_engine, durable_steward;

-- What list_runs returns.
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
    max_attempts durable.counter,
    lease_holder durable.identifier,
    lease_expires_at timestamptz,
    interrupted_with json,
    tools_executed text[],
    result json,
    error json,
    started_at timestamptz,
    settled_at timestamptz
);

comment on type durable.run_row is 'A run as callers see it: input, result and error equal to what was sent.';

-- What list_resumable returns: where a run is and whose, nothing that anybody said.
create type durable.resumable_run as (
    tenant_id durable.identifier,
    user_id durable.identifier,
    app_name durable.identifier,
    session_uid uuid,
    run_uid uuid,
    invocation_id durable.identifier,
    status text,
    attempt durable.counter,
    since timestamptz,
    unverified durable.counter
);

comment on type durable.resumable_run is
'A run that nobody executes. since: when its lease was over or given back; unverified: how many of its effects somebody has to look into first.';

grant usage on type durable.resumable_run to durable_janitor;

-- What begin_effect returns.
create type durable.begun_effect as (
    effect_uid uuid,
    run_uid uuid,
    idempotency_key text,
    outcome text,
    status text,
    step durable.counter,
    ordinal durable.counter,
    tool durable.identifier,
    args json,
    args_match boolean,
    result json,
    error json,
    attempt durable.counter,
    failures durable.counter,
    lease_expires_at timestamptz,
    begun_at timestamptz
);

comment on type durable.begun_effect is
'outcome: execute (call the tool now, with this idempotency_key), recorded (it has happened: result), in_flight (somebody is at it until lease_expires_at), unverified (nobody knows: resolve_effect), diverged (an earlier attempt did something that this one has not asked for: step, ordinal, tool, args, status and result of that). run_uid: whose attempt has it in hand. begun_at: when it was begun last; resolve_effect takes it as as_of. The other columns are those of the effect.';

grant usage on type durable.begun_effect to durable_engine;

-- What list_effects, finish_effect and resolve_effect return.
create type durable.effect_row as (
    effect_uid uuid,
    run_uid uuid,
    user_id durable.identifier,
    app_name durable.identifier,
    step durable.counter,
    ordinal durable.counter,
    tool durable.identifier,
    scope text,
    intent durable.identifier,
    args json,
    status text,
    attempt durable.counter,
    failures durable.counter,
    idempotency_key text,
    lease_expires_at timestamptz,
    first_begun_at timestamptz,
    begun_at timestamptz,
    finished_at timestamptz,
    result json,
    error json,
    evidence json,
    outcome text
);

comment on type durable.effect_row is
'An effect as callers see it, with its effective status. outcome of finish_effect: finished, already_finished; of resolve_effect: resolved, already_resolved.';

grant usage on type durable.effect_row to durable_engine, durable_steward;

-- What save_checkpoint and load_checkpoint return.
create type durable.checkpoint_row as (
    run_uid uuid,
    step durable.counter,
    schema_version durable.counter,
    event_seq durable.counter,
    attempt durable.counter,
    state json,
    created_at timestamptz,
    outcome text
);

comment on type durable.checkpoint_row is
'A checkpoint as callers see it. outcome of save_checkpoint: saved, already_saved; of load_checkpoint: loaded.';

grant usage on type durable.checkpoint_row to durable_engine;

-- What record_step returns.
create type durable.recorded_step as (
    run_uid uuid,
    step durable.counter,
    event_seq durable.counter,
    event_seqs integer[],
    outcome text
);

comment on type durable.recorded_step is
'event_seqs: the seq of each event, in the order given; event_seq: the last event of the session. outcome: saved, already_saved (an equal repeat), or recorded when no state was given.';

grant usage on type durable.recorded_step to durable_engine;

-- What list_tools, declare_tools and set_tool return.
create type durable.tool_row as (
    app_name durable.identifier,
    tool durable.identifier,
    replay_class text,
    updated_at timestamptz,
    outcome text
);

comment on type durable.tool_row is
'A tool as callers see it. outcome of declare_tools and set_tool: written, unchanged; of declare_tools also kept (what is stored is stricter than what was declared).';

grant usage on type durable.tool_row to durable_steward;
--! sql/tables/app_states.sql
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
--! sql/tables/user_states.sql
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
--! sql/tables/sessions.sql
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
-- For operators, who call a run off under the lock of its session; and for the maintainer, who finds its app.
grant select, update (updated_at) on durable.sessions to durable_steward;
grant select (tenant_id, session_uid, app_name, closed_at) on durable.sessions to durable_janitor;
--! sql/tables/events.sql
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

grant select on durable.events to durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;
grant insert on durable.events to durable_engine;
--! sql/tables/runs.sql
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
    first_attempt durable.counter not null default 1,
    max_attempts durable.counter,
    lease_holder durable.identifier,
    lease_expires_at timestamptz not null,
    interrupted_with jsonb,
    tools_executed text[],
    result jsonb,
    error jsonb,
    started_at timestamptz not null default clock_timestamp(),
    settled_at timestamptz,
    constraint runs_pkey primary key (tenant_id, run_uid),
    constraint runs_owner_key unique (tenant_id, user_id, run_uid),
    constraint runs_one_of_an_invocation unique (tenant_id, session_uid, invocation_id, generation),
    constraint runs_session_is_the_users foreign key (tenant_id, session_uid, user_id)
    references durable.sessions (tenant_id, session_uid, user_id),
    constraint runs_attempts_count_from_1 check (
        first_attempt between 1 and attempt and coalesce(max_attempts, 1) >= 1
    ),
    constraint runs_running_has_a_holder check ((status = 'running') = (lease_holder is not null)),
    constraint runs_only_settled_has_outcome check (
        settled_at is not null or num_nonnulls(tools_executed, result, error) = 0
    ),
    constraint runs_open_is_not_settled check (
        (status in ('running', 'interrupted', 'awaiting')) = (settled_at is null)
    ),
    constraint runs_tools_are_named check (array_position(tools_executed, null) is null)
);

-- What a worker may take up, longest waiting first.
create index runs_interrupted on durable.runs (lease_expires_at)
where status = 'interrupted';

create index runs_running on durable.runs (lease_expires_at)
where status = 'running';

comment on table durable.runs is
'One row for each invocation that is or was executed. The app reads its user''s own; start_run and settle_run write.';
comment on column durable.runs.generation is 'How many rewinds had removed the invocation''s opening message when it started.';
comment on column durable.runs.attempt is 'The fencing token: grows each time that a worker takes the run; a write that carries another is refused.';
comment on column durable.runs.first_attempt is 'The attempt it started with: 1, or more after a rewind of its invocation.';
comment on column durable.runs.max_attempts is
'How many attempts it may have; the interruption of the last one settles it as failed. NULL: no limit.';
comment on column durable.runs.lease_holder is 'Who executes it, in the worker''s own words; only the attempt counts.';
comment on column durable.runs.lease_expires_at is
'Until when its attempt holds it, by the clock of the database; once it is over or given back, since when it waits.';
comment on column durable.runs.interrupted_with is 'What its last attempt said when it gave the run back; NULL when it died.';
comment on column durable.runs.trigger is 'What started it, in the caller''s words.';
comment on column durable.runs.tools_executed is
'The tools this run called, sorted, each once; NULL as long as nobody knows. Goes from NULL to a value exactly once.';

select durable.protect_rows('durable.runs');
select durable.protect_write_once('durable.runs', 'tools_executed', 'result', 'error', 'settled_at');
select durable.protect_frozen(
    'durable.runs',
    'tenant_id', 'run_uid', 'session_uid', 'user_id', 'invocation_id', 'generation', 'trigger', 'input', 'started_at',
    'first_attempt'
);
select durable.protect_growing('durable.runs', 'attempt');
select durable.protect_transitions('durable.runs', 'run');

grant select on durable.runs to durable_app, durable_operator, durable_auditor, durable_engine;
grant
insert (
    tenant_id, run_uid, session_uid, user_id, invocation_id, generation, trigger, input, attempt, first_attempt,
    max_attempts, lease_holder, lease_expires_at
),
update (
    status, attempt, max_attempts, lease_holder, lease_expires_at, interrupted_with, tools_executed, result, error,
    settled_at
)
on durable.runs to durable_engine;
-- For operators: calling a run off.
grant select, update (status, lease_holder, tools_executed, result, error, settled_at)
on durable.runs to durable_steward;
-- For the maintainer: where a run stands, and nothing that anybody said.
grant
select (tenant_id, run_uid, session_uid, user_id, invocation_id, status, attempt, lease_expires_at),
update (status, lease_holder)
on durable.runs to durable_janitor;
--! sql/tables/effects.sql
-- The ledger of outside effects: a mail, a payment, a booking. A row is one try under one key, written before the tool
-- is called and finished after it. Of one key at most one row is not failed: nothing is done twice. A try that
-- certainly failed stays as it is, and the next one is a row of its own.
set local role durable_owner;

create table durable.effects (
    tenant_id durable.identifier not null,
    effect_uid uuid not null default durable.new_uid(),
    user_id durable.identifier not null,
    app_name durable.identifier not null,
    run_uid uuid not null,
    step durable.counter not null,
    ordinal durable.counter not null,
    tool durable.identifier not null,
    scope text not null,
    intent durable.identifier,
    args jsonb,
    args_digest durable.digest not null,
    failures durable.counter not null,
    idempotency_key text not null,
    provider_dedupes_for interval,
    first_begun_at timestamptz not null,
    status text not null default 'begun',
    held_by uuid not null,
    attempt durable.counter not null,
    begun_at timestamptz not null,
    lease_expires_at timestamptz not null,
    result jsonb,
    error jsonb,
    evidence durable.json_object,
    finished_at timestamptz,
    constraint effects_pkey primary key (tenant_id, effect_uid),
    constraint effects_run_is_the_users foreign key (tenant_id, user_id, run_uid)
    references durable.runs (tenant_id, user_id, run_uid),
    constraint effects_holder_is_a_run foreign key (tenant_id, held_by)
    references durable.runs (tenant_id, run_uid),
    constraint effects_intent_has_a_scope check (
        scope in ('run', 'user', 'tenant') and (scope = 'run') = (intent is null)
    ),
    constraint effects_begun_again_while_provider_dedupes check (
        case
            when begun_at = first_begun_at then true
            when not isfinite(begun_at) then false
            else (begun_at - first_begun_at < provider_dedupes_for) is true
        end
    ),
    constraint effects_only_success_has_result check (status = 'succeeded' or result is null),
    constraint effects_final_is_finished check ((status in ('succeeded', 'failed')) = (finished_at is not null))
);

-- The rule effect-once, one index a scope: of one key, one row that is not failed.
create unique index effects_once_in_a_run
on durable.effects (tenant_id, run_uid, step, tool, args_digest, ordinal)
where scope = 'run' and status <> 'failed';

create unique index effects_once_for_a_user
on durable.effects (tenant_id, user_id, app_name, intent)
where scope = 'user' and status <> 'failed';

create unique index effects_once_for_a_tenant
on durable.effects (tenant_id, app_name, intent)
where scope = 'tenant' and status <> 'failed';

-- How often a key has failed is part of what the provider is told: each count is there once.
create unique index effects_tries_in_a_run
on durable.effects (tenant_id, run_uid, step, tool, args_digest, ordinal, failures)
where scope = 'run';

create unique index effects_tries_for_a_user
on durable.effects (tenant_id, user_id, app_name, intent, failures)
where scope = 'user';

create unique index effects_tries_for_a_tenant
on durable.effects (tenant_id, app_name, intent, failures)
where scope = 'tenant';

-- What a user's own rows are found by.
create index effects_of_a_user on durable.effects (tenant_id, user_id, effect_uid);

-- What an attempt has in hand, for its renewals and its end; and what somebody may have to look into.
create index effects_open on durable.effects (tenant_id, held_by)
where status in ('begun', 'unverified');

comment on table durable.effects is
'One row for each try of an outside effect, written before the tool is called. begin_effect, finish_effect and resolve_effect write.';
comment on column durable.effects.run_uid is 'The run that made this try first.';
comment on column durable.effects.scope is 'What the key is unique in: the run, the user (and app), or the tenant (and app).';
comment on column durable.effects.intent is 'The caller''s stable name for what is meant, in Unicode''s form NFC; NULL for an effect of one run only.';
comment on column durable.effects.args is 'What the tool was called with: whoever resolves an unverified refund must see amount and recipient.';
comment on column durable.effects.failures is 'How many tries of this key had certainly failed before.';
comment on column durable.effects.idempotency_key is 'What the provider gets; made of the key and failures by the database.';
comment on column durable.effects.status is
'begun, succeeded, failed or unverified. A begun row whose lease is over counts as unverified: see effect_status.';
comment on column durable.effects.held_by is 'The run whose attempt has begun it last.';
comment on column durable.effects.attempt is 'The attempt of that run: only it may finish the effect.';

select durable.protect_rows('durable.effects');
select durable.protect_write_once('durable.effects', 'result', 'evidence', 'finished_at');
select durable.protect_frozen(
    'durable.effects',
    'tenant_id', 'effect_uid', 'user_id', 'app_name', 'run_uid', 'step', 'ordinal', 'tool', 'scope', 'intent', 'args',
    'args_digest', 'failures', 'idempotency_key', 'provider_dedupes_for', 'first_begun_at'
);
select durable.protect_transitions('durable.effects', 'effect');

-- Whoever begins a row again says when, so that the constraint above can tell whether the provider still knows the key.
create trigger _450_begun_again after update on durable.effects for each row
when (
    (old.status, new.status) = ('unverified', 'begun') and new.begun_at <= old.begun_at
    or (old.held_by, old.attempt) <> (new.held_by, new.attempt) and new.begun_at <= old.begun_at
)
execute function durable.refuse_begun_again();
alter table durable.effects enable always trigger _450_begun_again;

grant select on durable.effects to durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;
grant
insert (
    tenant_id, user_id, app_name, run_uid, step, ordinal, tool, scope, intent, args, args_digest, failures,
    idempotency_key, provider_dedupes_for, first_begun_at, held_by, attempt, begun_at, lease_expires_at
),
update (status, held_by, attempt, begun_at, lease_expires_at, result, error, evidence, finished_at)
on durable.effects to durable_engine;
grant update (status, result, error, evidence, finished_at) on durable.effects to durable_steward;
grant
select (tenant_id, effect_uid, status, held_by, attempt, lease_expires_at), update (status)
on durable.effects to durable_janitor;
--! sql/tables/effect_calls.sql
-- Which attempt of which run asked for which effect: one row each. What was asked for again on a resume is told from
-- what was not, and the calls in the log are matched to effects one by one, also those answered by another run's
-- effect.
set local role durable_owner;

create table durable.effect_calls (
    tenant_id durable.identifier not null,
    run_uid uuid not null,
    attempt durable.counter not null,
    effect_uid uuid not null,
    user_id durable.identifier not null,
    called_at timestamptz not null default clock_timestamp(),
    constraint effect_calls_pkey primary key (tenant_id, run_uid, attempt, effect_uid),
    constraint effect_calls_run_is_the_users foreign key (tenant_id, user_id, run_uid)
    references durable.runs (tenant_id, user_id, run_uid),
    constraint effect_calls_effect_exists foreign key (tenant_id, effect_uid)
    references durable.effects (tenant_id, effect_uid)
);

comment on table durable.effect_calls is 'One row for each attempt of a run that asked for an effect; written by begin_effect.';

select durable.protect_append_only('durable.effect_calls');

grant select on durable.effect_calls to durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;
grant insert (tenant_id, run_uid, attempt, effect_uid, user_id) on durable.effect_calls to durable_engine;
grant select on durable.effect_calls to durable_janitor;
--! sql/tables/checkpoints.sql
-- Where a resumed run goes on from: one row a step, append-only, without gaps. The message history is not copied: it is
-- the event log up to event_seq, and state is the rest.
set local role durable_owner;

create table durable.checkpoints (
    tenant_id durable.identifier not null,
    run_uid uuid not null,
    step durable.counter not null,
    previous_step durable.counter,
    user_id durable.identifier not null,
    attempt durable.counter not null,
    schema_version durable.counter not null,
    event_seq durable.counter not null,
    state jsonb not null,
    digest durable.digest not null,
    created_at timestamptz not null default clock_timestamp(),
    constraint checkpoints_pkey primary key (tenant_id, run_uid, step),
    constraint checkpoints_run_is_the_users foreign key (tenant_id, user_id, run_uid)
    references durable.runs (tenant_id, user_id, run_uid),
    constraint checkpoints_step_before_exists foreign key (tenant_id, run_uid, previous_step)
    references durable.checkpoints (tenant_id, run_uid, step),
    constraint checkpoints_steps_have_no_gap check (
        case when step <= 1 and previous_step is null then true else (previous_step = step - 1) is true end
    )
);

comment on table durable.checkpoints is
'The state of a run after a step. Rows are added by save_checkpoint and record_step and never change.';
comment on column durable.checkpoints.step is 'From 0 or 1, one by one.';
comment on column durable.checkpoints.schema_version is 'The version of the program''s own form of state, in the caller''s count.';
comment on column durable.checkpoints.event_seq is 'The last event of the session when it was saved.';

select durable.protect_append_only('durable.checkpoints');

grant select on durable.checkpoints to durable_app, durable_operator, durable_auditor, durable_engine;
grant insert (tenant_id, run_uid, step, previous_step, user_id, attempt, schema_version, event_seq, state, digest)
on durable.checkpoints to durable_engine;
--! sql/tables/tools.sql
-- What an app's tools are like, for the verdicts: an unknown tool has an effect. Written by operators only; an app that
-- could call its own refund read_only would decide on its own replays.
set local role durable_owner;

create table durable.tools (
    tenant_id durable.identifier not null,
    app_name durable.identifier not null,
    tool durable.identifier not null,
    replay_class text not null,
    updated_at timestamptz not null default clock_timestamp(),
    constraint tools_pkey primary key (tenant_id, app_name, tool),
    constraint tools_class_is_known check (replay_class in ('effect', 'keyed', 'read_only'))
);

comment on table durable.tools is
'The replay class of an app''s tools. declare_tools and set_tool write, each with an audit row; the app reads its tenant''s.';
comment on column durable.tools.replay_class is
'effect: calling it again may do something twice, unless the ledger has it under an intent. keyed: the tool itself makes a repeat harmless. read_only: it changes nothing.';

select durable.protect_frozen('durable.tools', 'tenant_id', 'app_name', 'tool');
select durable.protect_rows('durable.tools');

grant select on durable.tools to durable_app, durable_operator, durable_auditor, durable_steward;
grant insert (tenant_id, app_name, tool, replay_class), update (replay_class, updated_at)
on durable.tools to durable_steward;
--! sql/tables/audit_log.sql
-- What operators and maintainers did, and what an app resolved on its own word. Written by the functions they call,
-- through back roles, in the same transaction; who and when are stamped by the database, so nobody can forge or omit a
-- row.
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
'Acts of operators and maintainers, and effects that an app resolved; one row each, append-only. Operators read their tenant''s, auditors all, the app none.';
comment on column durable.audit_log.login is 'The login that acted, as the database knows it.';
comment on column durable.audit_log.acted_by is 'The user_id an operator acted as; NULL for a maintainer, who acts as nobody.';

select durable.protect_append_only('durable.audit_log');

grant select on durable.audit_log to durable_operator, durable_auditor;
-- Neither acted_at nor login: their defaults are the stamp.
grant insert (tenant_id, acted_by, action, subject_kind, subject_uid, reason, detail)
on durable.audit_log to durable_engine, durable_steward, durable_janitor;
--! sql/rules/sessions.sql
-- A session as calls find it, lock it, refuse it and show it.
set local role durable_owner;

-- A session by its uid, under the caller's own row policies; another user's is as absent as one that never was.
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

comment on function durable.find_session is
'The session. Raises 42W04 when the caller''s policies show none, 55W01 for a closed one unless closed_too, 22W03 for NULL.';

revoke all on function durable.find_session from public;
grant execute on function durable.find_session to durable_app, durable_operator, durable_auditor;

set local role durable_engine;

-- Takes the lock that comes first: the session row. What the next statement reads is at least as new as this lock
-- under READ COMMITTED; under stricter levels a row that moved on since the snapshot gives 40001.
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

comment on function durable.lock_session is
'The session, locked FOR NO KEY UPDATE. Raises 42W04 when the policies show none, 55W01 for a closed one unless closed_too, 22W03 for NULL.';

revoke all on function durable.lock_session from public;

set local role durable_owner;

-- Raises the one answer to a session_uid that leads to no row, the same for a foreign session and for none; or says
-- that the session is closed.
create or replace function durable.refuse_session(
    session_uid uuid, closed_at timestamptz default null, close_reason text default null
)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if refuse_session.session_uid is null then
        perform durable.refuse_argument(
            'session_uid',
            'session_uid is missing',
            'Pass the session_uid that open_session returned.'
        );
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

comment on function durable.refuse_session is
'Raises 55W01 for a closed session, else 42W04; 22W03 for NULL.';

revoke all on function durable.refuse_session from public;
grant execute on function durable.refuse_session to durable_app, durable_operator, durable_auditor, durable_engine;

-- A row of sessions in the form that callers get; the head of the chain stays inside.
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

comment on function durable.session_as_row is 'A session as callers see it.';

revoke all on function durable.session_as_row from public;
grant execute on function durable.session_as_row to durable_app, durable_operator, durable_engine;
--! sql/rules/state.sql
-- The state of session, user and app: how the keys of a delta are shared out by prefix, and merged.
set local role durable_owner;

-- Sorts the keys of a state delta by prefix: app: and user: go to the shared states without it, temp: goes nowhere,
-- everything else belongs to the session.
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

comment on function durable.split_state is
'The parts of a state delta for the session, the app and the user, prefixes removed; temp: keys are dropped.';

revoke all on function durable.split_state from public;
grant execute on function durable.split_state to durable_engine;

set local role durable_engine;

-- Merges a state delta: the app: and user: parts into their rows, app first, one order for every caller; the rest into
-- the state of the session, which is returned for the caller's own update. temp: keys go nowhere.
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

comment on function durable.merge_state is
'Writes the shared parts of a state delta and returns the session''s merged state; later keys win.';

revoke all on function durable.merge_state from public;
--! sql/rules/chain.sql
-- The chain of a session's events: what is hashed, and in which form.
set local role durable_owner;

-- SHA-256 of a stored JSON value: over the text of its jsonb, which has one form for key order, white space and
-- escapes.
create or replace function durable.content_digest(content jsonb)
returns bytea
language sql stable parallel safe
return sha256(convert_to(coalesce(content::text, ''), 'UTF8'));

comment on function durable.content_digest is 'SHA-256 of the jsonb''s text in UTF-8; of the empty text for NULL.';

revoke all on function durable.content_digest from public;
grant execute on function durable.content_digest to durable_app, durable_operator, durable_auditor, durable_engine;

-- The hash that chains an event to the one before it. Canonical form, version 1: the text of a jsonb array of text,
-- integers and hex only, so that no setting of a session (TimeZone, DateStyle, bytea_output) can change it.
-- content and metadata enter by their SHA-256, so the chain can be checked without them.
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

comment on function durable.event_hash is
'SHA-256 over every column of the event and the previous event''s hash (NULL for the first one), in canonical form 1.';

revoke all on function durable.event_hash from public;
grant execute on function durable.event_hash to durable_app, durable_operator, durable_auditor, durable_engine;
--! sql/rules/rewinds.sql
-- What a rewind takes back, and which generation of an invocation stands after it. Events stay in the log.
set local role durable_owner;

-- The generation that the next event of an invocation and its run belong to: that of the opening message which stands,
-- or one more than the last when rewinds have removed them all. A rewound turn can so be said again, and what was
-- rewound stays in the log.
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

comment on function durable.current_generation is
'The generation an invocation is in: 0, and one more each time that a rewind removed its opening message.';

revoke all on function durable.current_generation from public;
grant execute on function durable.current_generation to durable_app, durable_operator, durable_auditor, durable_engine;

-- Says whether a rewind has taken an event back. Walks the rewinds from the newest backward, as ADK does: each one that
-- is still standing removes all from its target on, earlier rewinds included, and the walk goes on before the target.
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

comment on function durable.is_rewound is
'True when a later rewind, not taken back itself, reaches back to this seq or beyond.';

revoke all on function durable.is_rewound from public;
grant execute on function durable.is_rewound to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;

-- Where a rewind event reaches back to: the first event of the invocation that ADK puts into the event's actions;
-- callers of other frameworks may use the same key. Refuses (22W04) a rewind to what the session does not hold.
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

comment on function durable.rewind_target is
'The first seq that metadata.actions.rewind_before_invocation_id takes back; NULL when the event is no rewind. Raises 22W04.';

revoke all on function durable.rewind_target from public;
grant execute on function durable.rewind_target to durable_engine;

set local role durable_engine;

-- A rewind must leave the runs alone that are not settled: what their workers still record would belong to another
-- generation, or to nobody. Called when the rewind is in the log and the session row is not updated yet.
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
            message = format('the rewind would take back invocation %L, whose run is not settled', v_running),
            detail = format('it reaches back to seq %s', rewind.rewind_to),
            hint = 'Settle that run first, or call it off with cancel_run; then rewind.',
            schema = 'durable',
            table = 'runs';
    end if;
end
$$;

comment on function durable.check_rewind is
'Raises 55W08 when the rewind would take back events of a run that executes, or move its invocation to another generation.';

revoke all on function durable.check_rewind from public;
--! sql/rules/messages/parts.sql
-- What every format reads a part of a message with: the name of a called tool, and whether anything is said.
set local role durable_owner;

-- The name of a called tool, for every format: a call without a usable name is still a call.
-- Promises a text that is never null or blank, whatever JSON stands where the name should be.
create or replace function durable.tool_name(name jsonb) returns text
language sql immutable parallel safe
return coalesce(
    pg_catalog.jsonb_path_query_first(name, 'strict $ ? (@ like_regex "[^[:space:]]")') #>> '{}', '(unnamed)'
);

comment on function durable.tool_name is
'The name of a called tool as text; (unnamed) when it is missing, null, blank or not a string.';

revoke all on function durable.tool_name from public;
grant execute on function durable.tool_name to durable_engine, durable_app, durable_operator, durable_auditor;

-- Whether a part that is neither a call nor a result says something: text that isn't empty, media, data, odd shapes.
-- What is not recognised counts as said: a user's words are then never taken for silence. null is an absent field.
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

comment on function durable.part_says_something is
'Whether a part that is no call and no result says anything: not if it is null, empty or holds nothing but null.';

revoke all on function durable.part_says_something from public;
grant execute on function durable.part_says_something to durable_engine, durable_app, durable_operator, durable_auditor;
--! sql/rules/messages/adk.sql
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

comment on function durable.adk_mark is
'The tool an ADK or Gemini part calls; empty text for a function, tool or code response; null for any other part.';

revoke all on function durable.adk_mark from public;
grant execute on function durable.adk_mark to durable_engine, durable_app, durable_operator, durable_auditor;
--! sql/rules/messages/anthropic.sql
-- Anthropic: a content block is known by its type. tool_use, server_tool_use, mcp_tool_use (and agent.*_tool_use) are
-- calls; tool_result, web_search_tool_result and every other *tool_result are results.
set local role durable_owner;

create or replace function durable.anthropic_mark(part jsonb, type text) returns text
language sql immutable parallel safe
return case
    when pg_catalog."right"(type, 8) = 'tool_use' then durable.tool_name(part -> 'name')
    when pg_catalog."right"(type, 11) = 'tool_result' then ''
end;

comment on function durable.anthropic_mark is
'The tool an Anthropic content block of this type uses; empty text for a tool result; null for any other block.';

revoke all on function durable.anthropic_mark from public;
grant execute on function durable.anthropic_mark to durable_engine, durable_app, durable_operator, durable_auditor;
--! sql/rules/messages/openai_responses.sql
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

comment on function durable.openai_responses_mark is
'The tool an OpenAI Responses item of this type calls; empty text for the output of a call; null for any other item.';

revoke all on function durable.openai_responses_mark from public;
grant execute on function durable.openai_responses_mark to
durable_engine, durable_app, durable_operator, durable_auditor;
--! sql/rules/messages/openai_chat.sql
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

comment on function durable.openai_chat_calls is
'The tools an OpenAI chat message calls, in order, but for those that its content blocks hold too (same id and name).';

revoke all on function durable.openai_chat_calls from public;
grant execute on function durable.openai_chat_calls to durable_engine, durable_app, durable_operator, durable_auditor;
--! sql/rules/messages/reading.sql
-- Reading a message in any format, whatever its client claims of it.
set local role durable_owner;

-- What the store needs to know of a message in any format: the tools it calls, and whether it says something itself.
-- One entry a call, repeats kept, a nameless one as (unnamed). Never raises: an odd shape counts as said.
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

comment on function durable.read_message is
'The tools a message calls, by name in order, and whether some part is neither a function response nor a tool result.';

revoke all on function durable.read_message from public;
grant execute on function durable.read_message to durable_engine, durable_app, durable_operator, durable_auditor;

-- A quick look before read_message: false only when no format could find a tool call in this content. Every mark of a
-- call is a key or a type that holds one of these pieces; texts that hold one by chance are merely read in full.
create or replace function durable.may_call_tools(content jsonb)
returns boolean
language sql immutable parallel safe
return content::text ~ '_call|Call|tool_use|_code|Code|program';

comment on function durable.may_call_tools is
'False only for content in which read_message finds no tool call; NULL for NULL. One pass over the text.';

revoke all on function durable.may_call_tools from public;
grant execute on function durable.may_call_tools to durable_app, durable_operator, durable_auditor, durable_engine;

-- Walks a message once and counts what it holds, as one format sees it (adk, openai_chat, openai_responses, anthropic)
-- or, with format null, as all four do. Takes a message, a part, a list of either, or a provider's whole answer.
-- Never raises, whatever JSON it is given. A mark belongs to one format and is read in one place: one entry a call.
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

comment on function durable.scan_message is
'Tool calls by name, in order, results and other parts of a message, as one format sees it or all four (null).';

revoke all on function durable.scan_message from public;
grant execute on function durable.scan_message to durable_engine, durable_app, durable_operator, durable_auditor;
--! sql/rules/runs.sql
-- A run as calls find it, refuse it and show it.
set local role durable_owner;

-- A run by its uid, under the caller's own row policies; another user's is as absent as one that never was.
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

comment on function durable.find_run is
'The run. Raises 42W05 when the caller''s policies show none, 22W03 for NULL.';

revoke all on function durable.find_run from public;
grant execute on function durable.find_run to durable_app, durable_operator, durable_auditor;

-- Raises the one answer to a run_uid that leads to no row: the same for a foreign run and for none.
create or replace function durable.refuse_run(run_uid uuid)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if refuse_run.run_uid is null then
        perform durable.refuse_argument(
            'run_uid',
            'run_uid is missing',
            'Pass the run_uid that start_run returned.'
        );
    end if;
    raise exception using
        errcode = '42W05',
        message = format('there is no run %s here', refuse_run.run_uid),
        hint = 'Check tenant and user of act_as, and use the run_uid that start_run returned to the same user.',
        schema = 'durable',
        table = 'runs';
end
$$;

comment on function durable.refuse_run is 'Raises 42W05, or 22W03 for NULL.';

revoke all on function durable.refuse_run from public;
grant execute on function durable.refuse_run to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;

-- A row of runs in the form that callers get it after a change. The attempt is the token of whoever executes the run:
-- a caller who was just told that it is another's gets none to go on with by mistake.
create or replace function durable.run_as_outcome(run durable.runs, outcome text)
returns durable.run_outcome
language sql stable
begin atomic
    select
        (run).run_uid,
        case when run_as_outcome.outcome not in ('busy', 'awaiting') then (run).attempt end,
        (run).status,
        run_as_outcome.outcome,
        (run).tools_executed,
        durable.unescape_json((run).result),
        durable.unescape_json((run).error),
        case when (run).status = 'running' then (run).lease_expires_at end;
end;

comment on function durable.run_as_outcome is
'A run as start_run, settle_run and their like return it; without its attempt when the outcome is busy or awaiting.';

revoke all on function durable.run_as_outcome from public;
grant execute on function durable.run_as_outcome to durable_engine, durable_steward;
--! sql/rules/holding.sql
-- Holding a run: only the attempt that has it, while its lease lasts, writes for it.
set local role durable_owner;

-- Does this attempt hold the run now, by the clock of the database and not by any that an application can set? The one
-- test behind every fenced write.
create or replace function durable.holds_run(run durable.runs, attempt integer)
returns boolean
language sql volatile
return (run).status = 'running' and (run).attempt = holds_run.attempt and (run).lease_expires_at > clock_timestamp();

comment on function durable.holds_run is
'True when the run is running, the attempt is its current one and the lease is not over; NULL for no attempt.';

revoke all on function durable.holds_run from public;
grant execute on function durable.holds_run to durable_engine;

set local role durable_engine;

-- Takes the lock of a run for an attempt that writes for it, and refuses whoever does not hold it. The session's lock
-- goes first, as everywhere: a caller may go on in the same transaction with an append. A renewal is alone, and leaves
-- it out.
create or replace function durable.lock_attempt(run_uid uuid, attempt integer, session_too boolean default true)
returns durable.runs
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_run durable.runs;
begin
    if lock_attempt.session_too then
        perform
        from durable.runs as r
        inner join durable.sessions as s on s.tenant_id = r.tenant_id and s.session_uid = r.session_uid
        where r.run_uid = lock_attempt.run_uid
        for no key update of s;
    end if;
    select r.* into v_run
    from durable.runs as r
    where r.run_uid = lock_attempt.run_uid
    for no key update;
    if not found then
        perform durable.refuse_run(lock_attempt.run_uid);
    elsif durable.holds_run(v_run, lock_attempt.attempt) is not true then
        perform durable.refuse_attempt(v_run, lock_attempt.attempt);
    end if;
    return v_run;
end
$$;

comment on function durable.lock_attempt is
'The run, locked FOR NO KEY UPDATE as its session is, and held by this attempt. Raises 22W03 for no run, 42W05, 55W03, 55W04.';

revoke all on function durable.lock_attempt from public;

set local role durable_owner;

-- Says why an attempt may write nothing: the run is settled, the attempt is missing, or it does not hold the run.
create or replace function durable.refuse_attempt(run durable.runs, attempt integer)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if run.settled_at is not null then
        raise exception using
            errcode = '55W03',
            message = format('the run of invocation %L has %s', run.invocation_id, run.status),
            detail = format('run %s, settled at %s', run.run_uid, run.settled_at),
            hint = 'Nothing more is recorded for a settled run; a new turn gets a new invocation_id.',
            schema = 'durable',
            table = 'runs';
    end if;
    if refuse_attempt.attempt is null then
        raise exception using
            errcode = '55W04',
            message = format('no attempt is given, and run %s is %s', run.run_uid, run.status),
            detail = 'Only the attempt that holds a run writes for it.',
            hint = 'Pass the attempt that start_run returned to this worker.',
            schema = 'durable',
            table = 'runs';
    end if;
    raise exception using
        errcode = '55W04',
        message = format('attempt %s does not hold run %s', refuse_attempt.attempt, run.run_uid),
        detail = case
            when refuse_attempt.attempt <> run.attempt then format('current attempt: %s', run.attempt)
            when run.status = 'running' then format('its lease ran out at %s', run.lease_expires_at)
            else format('the run is %s', run.status)
        end,
        hint = 'Stop this worker: another one may have taken the run. start_run takes it up again when it is free.',
        schema = 'durable',
        table = 'runs';
end
$$;

comment on function durable.refuse_attempt is
'Raises 55W03 for a settled run, else 55W04: the attempt is missing, stale, or its lease is over.';

revoke all on function durable.refuse_attempt from public;
grant execute on function durable.refuse_attempt to durable_engine, durable_steward;
--! sql/rules/settling.sql
-- Settling a run: the last write, with the tools that are recorded for it.
set local role durable_owner;

-- Takes the locks of a settlement in their order: the session row, by an update that an append under an older snapshot
-- trips over, then the run row. A settled run never changes and needs no lock. Closed sessions too: a run that was
-- executing may still say how it ended.
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

comment on function durable.lock_run is
'The run, its session updated and both rows locked. Raises 42W05 when the policies show none, 22W03 for NULL.';

revoke all on function durable.lock_run from public;
grant execute on function durable.lock_run to durable_engine, durable_steward;

-- The last write of a run, by whoever has its locks and the right to end it: status, result, error, and the tools it
-- called, which must name every recorded call and are derived when not given.
create or replace function durable.settle_locked_run(run durable.runs, wanted durable.runs)
returns durable.run_outcome
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_run durable.runs := settle_locked_run.run;
    v_recorded constant text[] := durable.recorded_tools(v_run);
begin
    if wanted.tools_executed is not null and not wanted.tools_executed @> coalesce(v_recorded, '{}') then
        raise exception using
            errcode = '23W08',
            message = format('tools_executed leaves out recorded tool calls of run %s', v_run.run_uid),
            detail = format(
                'left out: %s',
                (select string_agg(tool.name, ', ') from unnest(v_recorded) as tool (name) where tool.name <> all (wanted.tools_executed))
            ),
            hint = 'Name them too, or leave tools_executed out: the database derives it from what is recorded.',
            schema = 'durable',
            table = 'runs',
            column = 'tools_executed';
    end if;

    update durable.runs as r
    set
        status = wanted.status,
        result = wanted.result,
        error = wanted.error,
        tools_executed = coalesce(wanted.tools_executed, v_recorded),
        lease_holder = null,
        settled_at = clock_timestamp()
    where r.tenant_id = v_run.tenant_id and r.run_uid = v_run.run_uid
    returning r.* into strict v_run;
    return durable.run_as_outcome(v_run, 'settled');
end
$$;

comment on function durable.settle_locked_run is
'Settles a run as wanted; outcome settled. The caller holds the locks of lock_run. Raises 23W08.';

revoke all on function durable.settle_locked_run from public;
grant execute on function durable.settle_locked_run to durable_engine, durable_steward;

-- The tools that log and ledger hold for a run, sorted, each once: found in its events, named by its caller, or asked
-- for as an effect. NULL when nothing but user texts is recorded: then nobody knows what it did, and {} would be a
-- guess.
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
        array_agg(distinct found.tool collate "C" order by found.tool collate "C") filter (where found.tool is not null),
        coalesce(bool_or(found.speaks), false)
    into v_tools, v_recorded
    from (
        select tool.name as tool, e.author <> 'user' or tool.name is not null as speaks
        from durable.events as e
        left join lateral (select unnest(e.tool_calls) union all select unnest(e.extra_tool_calls)) as tool (name) on true
        where e.tenant_id = run.tenant_id
            and e.session_uid = run.session_uid
            and e.invocation_id = run.invocation_id
            -- After a partial rewind an older generation may still stand in part; what stands, happened.
            and (e.generation = run.generation or (v_session.rewinds > 0 and not durable.is_rewound(v_session, e.seq)))
        union all
        select e.tool::text, true
        from durable.effect_calls as c
        inner join durable.effects as e on e.tenant_id = c.tenant_id and e.effect_uid = c.effect_uid
        where c.tenant_id = run.tenant_id and c.run_uid = run.run_uid
    ) as found;
    if not v_recorded then
        return null;
    end if;
    return coalesce(v_tools, '{}');
end
$$;

comment on function durable.recorded_tools is
'The distinct tools recorded for a run; {} when none is called; NULL when there is nothing but the user''s events.';

revoke all on function durable.recorded_tools from public;
grant execute on function durable.recorded_tools to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;

-- The error of a run that is given up because its last attempt was interrupted: how many it had, and what the last one
-- said.
create or replace function durable.attempts_used_up(run durable.runs, max_attempts integer, interrupted_with jsonb)
returns jsonb
language sql stable
return jsonb_build_object(
    'reason', 'max_attempts',
    'attempts', (run).attempt - (run).first_attempt + 1,
    'max_attempts', attempts_used_up.max_attempts,
    'interrupted_with', attempts_used_up.interrupted_with
);

comment on function durable.attempts_used_up is
'{"reason": "max_attempts", "attempts", "max_attempts", "interrupted_with"}: null there for an attempt that died.';

revoke all on function durable.attempts_used_up from public;
grant execute on function durable.attempts_used_up to durable_engine;
--! sql/rules/effects.sql
-- An effect as calls read its status, show it, and refuse another outcome.
set local role durable_owner;

-- What the status of an effect is now: one that was begun and whose lease is over is unverified to everybody, by the
-- clock of the database, whether or not somebody has swept.
create or replace function durable.effect_status(status text, lease_expires_at timestamptz)
returns text
language sql volatile
return case
    when effect_status.status = 'begun' and effect_status.lease_expires_at <= clock_timestamp() then 'unverified'
    else effect_status.status
end;

comment on function durable.effect_status is
'The effective status of a row of durable.effects: unverified for a begun one whose lease is over.';

revoke all on function durable.effect_status from public;
grant execute on function durable.effect_status to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward, durable_janitor;

-- A row of effects in the form that callers get.
create or replace function durable.effect_as_row(effect durable.effects, outcome text)
returns durable.effect_row
language sql volatile
begin atomic
    select
        (effect).effect_uid,
        (effect).run_uid,
        (effect).user_id,
        (effect).app_name,
        (effect).step,
        (effect).ordinal,
        (effect).tool,
        (effect).scope,
        (effect).intent,
        durable.unescape_json((effect).args),
        durable.effect_status((effect).status, (effect).lease_expires_at),
        (effect).attempt,
        (effect).failures,
        (effect).idempotency_key,
        (effect).lease_expires_at,
        (effect).first_begun_at,
        (effect).begun_at,
        (effect).finished_at,
        durable.unescape_json((effect).result),
        durable.unescape_json((effect).error),
        durable.unescape_json((effect).evidence),
        effect_as_row.outcome;
end;

comment on function durable.effect_as_row is 'An effect as callers see it.';

revoke all on function durable.effect_as_row from public;
grant execute on function durable.effect_as_row to durable_app, durable_operator, durable_engine, durable_steward;

-- Raises the one answer to an effect_uid that leads to no row: the same for a foreign effect and for none.
create or replace function durable.refuse_effect(effect_uid uuid)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if refuse_effect.effect_uid is null then
        perform durable.refuse_argument(
            'effect_uid',
            'effect_uid is missing',
            'Pass the effect_uid that begin_effect or list_effects returned.'
        );
    end if;
    raise exception using
        errcode = '42W07',
        message = format('there is no effect %s here', refuse_effect.effect_uid),
        hint = 'Check tenant and user of act_as, and use the effect_uid that begin_effect returned to the same user.',
        schema = 'durable',
        table = 'effects';
end
$$;

comment on function durable.refuse_effect is 'Raises 42W07, or 22W03 for NULL.';

revoke all on function durable.refuse_effect from public;
grant execute on function durable.refuse_effect to durable_engine, durable_steward;

-- An outcome as a caller gives it: a status that the call may set, a result for what happened, an error for what did
-- not.
create or replace function durable.check_finish(status text, result jsonb, error jsonb, allowed text[])
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if (check_finish.status = any (check_finish.allowed)) is not true then
        perform durable.refuse_argument(
            'status',
            format('status is %s, which is no outcome to record', coalesce(quote_literal(check_finish.status), 'NULL')),
            'succeeded: it happened. failed: it certainly did not. Whatever may have happened is unverified.',
            format('The outcomes are %s.', array_to_string(check_finish.allowed, ', '))
        );
    end if;
    if check_finish.result is not null and check_finish.status <> 'succeeded'
        or check_finish.error is not null and check_finish.status = 'succeeded'
    then
        perform durable.refuse_argument(
            case when check_finish.status = 'succeeded' then 'error' else 'result' end,
            format(
                '%s goes with no outcome %s',
                case when check_finish.status = 'succeeded' then 'an error' else 'a result' end, check_finish.status
            ),
            'A result is of what succeeded, an error of what failed or is unverified.'
        );
    end if;
end
$$;

comment on function durable.check_finish is 'Raises 22W03, naming the argument.';

revoke all on function durable.check_finish from public;
grant execute on function durable.check_finish to durable_engine, durable_steward;

-- Raises 23W02: the outcome of an effect is recorded, and another one was to take its place.
create or replace function durable.refuse_outcome(effect durable.effects, status text)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using
        errcode = '23W02',
        message = format('effect %s has %s already', (effect).effect_uid, (effect).status),
        detail = format(
            'recorded at %s%s; refused: %s%s', (effect).finished_at,
            case when (effect).evidence is not null then ' by somebody who looked' end, refuse_outcome.status,
            case when (effect).status = refuse_outcome.status then ' with another result, error or evidence' end
        ),
        hint = 'The outcome stays. If both seem true the tool may have acted twice: look at the provider, with idempotency_key.',
        schema = 'durable',
        table = 'effects',
        column = case when (effect).status = refuse_outcome.status then 'result' else 'status' end,
        constraint = '_200_write_once';
end
$$;

comment on function durable.refuse_outcome is 'Raises 23W02; DETAIL has the recorded status and the refused one.';

revoke all on function durable.refuse_outcome from public;
grant execute on function durable.refuse_outcome to durable_engine, durable_steward;
--! sql/rules/effect_keys.sql
-- What an effect is known by: the digest of its arguments, and the key that its provider gets. Made by the database, so
-- that every language gets the same.
set local role durable_owner;

-- The fingerprint of an effect's arguments, made by the database: the same from every language. Almost all values are
-- in canonical form as jsonb writes them; the others are rewritten first.
create or replace function durable.args_digest(args jsonb)
returns bytea
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_text text := coalesce(args_digest.args::text, 'null');
begin
    -- A number that ends in a zero behind its point, or letters outside ASCII that are not in form NFC.
    if v_text ~ '[.][0-9]*0([^0-9]|$)' or (octet_length(v_text) <> char_length(v_text) and v_text is not nfc normalized) then
        v_text := durable.canonical_json(args_digest.args)::text;
    end if;
    return sha256(convert_to(v_text, 'UTF8'));
exception
    when statement_too_complex or program_limit_exceeded then
        perform durable.refuse_large_json('args', sqlerrm);
end
$$;

comment on function durable.args_digest is
'SHA-256 over the canonical form of the arguments; no arguments count as null. Raises 22W02 for nesting beyond the server''s stack.';

revoke all on function durable.args_digest from public;
grant execute on function durable.args_digest to durable_engine;

-- The form in which two arguments are compared. Equal are: another order of keys, the last of duplicate keys (both by
-- jsonb), 1, 1.0 and 1e0, and texts that Unicode holds for the same (composed and decomposed accents: form NFC).
create or replace function durable.canonical_json(value jsonb)
returns jsonb
language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
as $$
begin
    return case jsonb_typeof(canonical_json.value)
        when 'object' then coalesce(
            (
                select jsonb_object_agg(
                    -- Two keys that Unicode holds for the same stay two: their values must both count.
                    case when m.alike = 1 then normalize(m.key, nfc) else m.key end,
                    case
                        when jsonb_typeof(m.value) in ('object', 'array') then durable.canonical_json(m.value)
                        else durable.canonical_scalar(m.value)
                    end
                )
                from (
                    select e.key, e.value, count(*) over (partition by normalize(e.key, nfc)) as alike
                    from jsonb_each(canonical_json.value) as e
                ) as m
            ),
            '{}'
        )
        when 'array' then coalesce(
            (
                select jsonb_agg(
                    case
                        when jsonb_typeof(m.value) in ('object', 'array') then durable.canonical_json(m.value)
                        else durable.canonical_scalar(m.value)
                    end
                    order by m.place
                )
                from jsonb_array_elements(canonical_json.value) with ordinality as m (value, place)
            ),
            '[]'
        )
        else durable.canonical_scalar(canonical_json.value)
    end;
end
$$;

comment on function durable.canonical_json is
'The value with numbers without trailing zeros and texts in Unicode''s form NFC; equal values have equal text.';

revoke all on function durable.canonical_json from public;
grant execute on function durable.canonical_json to durable_engine;

-- canonical_json for a text, a number, true, false or null.
create or replace function durable.canonical_scalar(value jsonb)
returns jsonb
language sql immutable
return case jsonb_typeof(value)
    when 'string' then to_jsonb(normalize(value #>> '{}', nfc))
    when 'number' then to_jsonb(trim_scale((value #>> '{}')::numeric))
    else value
end;

comment on function durable.canonical_scalar is 'The value: a text in Unicode''s form NFC, a number without trailing zeros.';

revoke all on function durable.canonical_scalar from public;
grant execute on function durable.canonical_scalar to durable_engine;

-- What a provider gets to know a repeat by: a hash over tenant, scope and key of the effect, and over how often it has
-- certainly failed, so that a provider that remembers a failure is asked anew. No personal data, and the same when the
-- row was lost with its transaction after the provider had heard.
create or replace function durable.idempotency_key(effect durable.effects)
returns text
language sql stable
return 'dpg_' || left(
    encode(
        sha256(
            convert_to(
                case (effect).scope
                    when 'run' then jsonb_build_array(
                        'run', (effect).tenant_id, (effect).run_uid, (effect).step, (effect).tool, (effect).ordinal,
                        encode((effect).args_digest, 'hex'), (effect).failures
                    )
                    when 'user' then jsonb_build_array(
                        'user', (effect).tenant_id, (effect).user_id, (effect).app_name, (effect).intent,
                        (effect).failures
                    )
                    else jsonb_build_array(
                        'tenant', (effect).tenant_id, (effect).app_name, (effect).intent, (effect).failures
                    )
                end::text,
                'UTF8'
            )
        ),
        'hex'
    ),
    48
);

comment on function durable.idempotency_key is '52 characters of ASCII, the same for the same key and count of failures.';

revoke all on function durable.idempotency_key from public;
grant execute on function durable.idempotency_key to durable_engine;
--! sql/rules/tries.sql
-- The rows of one key in the ledger: the newest try, the next one, one begun again, and what an earlier attempt left.
set local role durable_engine;

-- The newest row under the key of an effect, locked; all NULL when there is none.
create or replace function durable.latest_try(wanted durable.effects)
returns durable.effects
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_found durable.effects;
begin
    if (wanted).scope = 'run' then
        select e.* into v_found
        from durable.effects as e
        where e.tenant_id = (wanted).tenant_id
            and e.run_uid = (wanted).run_uid
            and e.step = (wanted).step
            and e.tool = (wanted).tool
            and e.args_digest = (wanted).args_digest
            and e.ordinal = (wanted).ordinal
            and e.scope = 'run'
        order by e.failures desc
        limit 1
        for no key update;
    elsif (wanted).scope = 'user' then
        select e.* into v_found
        from durable.effects as e
        where e.tenant_id = (wanted).tenant_id
            and e.user_id = (wanted).user_id
            and e.app_name = (wanted).app_name
            and e.intent = (wanted).intent
            and e.scope = 'user'
        order by e.failures desc
        limit 1
        for no key update;
    else
        select e.* into v_found
        from durable.effects as e
        where e.tenant_id = (wanted).tenant_id
            and e.app_name = (wanted).app_name
            and e.intent = (wanted).intent
            and e.scope = 'tenant'
        order by e.failures desc
        limit 1
        for no key update;
    end if;
    return v_found;
end
$$;

comment on function durable.latest_try is 'The row with the most failures under the key of this effect, locked FOR NO KEY UPDATE.';

revoke all on function durable.latest_try from public;

-- The rule resume-not-rewritten: what an earlier attempt of this run did, at whatever step, and this attempt has not
-- asked for yet. A model that is asked again rewrites its arguments, wording and order; what it wants now must not be
-- taken for something new. What an attempt had asked for before it saved a checkpoint is done with, unless the caller
-- goes back there. Effects under an intent need no such care: their key survives rewriting.
create or replace function durable.left_behind(run durable.runs, step integer)
returns durable.effects
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_found durable.effects;
    v_saved constant integer := coalesce(
        (
            select max(k.step)
            from durable.checkpoints as k
            where k.tenant_id = (run).tenant_id and k.run_uid = (run).run_uid
        ),
        -1
    );
begin
    if (run).attempt = (run).first_attempt then
        return null;
    end if;
    select e.* into v_found
    from durable.effects as e
    where e.tenant_id = (run).tenant_id
        and e.run_uid = (run).run_uid
        and e.scope = 'run'
        and e.status <> 'failed'
        and (
            left_behind.step <= v_saved
            -- Done with is what the attempt that saved a checkpoint had asked for itself.
            or not exists (
                select
                from durable.checkpoints as k
                inner join durable.effect_calls as d
                    on k.tenant_id = d.tenant_id and k.run_uid = d.run_uid and k.attempt = d.attempt
                where k.tenant_id = e.tenant_id
                    and k.run_uid = e.run_uid
                    and k.step >= e.step
                    and d.effect_uid = e.effect_uid
                    and d.called_at <= k.created_at
            )
        )
        and not exists (
            select
            from durable.effect_calls as c
            where c.tenant_id = e.tenant_id
                and c.run_uid = e.run_uid
                and c.attempt = (run).attempt
                and c.effect_uid = e.effect_uid
        )
    order by e.step, e.ordinal, e.first_begun_at
    limit 1;
    return v_found;
end
$$;

comment on function durable.left_behind is
'The first effect of an earlier attempt after the last checkpoint that the current attempt has not asked for (of all, when step lies before it); all NULL when there is none.';

revoke all on function durable.left_behind from public;

-- Writes the first row of a try, if nobody else was faster; then all NULL. Waits for whoever is writing the same key.
create or replace function durable.insert_effect(wanted durable.effects)
returns durable.effects
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_found durable.effects;
begin
    insert into durable.effects as e (
        tenant_id, user_id, app_name, run_uid, step, ordinal, tool, scope, intent, args, args_digest, failures,
        idempotency_key, provider_dedupes_for, first_begun_at, held_by, attempt, begun_at, lease_expires_at
    )
    values (
        (wanted).tenant_id, (wanted).user_id, (wanted).app_name, (wanted).run_uid, (wanted).step, (wanted).ordinal,
        (wanted).tool, (wanted).scope, (wanted).intent, (wanted).args, (wanted).args_digest, (wanted).failures,
        durable.idempotency_key(wanted), (wanted).provider_dedupes_for, (wanted).begun_at, (wanted).held_by,
        (wanted).attempt, (wanted).begun_at, (wanted).lease_expires_at
    )
    on conflict do nothing
    returning e.* into v_found;
    return v_found;
end
$$;

comment on function durable.insert_effect is 'The row, begun; all NULL when its key is taken.';

revoke all on function durable.insert_effect from public;

set local role durable_owner;

-- May an effect of which nobody knows the outcome be asked for again under the same key? Only while the provider still
-- knows the key, by the word of the tool's author at the first begin and now, and only with the same arguments.
create or replace function durable.may_begin_again(recorded durable.effects, wanted durable.effects)
returns boolean
language sql volatile
return coalesce(
    durable.effect_status((recorded).status, (recorded).lease_expires_at) = 'unverified'
    and (recorded).args_digest = (wanted).args_digest
    and clock_timestamp() - (recorded).first_begun_at < (recorded).provider_dedupes_for
    and clock_timestamp() - (recorded).first_begun_at < (wanted).provider_dedupes_for,
    false
);

comment on function durable.may_begin_again is
'True for an unverified effect with these arguments whose provider_dedupes_for, as said first and now, is not over since the first begin.';

revoke all on function durable.may_begin_again from public;
grant execute on function durable.may_begin_again to durable_engine;

set local role durable_engine;

-- Gives an unverified effect to the attempt that is to ask the provider again under the same key.
create or replace function durable.hold_effect(recorded durable.effects, wanted durable.effects)
returns durable.effects
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_effect durable.effects;
begin
    update durable.effects as e
    set
        status = 'begun',
        held_by = (wanted).held_by,
        attempt = (wanted).attempt,
        begun_at = (wanted).begun_at,
        error = null,
        lease_expires_at = (wanted).lease_expires_at
    where e.tenant_id = (recorded).tenant_id and e.effect_uid = (recorded).effect_uid
    returning e.* into strict v_effect;
    return v_effect;
end
$$;

comment on function durable.hold_effect is 'The effect, begun again by the attempt in wanted.';

revoke all on function durable.hold_effect from public;
--! sql/rules/checkpoints.sql
-- Writing a checkpoint, and showing one.
set local role durable_engine;

-- Saves the state of a run after a step, for an attempt whose lock on the run is taken. A repeat with equal content is
-- harmless; other content for a saved step, and a step after a gap, are refused.
create or replace function durable.write_checkpoint(run durable.runs, step integer, state jsonb, schema_version integer)
returns durable.checkpoint_row
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_wanted durable.checkpoints;
    v_saved durable.checkpoints;
    v_last integer;
begin
    v_wanted.tenant_id := (run).tenant_id;
    v_wanted.run_uid := (run).run_uid;
    v_wanted.step := durable.check_place(write_checkpoint.step, 'step');
    v_wanted.user_id := (run).user_id;
    v_wanted.attempt := (run).attempt;
    v_wanted.schema_version := durable.check_place(write_checkpoint.schema_version, 'schema_version');
    v_wanted.state := write_checkpoint.state;
    v_wanted.digest := sha256(convert_to(v_wanted.state::text, 'UTF8'));

    select max(k.step) into v_last
    from durable.checkpoints as k
    where k.tenant_id = v_wanted.tenant_id and k.run_uid = v_wanted.run_uid;
    if v_wanted.step <= v_last then
        select k.* into v_saved
        from durable.checkpoints as k
        where k.tenant_id = v_wanted.tenant_id and k.run_uid = v_wanted.run_uid and k.step = v_wanted.step;
        if v_saved.state = v_wanted.state and v_saved.schema_version = v_wanted.schema_version then
            return durable.checkpoint_as_row(v_saved, 'already_saved');
        end if;
    end if;
    if v_wanted.step <= v_last or v_wanted.step > coalesce(v_last, 0) + 1 then
        perform durable.refuse_checkpoint(v_wanted, v_saved, v_last);
    end if;

    insert into durable.checkpoints as k (
        tenant_id, run_uid, step, previous_step, user_id, attempt, schema_version, event_seq, state, digest
    )
    select
        v_wanted.tenant_id, v_wanted.run_uid, v_wanted.step, v_last, v_wanted.user_id, v_wanted.attempt,
        v_wanted.schema_version, s.last_seq, v_wanted.state, v_wanted.digest
    from durable.sessions as s
    where s.tenant_id = (run).tenant_id and s.session_uid = (run).session_uid
    returning k.* into strict v_saved;
    return durable.checkpoint_as_row(v_saved, 'saved');
end
$$;

comment on function durable.write_checkpoint is
'The checkpoint; saved, or already_saved for an equal repeat. Raises 22W03, 23W11, 55W10.';

revoke all on function durable.write_checkpoint from public;

-- Says why a checkpoint can't be saved: another state stands for this step, or the step before has none.
create or replace function durable.refuse_checkpoint(
    wanted durable.checkpoints, saved durable.checkpoints, last_step integer
)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if (saved).step is not null then
        raise exception using
            errcode = '23W11',
            message = format('another state is saved for step %s of run %s', (wanted).step, (wanted).run_uid),
            detail = format(
                'saved by attempt %s at %s, schema_version %s; refused: attempt %s, schema_version %s',
                (saved).attempt, (saved).created_at, (saved).schema_version, (wanted).attempt, (wanted).schema_version
            ),
            hint = 'Steps are saved once. A resumed run goes on from load_checkpoint, with the step after that.',
            schema = 'durable',
            table = 'checkpoints',
            column = case when (saved).schema_version <> (wanted).schema_version then 'schema_version' else 'state' end,
            constraint = 'checkpoints_pkey';
    end if;
    raise exception using
        errcode = '55W10',
        message = format('step %s of run %s can''t be saved', (wanted).step, (wanted).run_uid),
        detail = case
            when refuse_checkpoint.last_step is null then 'nothing is saved yet'
            else format('the last saved step is %s', refuse_checkpoint.last_step)
        end,
        hint = 'The first step is 0 or 1, each further one is one more than the last.',
        schema = 'durable',
        table = 'checkpoints',
        column = 'step',
        constraint = 'checkpoints_steps_have_no_gap';
end
$$;

comment on function durable.refuse_checkpoint is 'Raises 23W11 or 55W10.';

revoke all on function durable.refuse_checkpoint from public;

set local role durable_owner;

-- A row of checkpoints in the form that callers get.
create or replace function durable.checkpoint_as_row(checkpoint durable.checkpoints, outcome text)
returns durable.checkpoint_row
language sql stable
begin atomic
    select
        (checkpoint).run_uid,
        (checkpoint).step,
        (checkpoint).schema_version,
        (checkpoint).event_seq,
        (checkpoint).attempt,
        durable.unescape_json((checkpoint).state),
        (checkpoint).created_at,
        checkpoint_as_row.outcome;
end;

comment on function durable.checkpoint_as_row is 'A checkpoint as callers see it.';

revoke all on function durable.checkpoint_as_row from public;
grant execute on function durable.checkpoint_as_row to durable_app, durable_operator, durable_engine;
--! sql/rules/tools.sql
-- Writing the class of a tool, and which class is stricter.
set local role durable_steward;

-- Writes the class of a tool, with an audit row, if it differs from what is stored.
create or replace function durable.write_tool(
    app_name text, tool text, replay_class text, stricter_wins boolean, reason text
)
returns durable.tool_row
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_stored durable.tools;
    v_outcome text;
begin
    perform
        durable.check_identifier('app_name', write_tool.app_name),
        durable.check_identifier('tool', write_tool.tool),
        durable.check_key_size('tenant_id, app_name and tool', durable.current_tenant(), write_tool.app_name, write_tool.tool);
    if durable.strictness(write_tool.replay_class) is null then
        perform durable.refuse_argument(
            'replay_class',
            format(
                'replay_class is %s, which is none, for tool %L',
                coalesce(quote_literal(write_tool.replay_class), 'NULL'), write_tool.tool
            ),
            'A tool is read_only (it changes nothing), keyed (a repeat is harmless by itself) or effect.'
        );
    end if;
    insert into durable.tools as t (tenant_id, app_name, tool, replay_class)
    values (durable.current_tenant(), write_tool.app_name, write_tool.tool, write_tool.replay_class)
    on conflict do nothing
    returning t.* into v_stored;
    if found then
        v_outcome := 'written';
    else
        select t.* into strict v_stored
        from durable.tools as t
        where t.tenant_id = durable.current_tenant() and t.app_name = write_tool.app_name and t.tool = write_tool.tool
        for no key update;
        v_outcome := case
            when v_stored.replay_class = write_tool.replay_class then 'unchanged'
            when write_tool.stricter_wins
                and durable.strictness(v_stored.replay_class) > durable.strictness(write_tool.replay_class) then 'kept'
            else 'written'
        end;
    end if;
    if v_outcome = 'written' then
        insert into durable.audit_log (tenant_id, acted_by, action, subject_kind, reason, detail)
        values (
            durable.current_tenant(), durable.current_user_id(), 'write_tool', 'tool', write_tool.reason,
            jsonb_build_object(
                'app_name', write_tool.app_name, 'tool', write_tool.tool, 'replay_class', write_tool.replay_class,
                'before', nullif(v_stored.replay_class, write_tool.replay_class)
            )
        );
        update durable.tools as t
        set replay_class = write_tool.replay_class, updated_at = clock_timestamp()
        where t.tenant_id = v_stored.tenant_id and t.app_name = v_stored.app_name and t.tool = v_stored.tool
        returning t.* into strict v_stored;
    end if;
    return (v_stored.app_name, v_stored.tool, v_stored.replay_class, v_stored.updated_at, v_outcome)::durable.tool_row;
end
$$;

comment on function durable.write_tool is
'The tool; written, unchanged, or kept because the stored class is stricter. Raises 22W01, 22W03.';

revoke all on function durable.write_tool from public;

set local role durable_owner;

-- The order of the replay classes: of two opinions on a tool the stricter counts.
create or replace function durable.strictness(replay_class text)
returns integer
language sql immutable parallel safe
return case strictness.replay_class when 'read_only' then 1 when 'keyed' then 2 when 'effect' then 3 end;

comment on function durable.strictness is '1 for read_only, 2 for keyed, 3 for effect; NULL for anything else.';

revoke all on function durable.strictness from public;
grant execute on function durable.strictness to durable_steward;
--! sql/rules/verdicts.sql
-- What stands against doing a run's work again: tools that did something, and effects of which nobody knows.
set local role durable_owner;

-- The tools that stand against doing a run's work again, by name, sorted. Calls are matched to effects one by one
-- within each attempt: a call in the log counts as harmless only if the same attempt asked the ledger for an effect of
-- that tool that is safe to ask for again (its key is an intent, or it certainly failed). Tools of class read_only or
-- keyed never block, unless one of their effects is unverified.
create or replace function durable.blocking_tools(run durable.runs)
returns text[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_session durable.sessions;
    v_tools text[];
begin
    select s.* into v_session
    from durable.sessions as s
    where s.tenant_id = run.tenant_id and s.session_uid = run.session_uid;

    with logged as (
        select e.attempt, tool.name, count(*) as calls
        from durable.events as e
        cross join lateral (select unnest(e.tool_calls) union all select unnest(e.extra_tool_calls)) as tool (name)
        where e.tenant_id = run.tenant_id
            and e.session_uid = run.session_uid
            and e.invocation_id = run.invocation_id
            and (e.generation = run.generation or (v_session.rewinds > 0 and not durable.is_rewound(v_session, e.seq)))
        group by e.attempt, tool.name
    ),
    asked as (
        select
            c.attempt,
            e.tool as name,
            -- Tries of one key are one call.
            count(distinct coalesce(
                e.scope || ' ' || e.intent, concat_ws(' ', 'run', e.step, e.ordinal, encode(e.args_digest, 'hex'))
            )) filter (
                where e.scope <> 'run' or e.status = 'failed'
            ) as safe,
            count(*) filter (where e.scope = 'run' and e.status <> 'failed') as unsafe
        from durable.effect_calls as c
        inner join durable.effects as e on e.tenant_id = c.tenant_id and e.effect_uid = c.effect_uid
        where c.tenant_id = run.tenant_id and c.run_uid = run.run_uid
        group by c.attempt, e.tool
    ),
    blocking as (
        select l.name
        from logged as l
        left join asked as a on a.attempt = l.attempt and a.name = l.name
        -- A call without a name is of no tool that the ledger could know.
        where l.calls > coalesce(a.safe, 0) or l.name = '(unnamed)'
        union
        select a.name from asked as a where a.unsafe > 0
        union
        -- Named at settlement, and recorded nowhere.
        select named.name
        from unnest(run.tools_executed) as named (name)
        where not exists (select from logged as l where l.name = named.name)
            and not exists (select from asked as a where a.name = named.name)
    )
    select coalesce(array_agg(b.name order by b.name collate "C"), '{}') into v_tools
    from blocking as b
    where not exists (
        select
        from durable.tools as t
        where t.tenant_id = run.tenant_id
            and t.app_name = v_session.app_name
            and t.tool = b.name
            and t.replay_class in ('read_only', 'keyed')
    );
    return v_tools;
end
$$;

comment on function durable.blocking_tools is
'The tools of a run whose calls are not known to be harmless to repeat; {} when there is none. See unverified_tools for the rest.';

revoke all on function durable.blocking_tools from public;
grant execute on function durable.blocking_tools to durable_app, durable_operator, durable_auditor;

-- The tools of a run with an effect of which nobody knows, now, whether it happened: begun or unverified. Those block
-- every verdict, whatever their class and key.
create or replace function durable.unverified_tools(run durable.runs)
returns text[]
language sql stable
return coalesce(
    (
        select array_agg(distinct e.tool::text collate "C" order by e.tool::text collate "C")
        from durable.effect_calls as c
        inner join durable.effects as e on c.tenant_id = e.tenant_id and c.effect_uid = e.effect_uid
        where c.tenant_id = (run).tenant_id and c.run_uid = (run).run_uid and e.status in ('begun', 'unverified')
    ),
    '{}'
);

comment on function durable.unverified_tools is
'The distinct tools of effects that a run asked for and that are begun or unverified; {} when there is none.';

revoke all on function durable.unverified_tools from public;
grant execute on function durable.unverified_tools to durable_app, durable_operator, durable_auditor;
--! sql/calls/open_session.sql
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
    perform durable.check_me(open_session.me);
    perform
        durable.check_identifier('app_name', open_session.app_name),
        durable.check_identifier('session_id', v_name);
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

comment on function durable.open_session is
'Creates or finds the open session of this user, app and session_id (made up when NULL); outcome created or found. Keys of state with the prefix app: or user: go to the shared states, temp: nowhere. Raises 22W01, 22W02, 22W03, 23W09, 42W01, 42W02.';

revoke all on function durable.open_session from public;
grant execute on function durable.open_session to durable_app;
--! sql/calls/close_session.sql
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
    perform durable.check_me(close_session.me);
    if char_length(close_session.reason) > 2000 then
        perform durable.refuse_argument(
            'reason',
            format('reason has %s characters, the limit is 2000', char_length(close_session.reason)),
            'Say it shorter; it is shown with every refusal of the closed session.'
        );
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

comment on function durable.close_session is
'Closes the session; outcome closed, or already_closed with the first closing''s time. Raises 22W03, 42W01, 42W02, 42W04.';

revoke all on function durable.close_session from public;
grant execute on function durable.close_session to durable_app;
--! sql/calls/list_sessions.sql
-- The open sessions that the caller may see, newest activity first: an app its user's own, an operator its tenant's.
set local role durable_owner;

create or replace function durable.list_sessions(me text default null, app_name text default null)
returns setof durable.session_row
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    perform durable.check_me(list_sessions.me);
    return query
    select l.*
    from durable.sessions as s
    cross join lateral durable.session_as_row(s, 'open') as l
    where s.closed_at is null
        and s.tenant_id = durable.current_tenant()
        and (list_sessions.app_name is null or s.app_name = list_sessions.app_name)
    order by s.updated_at desc, s.session_uid desc;
end
$$;

comment on function durable.list_sessions is
'Open sessions, of one app or of all, under the caller''s own row policies. Raises 42W01, 42W02.';

revoke all on function durable.list_sessions from public;
grant execute on function durable.list_sessions to durable_app, durable_operator;
--! sql/calls/get_state.sql
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
    perform durable.check_me(get_state.me);
    if get_state.session_uid is not null then
        v_session := durable.find_session(get_state.session_uid);
        if v_app is not null and v_app <> v_session.app_name then
            perform durable.refuse_session(get_state.session_uid);
        end if;
        v_user := v_session.user_id;
        v_app := v_session.app_name;
    else
        perform durable.check_identifier('app_name', v_app);
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

comment on function durable.get_state is
'The merged state of a session with its revision, or of user and app alone. Raises 22W01, 42W01, 42W02, 42W04, 55W01.';

revoke all on function durable.get_state from public;
grant execute on function durable.get_state to durable_app, durable_operator;
--! sql/calls/append_event.sql
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
    -- In one expression; check_event asks the same one by one, to say which it is.
    if (
        (append_event.me is null or durable.is_me(append_event.me))
        and durable.is_identifier(append_event.author)
        and coalesce(durable.is_identifier(nullif(append_event.invocation_id, '')), true)
        and coalesce(durable.is_identifier(nullif(append_event.event_id, '')), true)
        and durable.fits_key(octet_length(concat(durable.current_tenant(), append_event.invocation_id, append_event.author)))
        and durable.fits_key(octet_length(concat(durable.current_tenant(), append_event.event_id)))
        and coalesce(durable.is_common_time(append_event.occurred_at), true)
    ) is not true then
        perform durable.check_event(
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
        -- Whoever takes a run locks the session row first, as this does; that a lease is over needs no lock.
        or (append_event.attempt is not null or v_run.attempt is not null and append_event.author <> 'user')
        and durable.holds_run(v_run, append_event.attempt) is not true
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

comment on function durable.append_event is
'Appends an event; outcome appended, or duplicate when it is recorded already (then nothing is written, state_delta included). Raises 22W01, 22W02, 22W03, 22W04, 23W05, 23W06, 42W01, 42W02, 42W04, 55W01, 55W02, 55W03, 55W04, 55W08.';

revoke all on function durable.append_event from public;
grant execute on function durable.append_event to durable_app;

-- The first test of append_event once more, to say what is wrong.
create or replace function durable.check_event(
    me text, author text, invocation_id text, event_id text, occurred_at timestamptz
)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    perform durable.check_me(check_event.me);
    perform
        durable.check_identifier('author', check_event.author),
        case when check_event.invocation_id <> '' then durable.check_identifier('invocation_id', check_event.invocation_id) end,
        case when check_event.event_id <> '' then durable.check_identifier('event_id', check_event.event_id) end,
        durable.check_key_size(
            'tenant_id, invocation_id and author', durable.current_tenant(), check_event.invocation_id, check_event.author
        ),
        durable.check_key_size('tenant_id and event_id', durable.current_tenant(), check_event.event_id);
    if not durable.is_common_time(check_event.occurred_at) then
        perform durable.refuse_argument(
            'occurred_at',
            format('occurred_at is %s', check_event.occurred_at),
            'Pass a time within these years, or leave it out for now.',
            'The limits are the years 1 and 9999 in UTC, beyond which many languages have no time.'
        );
    end if;
end
$$;

comment on function durable.check_event is 'Raises 42W02, 22W01 or 22W03, naming the argument of append_event that is unfit.';

revoke all on function durable.check_event from public;

-- Says why an event is no repeat of the one that is recorded under its name: it would be lost, so it is refused.
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
        detail = format('the opening message is seq %s, event_id %L; it differs in %s', recorded.seq, recorded.event_id, v_differs),
        hint = 'A new turn gets a new invocation_id; a retry repeats the message as it was; further user texts of one invocation are appended with repeatable => true.',
        schema = 'durable',
        table = 'events',
        constraint = 'events_one_opening_message';
end
$$;

comment on function durable.refuse_repeat is
'Raises 23W05 when the event_id is taken by another event, else 23W06: the invocation was opened with another message.';

revoke all on function durable.refuse_repeat from public;

-- Says why an event can't follow what is recorded: a stale caller, a settled run, an attempt that does not hold it.
create or replace function durable.refuse_append(
    event durable.events, session durable.sessions, run durable.runs, expected_revision integer, attempt integer
)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if run.settled_at is not null then
        perform durable.refuse_attempt(run, refuse_append.attempt);
    end if;
    if refuse_append.attempt is not null and event.invocation_id is null then
        perform durable.refuse_argument(
            'invocation_id',
            'attempt is given and invocation_id is not',
            'An attempt is one of an invocation''s run: pass its invocation_id too, or the event belongs to no run.'
        );
    end if;
    if refuse_append.attempt is not null and run.run_uid is null then
        raise exception using
            errcode = '55W04',
            message = format('attempt %s is not the current one of invocation %L', refuse_append.attempt, event.invocation_id),
            detail = 'the invocation has no run',
            hint = 'Stop this worker: nothing was started under this name. Check the invocation_id.',
            schema = 'durable',
            table = 'runs';
    elsif (refuse_append.attempt is not null or run.run_uid is not null and event.author <> 'user')
        and durable.holds_run(run, refuse_append.attempt) is not true
    then
        perform durable.refuse_attempt(run, refuse_append.attempt);
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

comment on function durable.refuse_append is
'Raises 22W03 for an attempt without an invocation, 55W03 for a settled run, 55W04 for an attempt that does not hold it or is missing, 55W02 for a stale revision.';

revoke all on function durable.refuse_append from public;
--! sql/calls/read_events.sql
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
    perform durable.check_me(read_events.me);
    if read_events.latest < 0 then
        perform durable.refuse_argument(
            'latest',
            format('latest is %s', read_events.latest),
            'Pass how many of the newest events to read, 0 or more, or leave it out for all.'
        );
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

comment on function durable.read_events is
'Events after a seq, of an occurred_at at or after a time, or the latest so many of these; always in order of seq. Raises 22W03, 42W01, 42W02, 42W04, 55W01.';

revoke all on function durable.read_events from public;
grant execute on function durable.read_events to durable_app, durable_operator, durable_auditor;
--! sql/calls/verify_session.sql
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
    perform durable.check_me(verify_session.me);
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

comment on function durable.verify_session is
'One row: intact, how many events were checked, and the first broken link with what is wrong there. Raises 22W03, 42W01, 42W02, 42W04.';

revoke all on function durable.verify_session from public;
grant execute on function durable.verify_session to durable_app, durable_operator, durable_auditor;
--! sql/calls/start_run.sql
-- Starts the run of an invocation, or takes it up where another attempt left it. For the app. Asked again it says busy,
-- or settled with the recorded result: a retry of a finished turn gets its answer. Another input under the same name is
-- refused. Locks the session row, then the run.
set local role durable_engine;

create or replace function durable.start_run(
    me text default null,
    session_uid uuid default null,
    invocation_id text default null,
    trigger text default 'user',
    input json default null,
    worker text default null,
    lease interval default '5 minutes',
    max_attempts integer default null
)
returns durable.run_outcome
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_input constant jsonb := durable.escape_json(start_run.input, 'input');
    v_holder constant text := coalesce(start_run.worker, format('%s/%s', session_user, pg_backend_pid()));
    v_session durable.sessions;
    v_run durable.runs;
    v_generation integer;
    v_lease interval;
begin
    perform durable.check_me(start_run.me);
    perform
        durable.check_identifier('invocation_id', start_run.invocation_id),
        durable.check_identifier('trigger', start_run.trigger),
        durable.check_identifier('worker', v_holder),
        durable.check_key_size('tenant_id and invocation_id', durable.current_tenant(), start_run.invocation_id);
    if start_run.max_attempts < 1 then
        perform durable.refuse_argument(
            'max_attempts',
            format('max_attempts is %s', start_run.max_attempts),
            'Allow one attempt at least, or leave it out for no limit.'
        );
    end if;
    v_lease := durable.check_lease(start_run.lease);
    perform durable.commit_durably();

    v_session := durable.lock_session(start_run.session_uid);
    v_generation := durable.current_generation(v_session, start_run.invocation_id);

    select r.* into v_run
    from durable.runs as r
    where r.tenant_id = v_session.tenant_id
        and r.session_uid = v_session.session_uid
        and r.invocation_id = start_run.invocation_id
        and r.generation = v_generation
    for no key update;
    if not found then
        insert into durable.runs as r (
            tenant_id, session_uid, user_id, invocation_id, generation, trigger, input, attempt, first_attempt,
            max_attempts, lease_holder, lease_expires_at
        )
        select
            v_session.tenant_id, v_session.session_uid, v_session.user_id,
            start_run.invocation_id, v_generation, start_run.trigger, v_input,
            -- A worker of a rewound generation must not pass for one of this run.
            1 + coalesce(max(o.attempt), 0), 1 + coalesce(max(o.attempt), 0),
            start_run.max_attempts, v_holder, clock_timestamp() + v_lease
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
    return durable.take_run(v_run, v_holder, v_lease, start_run.max_attempts);
end
$$;

comment on function durable.start_run is
'Starts the run of an invocation, takes it up again, or tells where it stands; outcome started, resumed (attempt + 1), busy (with lease_expires_at), awaiting or settled (with tools_executed, result and error). Raises 22W01, 22W02, 22W03, 23W07, 42W01, 42W02, 42W04, 55W01, 55W05 (it has no attempt left).';

revoke all on function durable.start_run from public;
grant execute on function durable.start_run to durable_app;

-- Gives an existing run to a worker, if nobody has it: interrupted, decided, or its lease is over. The attempt grows,
-- so that whoever had it before writes nothing more, whatever name its worker has. A run without an attempt left is
-- settled as failed instead. The caller holds the locks of session and run.
create or replace function durable.take_run(run durable.runs, holder text, lease interval, max_attempts integer)
returns durable.run_outcome
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_run durable.runs := take_run.run;
    v_wanted durable.runs;
    v_limit constant integer := coalesce(take_run.max_attempts, v_run.max_attempts);
begin
    if v_run.settled_at is not null then
        return durable.run_as_outcome(v_run, 'settled');
    elsif v_run.status = 'awaiting' then
        return durable.run_as_outcome(v_run, 'awaiting');
    elsif durable.holds_run(v_run, v_run.attempt) then
        return durable.run_as_outcome(v_run, 'busy');
    end if;

    -- Settlement, and an append under an older snapshot, trip over this update.
    update durable.sessions as s
    set updated_at = clock_timestamp()
    where s.tenant_id = v_run.tenant_id and s.session_uid = v_run.session_uid;
    if v_run.attempt - v_run.first_attempt + 1 >= v_limit then
        perform durable.check_isolation('start_run');
        v_wanted.status := 'failed';
        v_wanted.error := durable.attempts_used_up(v_run, v_limit, v_run.interrupted_with);
        return durable.settle_locked_run(v_run, v_wanted);
    end if;
    update durable.runs as r
    set
        status = 'running',
        attempt = r.attempt + 1,
        max_attempts = v_limit,
        interrupted_with = null,
        lease_holder = take_run.holder,
        lease_expires_at = clock_timestamp() + take_run.lease
    where r.tenant_id = v_run.tenant_id and r.run_uid = v_run.run_uid
    returning r.* into strict v_run;
    return durable.run_as_outcome(v_run, 'resumed');
end
$$;

comment on function durable.take_run is
'A run after a worker asked for it: resumed (with a new attempt), busy, awaiting, or settled. Raises 55W05 when it has no attempt left.';

revoke all on function durable.take_run from public;
--! sql/calls/renew_lease.sql
-- Extends the lease of the attempt that holds a run, and of the effects it has begun. For the app. A lease that is over
-- is not renewed: others may have read the effects as unverified already.
set local role durable_engine;

create or replace function durable.renew_lease(
    me text default null,
    run_uid uuid default null,
    attempt integer default null,
    lease interval default '5 minutes'
)
returns durable.run_outcome
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_run durable.runs;
    v_lease interval;
begin
    perform durable.check_me(renew_lease.me);
    v_lease := durable.check_lease(renew_lease.lease);
    v_run := durable.lock_attempt(renew_lease.run_uid, renew_lease.attempt, session_too => false);
    update durable.runs as r
    set lease_expires_at = clock_timestamp() + v_lease
    where r.tenant_id = v_run.tenant_id and r.run_uid = v_run.run_uid
    returning r.* into strict v_run;
    update durable.effects as e
    set lease_expires_at = greatest(e.lease_expires_at, v_run.lease_expires_at)
    where e.tenant_id = v_run.tenant_id
        and e.effect_uid in (
            select h.effect_uid
            from durable.effects as h
            where h.tenant_id = v_run.tenant_id
                and h.held_by = v_run.run_uid
                and h.attempt = v_run.attempt
                and h.status = 'begun'
                -- An effect whose own lease is over has been read as unverified, and stays so.
                and h.lease_expires_at > clock_timestamp()
            -- Somebody is just saying how it ended.
            for no key update skip locked
        );
    return durable.run_as_outcome(v_run, 'renewed');
end
$$;

comment on function durable.renew_lease is
'Extends the lease to now plus this long, and that of the attempt''s begun effects; outcome renewed. Raises 22W03, 42W01, 42W02, 42W05, 55W03, 55W04.';

revoke all on function durable.renew_lease from public;
grant execute on function durable.renew_lease to durable_app;
--! sql/calls/interrupt_run.sql
-- Gives a run back that is not done: its process was told to stop, or raised. For the app, as the attempt that holds
-- it. The next start_run takes it up; tools_executed stays NULL. What the attempt has begun and not finished becomes
-- unverified at once: nobody is there any more who could finish it. The last of max_attempts settles the run as failed.
set local role durable_engine;

create or replace function durable.interrupt_run(
    me text default null,
    run_uid uuid default null,
    attempt integer default null,
    error json default null
)
returns durable.run_outcome
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_error constant jsonb := durable.escape_json(interrupt_run.error, 'error');
    v_run durable.runs;
    v_wanted durable.runs;
begin
    perform durable.check_me(interrupt_run.me);
    perform durable.check_isolation('interrupt_run');
    v_run := durable.lock_run(interrupt_run.run_uid);
    if v_run.status = 'interrupted' and v_run.attempt = interrupt_run.attempt then
        return durable.run_as_outcome(v_run, 'already_interrupted');
    elsif v_run.status = 'failed'
        and v_run.attempt = interrupt_run.attempt
        and v_run.error ->> 'reason' = 'max_attempts'
    then
        -- The answer to its last interruption was lost.
        return durable.run_as_outcome(v_run, 'settled');
    elsif durable.holds_run(v_run, interrupt_run.attempt) is not true then
        perform durable.refuse_attempt(v_run, interrupt_run.attempt);
    end if;

    update durable.effects as e
    set status = 'unverified'
    where e.tenant_id = v_run.tenant_id
        and e.held_by = v_run.run_uid
        and e.attempt = v_run.attempt
        and e.status = 'begun';
    if v_run.attempt - v_run.first_attempt + 1 >= v_run.max_attempts then
        v_wanted.status := 'failed';
        v_wanted.error := durable.attempts_used_up(v_run, v_run.max_attempts, v_error);
        return durable.settle_locked_run(v_run, v_wanted);
    end if;
    update durable.runs as r
    set
        status = 'interrupted',
        lease_holder = null,
        lease_expires_at = clock_timestamp(),
        interrupted_with = v_error
    where r.tenant_id = v_run.tenant_id and r.run_uid = v_run.run_uid
    returning r.* into strict v_run;
    return durable.run_as_outcome(v_run, 'interrupted');
end
$$;

comment on function durable.interrupt_run is
'Gives a run back; outcome interrupted, already_interrupted for a repeat, or settled (as failed) when it was the last of max_attempts. Raises 22W02, 22W03, 42W01, 42W02, 42W05, 55W03, 55W04, 55W05.';

revoke all on function durable.interrupt_run from public;
grant execute on function durable.interrupt_run to durable_app;
--! sql/calls/settle_run.sql
-- Settles a run for good: its status, result, error and the tools it called. For the app, as the attempt that holds the
-- run. Takes the locks an append takes, session then run, and updates the session: so no call can be recorded that the
-- settled value leaves out.
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
begin
    perform durable.check_me(settle_run.me);
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
        perform durable.refuse_argument(
            'status',
            format('%s is no status that settles a run', coalesce(quote_literal(settle_run.status), 'NULL')),
            'Settle as succeeded, failed (given up) or cancelled (called off).'
        );
    end if;
    if v_run.settled_at is not null and coalesce(settle_run.attempt = v_run.attempt, true) then
        perform durable.check_same_outcome(v_run, v_wanted);
        return durable.run_as_outcome(v_run, 'already_settled');
    end if;
    if durable.holds_run(v_run, settle_run.attempt) is not true then
        perform durable.refuse_attempt(v_run, settle_run.attempt);
    end if;
    return durable.settle_locked_run(v_run, v_wanted);
end
$$;

comment on function durable.settle_run is
'Settles a run; outcome settled, or already_settled for an equal repeat. tools_executed stays NULL when nothing but user texts is recorded and none are given. Raises 22W02, 22W03, 23W02 (another tools_executed; DETAIL shows the stored one), 23W08, 42W01, 42W02, 42W05, 55W03, 55W04, 55W05.';

revoke all on function durable.settle_run from public;
grant execute on function durable.settle_run to durable_app;

set local role durable_owner;

-- A settled run settles again only as it did: an equal repeat is harmless, whatever would change the outcome is
-- refused, and the loser of a race is told what is stored.
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

comment on function durable.check_same_outcome is
'Raises 23W02 for another tools_executed and 55W03 for another status, result or error than the settled run has.';

revoke all on function durable.check_same_outcome from public;
grant execute on function durable.check_same_outcome to durable_engine, durable_steward;
--! sql/calls/cancel_run.sql
-- Calls a run off, even under a live lease: its holder is refused from then on. For the app (its user's runs) and for
-- operators (their tenant's, with an audit row); which of the two is decided by the role that calls, and each half
-- checks for itself.
set local role durable_owner;

create or replace function durable.cancel_run(me text default null, run_uid uuid default null, reason text default null)
returns durable.run_outcome
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    perform durable.check_me(cancel_run.me);
    if pg_has_role(current_user, 'durable_operator', 'USAGE') then
        return durable.cancel_tenant_run(cancel_run.run_uid, cancel_run.reason);
    end if;
    return durable.cancel_own_run(cancel_run.run_uid, cancel_run.reason);
end
$$;

comment on function durable.cancel_run is
'Settles a run as cancelled, with {"reason": reason} as its error; outcome settled, or already_settled when it was cancelled before. An operator''s leaves an audit row. Raises 22W03, 42W01, 42W02, 42W05, 55W03 (it has another outcome), 55W05.';

revoke all on function durable.cancel_run from public;
grant execute on function durable.cancel_run to durable_app, durable_operator;

set local role durable_engine;

-- cancel_run for the app: runs of its tenant and user.
create or replace function durable.cancel_own_run(run_uid uuid, reason text)
returns durable.run_outcome
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return durable.cancel_open_run(cancel_own_run.run_uid, cancel_own_run.reason);
end
$$;

comment on function durable.cancel_own_run is 'What cancel_run does for an app; see there.';

revoke all on function durable.cancel_own_run from public;
grant execute on function durable.cancel_own_run to durable_app;

set local role durable_steward;

-- cancel_run for operators: runs of their tenant. Leaves an audit row in the same transaction.
create or replace function durable.cancel_tenant_run(run_uid uuid, reason text)
returns durable.run_outcome
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_outcome durable.run_outcome := durable.cancel_open_run(cancel_tenant_run.run_uid, cancel_tenant_run.reason);
begin
    if v_outcome.outcome = 'settled' then
        insert into durable.audit_log (tenant_id, acted_by, action, subject_kind, subject_uid, reason)
        values (
            durable.current_tenant(), durable.current_user_id(), 'cancel_run', 'run', v_outcome.run_uid,
            cancel_tenant_run.reason
        );
    end if;
    return v_outcome;
end
$$;

comment on function durable.cancel_tenant_run is 'What cancel_run does for an operator; see there.';

revoke all on function durable.cancel_tenant_run from public;
grant execute on function durable.cancel_tenant_run to durable_operator;

set local role durable_owner;

-- Calls a run off, whoever holds it; its worker is refused from then on. For the functions behind cancel_run.
create or replace function durable.cancel_open_run(run_uid uuid, reason text)
returns durable.run_outcome
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_run durable.runs;
    v_wanted durable.runs;
begin
    perform durable.check_isolation('cancel_run');
    v_wanted.status := 'cancelled';
    v_wanted.error := jsonb_build_object('reason', durable.check_reason(cancel_open_run.reason));
    v_run := durable.lock_run(cancel_open_run.run_uid);
    if v_run.status = 'cancelled' then
        return durable.run_as_outcome(v_run, 'already_settled');
    elsif v_run.settled_at is not null then
        perform durable.refuse_attempt(v_run, null);
    end if;
    return durable.settle_locked_run(v_run, v_wanted);
end
$$;

comment on function durable.cancel_open_run is
'The run, settled as cancelled with the reason as its error; already_settled when it was cancelled before. Raises 22W03, 42W05, 55W03, 55W05.';

revoke all on function durable.cancel_open_run from public;
grant execute on function durable.cancel_open_run to durable_engine, durable_steward;
--! sql/calls/list_runs.sql
-- The runs that the caller may see, newest first: an app its user's own, an operator its tenant's.
set local role durable_owner;

create or replace function durable.list_runs(me text default null, session_uid uuid default null)
returns setof durable.run_row
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform durable.check_me(list_runs.me);
    return query
    select
        r.run_uid, r.session_uid, r.user_id, r.invocation_id, r.generation, r.trigger, durable.unescape_json(r.input),
        r.status, r.attempt, r.max_attempts, r.lease_holder, r.lease_expires_at, durable.unescape_json(r.interrupted_with),
        r.tools_executed, durable.unescape_json(r.result), durable.unescape_json(r.error), r.started_at, r.settled_at
    from durable.runs as r
    where r.tenant_id = durable.current_tenant()
        and (list_runs.session_uid is null or r.session_uid = list_runs.session_uid)
    order by r.started_at desc, r.run_uid desc;
end
$$;

comment on function durable.list_runs is
'Runs, of one session or of all, under the caller''s own row policies. Raises 42W01, 42W02.';

revoke all on function durable.list_runs from public;
grant execute on function durable.list_runs to durable_app, durable_operator;
--! sql/calls/list_resumable.sql
-- The runs of all tenants that nobody executes: interrupted, or their lease is over. For the maintainer's dispatcher,
-- which sees no content: a worker then acts as that user and takes the run by start_run. Those that wait for somebody
-- to look into an effect come last, so that no number of them hides the others; else longest waiting first.
set local role durable_janitor;

create or replace function durable.list_resumable(max_runs integer default 100)
returns setof durable.resumable_run
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform durable.check_batch(list_resumable.max_runs, 'max_runs');
    return query
    select
        r.tenant_id, r.user_id, s.app_name, r.session_uid, r.run_uid, r.invocation_id, r.status, r.attempt,
        r.lease_expires_at, w.effects
    from (
        -- Each by its own index.
        select i.tenant_id, i.user_id, i.session_uid, i.run_uid, i.invocation_id, i.status, i.attempt, i.lease_expires_at
        from durable.runs as i
        where i.status = 'interrupted' and i.lease_expires_at <= clock_timestamp()
        union all
        select d.tenant_id, d.user_id, d.session_uid, d.run_uid, d.invocation_id, d.status, d.attempt, d.lease_expires_at
        from durable.runs as d
        where d.status = 'running' and d.lease_expires_at <= clock_timestamp()
    ) as r
    inner join durable.sessions as s on s.tenant_id = r.tenant_id and s.session_uid = r.session_uid
    cross join lateral (
        select count(distinct e.effect_uid)::integer::durable.counter as effects
        from durable.effect_calls as c
        inner join durable.effects as e on c.tenant_id = e.tenant_id and c.effect_uid = e.effect_uid
        where c.tenant_id = r.tenant_id
            and c.run_uid = r.run_uid
            and durable.effect_status(e.status, e.lease_expires_at) = 'unverified'
    ) as w
    -- Nothing can be said in a closed session; its runs can only be cancelled.
    where s.closed_at is null
    order by w.effects > 0, r.lease_expires_at, r.tenant_id, r.run_uid
    limit list_resumable.max_runs;
end
$$;

comment on function durable.list_resumable is
'Runs of all tenants that a worker may take by start_run, those with unverified effects last, else longest waiting first: whose, where, since when, and how many unverified effects they wait for. Raises 22W03.';

revoke all on function durable.list_resumable from public;
grant execute on function durable.list_resumable to durable_maintainer;
--! sql/calls/reap_runs.sql
-- Marks dead runs as what they are: running and their lease over becomes interrupted, and what they had begun becomes
-- unverified. For the maintainer. Nothing depends on it, since everybody reads leases by the clock; it makes the tables
-- say so too. Locked runs are skipped and counted. tools_executed stays NULL. One audit row a run.
set local role durable_janitor;

create or replace function durable.reap_runs(
    max_runs integer default 100, out runs integer, out effects integer, out skipped integer
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_dead durable.resumable_run;
    v_dead_runs integer;
    v_effects integer;
begin
    perform durable.check_batch(reap_runs.max_runs, 'max_runs');
    runs := 0;
    effects := 0;
    for v_dead.tenant_id, v_dead.run_uid, v_dead.attempt, v_dead.since in
        select r.tenant_id, r.run_uid, r.attempt, r.lease_expires_at
        from durable.runs as r
        where r.status = 'running' and r.lease_expires_at <= clock_timestamp()
        order by r.lease_expires_at
        limit reap_runs.max_runs
        for no key update skip locked
    loop
        update durable.effects as e
        set status = 'unverified'
        where e.tenant_id = v_dead.tenant_id
            and e.effect_uid in (
                select h.effect_uid
                from durable.effects as h
                where h.tenant_id = v_dead.tenant_id
                    and h.held_by = v_dead.run_uid
                    and h.attempt = v_dead.attempt
                    and h.status = 'begun'
                    and h.lease_expires_at <= clock_timestamp()
                -- Its worker is just saying how it ended.
                for no key update skip locked
            );
        get diagnostics v_effects = row_count;
        update durable.runs as r
        set lease_holder = null, status = 'interrupted'
        where r.tenant_id = v_dead.tenant_id and r.run_uid = v_dead.run_uid;
        insert into durable.audit_log (tenant_id, action, subject_kind, subject_uid, reason, detail)
        values (
            v_dead.tenant_id, 'reap_runs', 'run', v_dead.run_uid, 'its lease ran out',
            jsonb_build_object(
                'attempt', v_dead.attempt, 'lease_expired_at', v_dead.since, 'effects_unverified', v_effects
            )
        );
        runs := runs + 1;
        effects := effects + v_effects;
    end loop;

    select count(*) into v_dead_runs
    from (
        select
        from durable.runs as r
        where r.status = 'running' and r.lease_expires_at <= clock_timestamp()
        limit reap_runs.max_runs
    ) as d;
    skipped := case when runs < reap_runs.max_runs then v_dead_runs else 0 end;
end
$$;

comment on function durable.reap_runs is
'How many dead runs became interrupted, how many of their effects unverified, and how many were skipped because somebody had locked them. Raises 22W03.';

revoke all on function durable.reap_runs from public;
grant execute on function durable.reap_runs to durable_maintainer;
--! sql/calls/begin_effect.sql
-- Says whether a tool with an outside effect may be called now, and records that it is about to be. For the app, as the
-- attempt that holds the run; commit before you call the tool. Of all who ask for one key, one is told execute. Locks
-- session, run and effect.
set local role durable_engine;

create or replace function durable.begin_effect(
    me text default null,
    run_uid uuid default null,
    attempt integer default null,
    step integer default 0,
    tool text default null,
    args json default null,
    ordinal integer default 0,
    intent text default null,
    scope text default null,
    args_may_differ boolean default false,
    lease interval default null,
    provider_dedupes_for interval default null
)
returns durable.begun_effect
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_run durable.runs;
    v_session durable.sessions;
    v_wanted durable.effects;
    v_found durable.effects;
    v_outcome text;
begin
    perform durable.check_me(begin_effect.me);
    perform durable.check_isolation('begin_effect');
    perform durable.commit_durably();
    v_wanted.scope := coalesce(begin_effect.scope, case when begin_effect.intent is null then 'run' else 'user' end);
    perform durable.check_effect(
        begin_effect.tool, normalize(begin_effect.intent, nfc), v_wanted.scope, begin_effect.provider_dedupes_for
    );
    v_wanted.tool := begin_effect.tool;
    v_wanted.intent := normalize(begin_effect.intent, nfc);
    -- In seconds: a day is 25 hours somewhere.
    v_wanted.provider_dedupes_for := make_interval(secs => extract(epoch from begin_effect.provider_dedupes_for)::float8);
    v_wanted.step := durable.check_place(begin_effect.step, 'step');
    v_wanted.ordinal := durable.check_place(begin_effect.ordinal, 'ordinal');
    v_wanted.args := durable.escape_json(begin_effect.args, 'args');
    v_wanted.args_digest := durable.args_digest(v_wanted.args);

    v_run := durable.lock_attempt(begin_effect.run_uid, begin_effect.attempt);
    select s.* into v_session
    from durable.sessions as s
    where s.tenant_id = v_run.tenant_id and s.session_uid = v_run.session_uid;
    if v_session.closed_at is not null then
        perform durable.refuse_session(v_session.session_uid, v_session.closed_at, v_session.close_reason);
    end if;
    v_wanted.tenant_id := v_run.tenant_id;
    v_wanted.user_id := v_run.user_id;
    v_wanted.app_name := v_session.app_name;
    v_wanted.run_uid := v_run.run_uid;
    v_wanted.held_by := v_run.run_uid;
    v_wanted.attempt := v_run.attempt;
    v_wanted.begun_at := clock_timestamp();
    v_wanted.lease_expires_at := case
        when begin_effect.lease is null then v_run.lease_expires_at
        else v_wanted.begun_at + durable.check_lease(begin_effect.lease)
    end;
    perform durable.check_key_size(
        'tenant_id, user_id, app_name and intent',
        v_wanted.tenant_id, v_wanted.user_id, v_wanted.app_name, v_wanted.intent
    );

    for v_round in 1..10 loop
        v_outcome := null;
        v_wanted.begun_at := clock_timestamp();
        v_found := durable.latest_try(v_wanted);
        if v_found.effect_uid is null and v_wanted.scope = 'run' then
            v_found := durable.left_behind(v_run, v_wanted.step);
            if v_found.effect_uid is not null then
                return durable.effect_as_begun(v_found, 'diverged', v_found.args_digest = v_wanted.args_digest);
            end if;
        end if;
        if v_found.effect_uid is not null then
            perform durable.check_same_payload(v_wanted, v_found, begin_effect.args_may_differ);
        end if;
        if v_found.effect_uid is null or v_found.status = 'failed' then
            v_wanted.failures := coalesce(v_found.failures + 1, 0);
            v_found := durable.insert_effect(v_wanted);
            v_outcome := 'execute';
        end if;
        -- No row: another run was faster, and what it wrote is the answer.
        exit when v_found.effect_uid is not null;
    end loop;
    if v_found.effect_uid is null then
        raise exception using
            errcode = 'serialization_failure',
            message = 'many others begin and end the same effect',
            hint = 'Call it again.',
            schema = 'durable';
    end if;

    if v_outcome is null and durable.may_begin_again(v_found, v_wanted) then
        v_found := durable.hold_effect(v_found, v_wanted);
        v_outcome := 'execute';
    elsif v_outcome is null then
        v_outcome := case durable.effect_status(v_found.status, v_found.lease_expires_at)
            when 'succeeded' then 'recorded'
            when 'begun' then 'in_flight'
            else 'unverified'
        end;
    end if;
    -- Whoever waited for another run's lock may have waited for longer than its lease.
    if v_outcome = 'execute' and not durable.holds_run(v_run, v_run.attempt) then
        perform durable.refuse_attempt(v_run, v_run.attempt);
    end if;
    insert into durable.effect_calls (tenant_id, run_uid, attempt, effect_uid, user_id)
    values (v_run.tenant_id, v_run.run_uid, v_run.attempt, v_found.effect_uid, v_run.user_id)
    on conflict do nothing;
    return durable.effect_as_begun(v_found, v_outcome, v_found.args_digest = v_wanted.args_digest);
end
$$;

comment on function durable.begin_effect is
'Answers execute (call the tool, with this idempotency_key, then finish_effect), recorded (with result), in_flight (with lease_expires_at), unverified (then resolve_effect), or diverged (with the earlier effect that this run did here). The key is run, step, tool, args and ordinal; with intent it is user, app and intent. Raises 22W01, 22W02, 22W03, 23W10, 42W01, 42W02, 42W05, 55W01, 55W03, 55W04, 55W05.';

revoke all on function durable.begin_effect from public;
grant execute on function durable.begin_effect to durable_app;

-- The arguments of begin_effect, before any row is looked at: names, places, scope and times.
create or replace function durable.check_effect(
    tool text, intent text, scope text, provider_dedupes_for interval
)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_column text;
    v_message text;
begin
    perform
        durable.check_identifier('tool', check_effect.tool),
        case when check_effect.intent is not null then durable.check_identifier('intent', check_effect.intent) end,
        durable.check_key_size('tenant_id and tool', durable.current_tenant(), check_effect.tool);
    if not check_effect.provider_dedupes_for between interval '100 milliseconds' and interval '366 days' then
        v_column := 'provider_dedupes_for';
        v_message := format('provider_dedupes_for is %s', check_effect.provider_dedupes_for);
    elsif check_effect.intent is null and check_effect.scope <> 'run' then
        v_column := 'scope';
        v_message := format('the scope %L is given and no intent', check_effect.scope);
    elsif check_effect.intent is not null and check_effect.scope not in ('user', 'tenant') then
        v_column := 'scope';
        v_message := format('%L is no scope of an intent', check_effect.scope);
    end if;
    if v_message is not null then
        perform durable.refuse_argument(
            v_column,
            v_message,
            'scope is user (the default of an intent) or tenant, and goes with an intent; provider_dedupes_for is 100 milliseconds to 366 days, such as 24 hours, or left out.'
        );
    end if;
end
$$;

comment on function durable.check_effect is 'Raises 22W01 or 22W03, naming the argument of begin_effect.';

revoke all on function durable.check_effect from public;

-- An intent means one thing: the same tool with the same arguments, unless the tool's author said that they may differ.
create or replace function durable.check_same_payload(
    wanted durable.effects, recorded durable.effects, args_may_differ boolean
)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if (wanted).tool = (recorded).tool
        and ((wanted).args_digest = (recorded).args_digest or check_same_payload.args_may_differ is true)
    then
        return;
    end if;
    raise exception using
        errcode = '23W10',
        message = format(
            'the intent %L was begun %s', (wanted).intent,
            case
                when (wanted).tool <> (recorded).tool then format('for the tool %L', (recorded).tool)
                else 'with other arguments'
            end
        ),
        detail = format(
            'effect %s of run %s, %s, first begun at %s',
            (recorded).effect_uid, (recorded).run_uid,
            durable.effect_status((recorded).status, (recorded).lease_expires_at), (recorded).first_begun_at
        ),
        hint = 'If it is another thing to do, give it another intent. If a model may reword it, pass args_may_differ => true: the recorded result is then the answer.',
        schema = 'durable',
        table = 'effects',
        column = case when (wanted).tool <> (recorded).tool then 'tool' else 'args' end;
end
$$;

comment on function durable.check_same_payload is
'Raises 23W10 for another tool, or for other arguments unless they may differ.';

revoke all on function durable.check_same_payload from public;

-- An effect in the form that begin_effect returns. The attempt is told only to whoever is to call the tool and to say
-- how it ended.
create or replace function durable.effect_as_begun(effect durable.effects, outcome text, args_match boolean)
returns durable.begun_effect
language sql volatile
begin atomic
    select
        (effect).effect_uid,
        (effect).held_by,
        (effect).idempotency_key,
        effect_as_begun.outcome,
        durable.effect_status((effect).status, (effect).lease_expires_at),
        (effect).step,
        (effect).ordinal,
        (effect).tool,
        durable.unescape_json((effect).args),
        effect_as_begun.args_match,
        durable.unescape_json((effect).result),
        durable.unescape_json((effect).error),
        case when effect_as_begun.outcome = 'execute' then (effect).attempt end,
        (effect).failures,
        (effect).lease_expires_at,
        (effect).begun_at;
end;

comment on function durable.effect_as_begun is 'An effect as begin_effect returns it.';

revoke all on function durable.effect_as_begun from public;
--! sql/calls/finish_effect.sql
-- Records how an effect ended, by the attempt that has begun it last; run_uid says whose attempt that is where it is
-- not the run that made the effect. For the app. Asks for no lease: a late true outcome is worth more than none, as
-- long as nobody has begun the effect again or looked. Locks the effect only.
set local role durable_engine;

create or replace function durable.finish_effect(
    me text default null,
    effect_uid uuid default null,
    attempt integer default null,
    status text default null,
    result json default null,
    error json default null,
    run_uid uuid default null
)
returns durable.effect_row
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    -- No result and the result null are one.
    v_result constant jsonb := nullif(durable.escape_json(finish_effect.result, 'result'), 'null');
    v_error constant jsonb := nullif(durable.escape_json(finish_effect.error, 'error'), 'null');
    v_effect durable.effects;
    v_status text;
begin
    perform durable.check_me(finish_effect.me);
    perform durable.check_finish(finish_effect.status, v_result, v_error, array['succeeded', 'failed', 'unverified']);
    select e.* into v_effect
    from durable.effects as e
    where e.effect_uid = finish_effect.effect_uid
        -- Under this caller's policies: it is in the hands of one of its own runs.
        and exists (
            select from durable.runs as r where r.tenant_id = e.tenant_id and r.run_uid = e.held_by
        )
    for no key update of e;
    if not found then
        perform durable.refuse_effect(finish_effect.effect_uid);
    end if;

    if v_effect.status = finish_effect.status
        and v_effect.result is not distinct from v_result
        and (v_effect.error is not distinct from v_error or v_effect.evidence is not null)
    then
        return durable.effect_as_row(v_effect, 'already_finished');
    elsif finish_effect.attempt is distinct from v_effect.attempt
        or coalesce(finish_effect.run_uid, v_effect.run_uid) <> v_effect.held_by
    then
        raise exception using
            errcode = '55W04',
            message = format(
                '%s has not begun effect %s last',
                coalesce('attempt ' || finish_effect.attempt, 'an attempt that is not given'), v_effect.effect_uid
            ),
            detail = format(
                'it is %s, begun last by run %s',
                durable.effect_status(v_effect.status, v_effect.lease_expires_at), v_effect.held_by
            ),
            hint = 'Pass attempt and run_uid as begin_effect returned them. If another one has begun the effect since, its outcome counts.',
            schema = 'durable',
            table = 'effects';
    elsif v_effect.finished_at is not null then
        perform durable.refuse_outcome(v_effect, finish_effect.status);
    elsif v_effect.status = finish_effect.status then
        -- Unverified for another reason than before: nobody knows either way.
        return durable.effect_as_row(v_effect, 'already_finished');
    end if;
    -- That the last call did nothing says nothing of the one before it: begun again, it failed for certain only if
    -- somebody looks.
    v_status := case
        when finish_effect.status = 'failed' and v_effect.begun_at > v_effect.first_begun_at then 'unverified'
        else finish_effect.status
    end;
    update durable.effects as e
    set
        status = v_status,
        result = v_result,
        error = v_error,
        finished_at = case when v_status <> 'unverified' then clock_timestamp() end
    where e.tenant_id = v_effect.tenant_id and e.effect_uid = v_effect.effect_uid
    returning e.* into strict v_effect;
    return durable.effect_as_row(v_effect, 'finished');
end
$$;

comment on function durable.finish_effect is
'Records succeeded (with result), failed (it certainly did not happen) or unverified; failed becomes unverified where the effect was begun more than once, since it speaks of the last call only. outcome finished, or already_finished for an equal repeat. Raises 22W02, 22W03, 23W02 (another outcome is recorded), 42W01, 42W02, 42W07, 55W04 (another attempt has begun it since).';

revoke all on function durable.finish_effect from public;
grant execute on function durable.finish_effect to durable_app;
--! sql/calls/resolve_effect.sql
-- Says what became of an unverified effect, with evidence: the only way out of unverified beside its own worker's late
-- word. For the app (its user's own effects) and for operators (their tenant's); each half checks for itself, and
-- leaves an audit row.
set local role durable_owner;

create or replace function durable.resolve_effect(
    me text default null,
    effect_uid uuid default null,
    status text default null,
    evidence json default null,
    result json default null,
    as_of timestamptz default null
)
returns durable.effect_row
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    perform durable.check_me(resolve_effect.me);
    if pg_has_role(current_user, 'durable_operator', 'USAGE') then
        return durable.resolve_tenant_effect(
            resolve_effect.effect_uid, resolve_effect.status, resolve_effect.evidence, resolve_effect.result,
            resolve_effect.as_of
        );
    end if;
    return durable.resolve_own_effect(
        resolve_effect.effect_uid, resolve_effect.status, resolve_effect.evidence, resolve_effect.result,
        resolve_effect.as_of
    );
end
$$;

comment on function durable.resolve_effect is
'Resolves an unverified effect as succeeded (with result) or failed (it may then be begun again); evidence is {"channel": through what was looked, "seen": what was seen, ...}. as_of: the begun_at that was known when somebody looked; what was begun since is not resolved. outcome resolved, or already_resolved for an equal repeat; leaves an audit row. Raises 22W02, 22W03, 23W02 (it has an outcome), 42W01, 42W02, 42W07, 55W09 (its worker still has it, or it was begun again since as_of).';

revoke all on function durable.resolve_effect from public;
grant execute on function durable.resolve_effect to durable_app, durable_operator;

set local role durable_engine;

-- resolve_effect for the app: effects of its tenant and user, not those that others have done for the tenant.
create or replace function durable.resolve_own_effect(
    effect_uid uuid, status text, evidence json, result json, as_of timestamptz
)
returns durable.effect_row
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return durable.resolve_open_effect(
        resolve_own_effect.effect_uid, durable.current_user_id(), resolve_own_effect.status,
        resolve_own_effect.evidence, resolve_own_effect.result, resolve_own_effect.as_of
    );
end
$$;

comment on function durable.resolve_own_effect is 'What resolve_effect does for an app; see there.';

revoke all on function durable.resolve_own_effect from public;
grant execute on function durable.resolve_own_effect to durable_app;

set local role durable_steward;

-- resolve_effect for operators: effects of their tenant.
create or replace function durable.resolve_tenant_effect(
    effect_uid uuid, status text, evidence json, result json, as_of timestamptz
)
returns durable.effect_row
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return durable.resolve_open_effect(
        resolve_tenant_effect.effect_uid, null, resolve_tenant_effect.status,
        resolve_tenant_effect.evidence, resolve_tenant_effect.result, resolve_tenant_effect.as_of
    );
end
$$;

comment on function durable.resolve_tenant_effect is 'What resolve_effect does for an operator; see there.';

revoke all on function durable.resolve_tenant_effect from public;
grant execute on function durable.resolve_tenant_effect to durable_operator;

set local role durable_owner;

-- Ends an unverified effect on the word of somebody who looked, and writes their act down in the audit log. For the
-- functions behind resolve_effect, under the row policies of their owners.
create or replace function durable.resolve_open_effect(
    effect_uid uuid, user_id text, status text, evidence json, result json, as_of timestamptz
)
returns durable.effect_row
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_result constant jsonb := nullif(durable.escape_json(resolve_open_effect.result, 'result'), 'null');
    v_evidence constant jsonb := durable.check_evidence(resolve_open_effect.evidence);
    v_effect durable.effects;
begin
    perform durable.check_finish(resolve_open_effect.status, v_result, null, array['succeeded', 'failed']);
    select e.* into v_effect
    from durable.effects as e
    where e.tenant_id = durable.current_tenant()
        and e.effect_uid = resolve_open_effect.effect_uid
        and (
            resolve_open_effect.user_id is null
            or e.user_id = resolve_open_effect.user_id
            -- Done for the tenant, and in the hands of this user's run.
            or exists (
                select
                from durable.runs as r
                where r.tenant_id = e.tenant_id and r.run_uid = e.held_by and r.user_id = resolve_open_effect.user_id
            )
        )
    for no key update of e;
    if not found then
        perform durable.refuse_effect(resolve_open_effect.effect_uid);
    elsif v_effect.status = resolve_open_effect.status
        and v_effect.evidence = v_evidence
        and v_effect.result is not distinct from v_result
    then
        return durable.effect_as_row(v_effect, 'already_resolved');
    elsif v_effect.finished_at is not null then
        perform durable.refuse_outcome(v_effect, resolve_open_effect.status);
    elsif durable.effect_status(v_effect.status, v_effect.lease_expires_at) <> 'unverified' then
        raise exception using
            errcode = '55W09',
            message = format('effect %s is in flight', v_effect.effect_uid),
            detail = format('attempt %s of run %s has it until %s', v_effect.attempt, v_effect.held_by, v_effect.lease_expires_at),
            hint = 'Its worker may still say what happened. Wait until the lease is over, then look at the provider again.',
            schema = 'durable',
            table = 'effects';
    elsif v_effect.begun_at > resolve_open_effect.as_of then
        raise exception using
            errcode = '55W09',
            message = format('effect %s was begun again since somebody looked', v_effect.effect_uid),
            detail = format('begun at %s, looked at as of %s', v_effect.begun_at, resolve_open_effect.as_of),
            hint = 'Look at the provider again.',
            schema = 'durable',
            table = 'effects';
    end if;

    update durable.effects as e
    set
        status = resolve_open_effect.status,
        result = v_result,
        error = null,
        evidence = v_evidence,
        finished_at = clock_timestamp()
    where e.tenant_id = v_effect.tenant_id and e.effect_uid = v_effect.effect_uid
    returning e.* into strict v_effect;
    insert into durable.audit_log (tenant_id, acted_by, action, subject_kind, subject_uid, reason, detail)
    values (
        v_effect.tenant_id, durable.current_user_id(), 'resolve_effect', 'effect', v_effect.effect_uid,
        left(durable.trimmed(v_evidence ->> 'seen'), 2000),
        jsonb_build_object('status', v_effect.status, 'evidence', v_evidence, 'user_id', v_effect.user_id)
    );
    return durable.effect_as_row(v_effect, 'resolved');
end
$$;

comment on function durable.resolve_open_effect is
'The effect, resolved; of this user only unless user_id is NULL. Raises 22W02, 22W03, 23W02, 42W07, 55W09.';

revoke all on function durable.resolve_open_effect from public;
grant execute on function durable.resolve_open_effect to durable_engine, durable_steward;

-- Nobody says what became of an effect without saying how they know: through which channel they looked, and what they
-- saw. Who looked is stamped beside it; evidence may name somebody else as who.
create or replace function durable.check_evidence(evidence json)
returns jsonb
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_evidence jsonb;
    v_missing text;
begin
    v_evidence := coalesce(durable.escape_object(check_evidence.evidence, 'evidence'), '{}');
    select string_agg(field.name, ', ') into v_missing
    from unnest(array['channel', 'seen']) as field (name)
    where (jsonb_typeof(v_evidence -> field.name) = 'string' and durable.trimmed(v_evidence ->> field.name) <> '') is not true;
    if v_missing is not null then
        perform durable.refuse_argument(
            'evidence',
            format('evidence does not say %s', v_missing),
            'Pass {"channel": "Stripe dashboard", "seen": "refund re_7 of 20 EUR, succeeded"}; more keys are kept too.'
        );
    end if;
    return v_evidence;
end
$$;

comment on function durable.check_evidence is
'The stored form of evidence. Raises 22W03 unless it is an object with texts under channel and seen; 22W02.';

revoke all on function durable.check_evidence from public;
grant execute on function durable.check_evidence to durable_engine, durable_steward;
--! sql/calls/list_effects.sql
-- The effects that the caller may see, newest first: an app its user's own and those of its tenant as a whole, an
-- operator its tenant's. Of one run: all that it asked for, also those another run has done.
set local role durable_owner;

create or replace function durable.list_effects(
    me text default null, run_uid uuid default null, status text default null
)
returns setof durable.effect_row
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform durable.check_me(list_effects.me);
    if list_effects.status not in ('begun', 'succeeded', 'failed', 'unverified') then
        perform durable.refuse_argument(
            'status',
            format('%L is no status of an effect', list_effects.status),
            'Ask for begun, succeeded, failed or unverified, or leave it out.'
        );
    end if;
    -- Three ways to the rows, each with an index of its own.
    if list_effects.run_uid is not null then
        perform durable.find_run(list_effects.run_uid);
        return query
        select l.*
        from durable.effects as e
        cross join lateral durable.effect_as_row(e, null) as l
        where e.tenant_id = durable.current_tenant()
            and e.effect_uid in (
                select c.effect_uid
                from durable.effect_calls as c
                where c.tenant_id = durable.current_tenant() and c.run_uid = list_effects.run_uid
            )
            and (list_effects.status is null or durable.effect_status(e.status, e.lease_expires_at) = list_effects.status)
        order by e.first_begun_at desc, e.effect_uid desc;
    elsif list_effects.status in ('begun', 'unverified') then
        return query
        select l.*
        from durable.effects as e
        cross join lateral durable.effect_as_row(e, null) as l
        where e.tenant_id = durable.current_tenant()
            and e.status in ('begun', 'unverified')
            and durable.effect_status(e.status, e.lease_expires_at) = list_effects.status
        order by e.first_begun_at desc, e.effect_uid desc;
    else
        return query
        select l.*
        from durable.effects as e
        cross join lateral durable.effect_as_row(e, null) as l
        where e.tenant_id = durable.current_tenant() and (list_effects.status is null or e.status = list_effects.status)
        order by e.first_begun_at desc, e.effect_uid desc;
    end if;
end
$$;

comment on function durable.list_effects is
'Effects under the caller''s own row policies, of one run or of all, of one effective status or of any. Raises 22W03, 42W01, 42W02, 42W05.';

revoke all on function durable.list_effects from public;
grant execute on function durable.list_effects to durable_app, durable_operator;
--! sql/calls/save_checkpoint.sql
-- Saves the state of a run after a step, as the attempt that holds it. For the app. Locks session and run.
set local role durable_engine;

create or replace function durable.save_checkpoint(
    me text default null,
    run_uid uuid default null,
    attempt integer default null,
    step integer default null,
    state json default null,
    schema_version integer default 1
)
returns durable.checkpoint_row
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_state constant jsonb := coalesce(durable.escape_json(save_checkpoint.state, 'state'), 'null');
begin
    perform durable.check_me(save_checkpoint.me);
    perform durable.check_isolation('save_checkpoint');
    return durable.write_checkpoint(
        durable.lock_attempt(save_checkpoint.run_uid, save_checkpoint.attempt),
        save_checkpoint.step, v_state, save_checkpoint.schema_version
    );
end
$$;

comment on function durable.save_checkpoint is
'Saves the state after a step (from 0 or 1, one by one); outcome saved, or already_saved for an equal repeat. Raises 22W02, 22W03, 23W11 (another state is saved for the step), 42W01, 42W02, 42W05, 55W03, 55W04, 55W05, 55W10 (a gap).';

revoke all on function durable.save_checkpoint from public;
grant execute on function durable.save_checkpoint to durable_app;
--! sql/calls/load_checkpoint.sql
-- The newest checkpoint of a run, or no row. For the app and operators, under their own row policies.
set local role durable_owner;

create or replace function durable.load_checkpoint(me text default null, run_uid uuid default null)
returns setof durable.checkpoint_row
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_run durable.runs;
begin
    perform durable.check_me(load_checkpoint.me);
    v_run := durable.find_run(load_checkpoint.run_uid);
    return query
    select l.*
    from durable.checkpoints as k
    cross join lateral durable.checkpoint_as_row(k, 'loaded') as l
    where k.tenant_id = v_run.tenant_id and k.run_uid = v_run.run_uid
    order by k.step desc
    limit 1;
end
$$;

comment on function durable.load_checkpoint is
'The checkpoint of the last saved step, outcome loaded; no row when none is saved. Raises 22W03, 42W01, 42W02, 42W05.';

revoke all on function durable.load_checkpoint from public;
grant execute on function durable.load_checkpoint to durable_app, durable_operator;
--! sql/calls/record_step.sql
-- Records a step of a run as one: its events, the effects that have ended, and the state to go on from, all or none.
-- For the app, as the attempt that holds the run. One transaction and one round trip. Locks session, run, effects.
set local role durable_engine;

create or replace function durable.record_step(
    me text default null,
    run_uid uuid default null,
    attempt integer default null,
    step integer default null,
    events json default null,
    finished json default null,
    state json default null,
    schema_version integer default 1
)
returns durable.recorded_step
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_state constant jsonb := durable.escape_json(record_step.state, 'state');
    v_events constant jsonb := coalesce(durable.escape_json(record_step.events, 'events'), '[]');
    v_finished constant jsonb := coalesce(durable.escape_json(record_step.finished, 'finished'), '[]');
    v_run durable.runs;
    v_item jsonb;
    v_seqs integer[] := '{}';
    v_last_seq integer;
    v_outcome text := 'recorded';
begin
    perform durable.check_me(record_step.me);
    perform durable.check_isolation('record_step');
    perform durable.check_place(record_step.step, 'step');
    perform durable.check_items(v_events, 'events', array[
        'author', 'content', 'event_id', 'metadata', 'state_delta', 'occurred_at', 'repeatable', 'extra_tool_calls'
    ]);
    perform durable.check_items(v_finished, 'finished', array['effect_uid', 'status', 'result', 'error']);

    select r.* into v_run from durable.runs as r where r.run_uid = record_step.run_uid;
    if not found then
        perform durable.refuse_run(record_step.run_uid);
    end if;
    perform durable.lock_session(v_run.session_uid);
    v_run := durable.lock_attempt(v_run.run_uid, record_step.attempt);

    for v_item in select i.value from jsonb_array_elements(v_events) as i loop
        -- A key that is null is a key left out.
        v_seqs := v_seqs || (durable.append_event(
            session_uid => v_run.session_uid,
            author => v_item ->> 'author',
            content => durable.unescape_json(nullif(v_item -> 'content', 'null')),
            invocation_id => v_run.invocation_id,
            event_id => v_item ->> 'event_id',
            metadata => durable.unescape_json(nullif(v_item -> 'metadata', 'null')),
            state_delta => durable.unescape_json(nullif(v_item -> 'state_delta', 'null')),
            occurred_at => (v_item ->> 'occurred_at')::timestamptz,
            repeatable => (v_item ->> 'repeatable')::boolean,
            extra_tool_calls => case
                when jsonb_typeof(v_item -> 'extra_tool_calls') = 'array'
                    then array(select jsonb_array_elements_text(v_item -> 'extra_tool_calls'))
            end,
            attempt => v_run.attempt
        )).seq;
    end loop;
    for v_item in select i.value from jsonb_array_elements(v_finished) as i loop
        perform durable.finish_effect(
            effect_uid => (v_item ->> 'effect_uid')::uuid,
            attempt => v_run.attempt,
            status => v_item ->> 'status',
            result => durable.unescape_json(v_item -> 'result'),
            error => durable.unescape_json(v_item -> 'error'),
            run_uid => v_run.run_uid
        );
    end loop;
    if v_state is not null then
        v_outcome := (durable.write_checkpoint(v_run, record_step.step, v_state, record_step.schema_version)).outcome;
    end if;
    select s.last_seq into v_last_seq
    from durable.sessions as s
    where s.tenant_id = v_run.tenant_id and s.session_uid = v_run.session_uid;
    return (v_run.run_uid, record_step.step, v_last_seq, v_seqs, v_outcome)::durable.recorded_step;
end
$$;

comment on function durable.record_step is
'Appends events (objects with the parameters of append_event, event_id among them, or a repeat adds them again), finishes effects (objects with effect_uid, status, result, error) and saves the state of a step, all or none; outcome saved, already_saved, or recorded without a state. Raises what append_event, finish_effect and save_checkpoint raise: 22W01, 22W02, 22W03, 22W04, 23W02, 23W05, 23W06, 23W11, 42W01, 42W02, 42W04, 42W05, 42W07, 55W01, 55W03, 55W04, 55W05, 55W08, 55W10.';

revoke all on function durable.record_step from public;
grant execute on function durable.record_step to durable_app;

set local role durable_owner;

-- A list of objects as one argument of record_step, in its stored form: known keys only, so that nothing a caller says
-- is lost in silence, each of the type that its parameter has.
create or replace function durable.check_items(items jsonb, field text, keys text[])
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_item jsonb;
    v_place integer := 0;
    v_member record;
    v_problem text;
begin
    if jsonb_typeof(check_items.items) <> 'array' then
        v_problem := format('%s is a JSON %s, it has to be an array', check_items.field, jsonb_typeof(check_items.items));
    else
        for v_item in select i.value from jsonb_array_elements(check_items.items) as i loop
            if jsonb_typeof(v_item) <> 'object' then
                v_problem := format(
                    '%s[%s] is a JSON %s, it has to be an object', check_items.field, v_place, jsonb_typeof(v_item)
                );
                exit;
            end if;
            for v_member in select m.key, m.value from jsonb_each(v_item) as m loop
                v_problem := case
                    when v_member.key <> all (check_items.keys)
                        then format('%s[%s] has an unknown key: %s', check_items.field, v_place, left(v_member.key, 200))
                    when durable.is_item_value(v_member.key, v_member.value) is not true
                        then format('%s[%s].%s is not what it has to be', check_items.field, v_place, v_member.key)
                end;
                exit when v_problem is not null;
            end loop;
            exit when v_problem is not null;
            v_place := v_place + 1;
        end loop;
    end if;
    if v_problem is not null then
        perform durable.refuse_argument(
            check_items.field,
            v_problem,
            'Names are texts without NUL, effect_uid a uuid, occurred_at a time with its zone, repeatable true or false, extra_tool_calls an array of texts.',
            format('The keys are %s, of the types that the parameters of these names have.', array_to_string(check_items.keys, ', '))
        );
    end if;
end
$$;

comment on function durable.check_items is
'Raises 22W03 unless it is an array of objects with these keys, and values of their types.';

revoke all on function durable.check_items from public;
grant execute on function durable.check_items to durable_engine;

-- Says whether a value may stand under a key of record_step's items. null stands for a key that is left out. What only
-- the parser of a type can tell (a time) is tried.
create or replace function durable.is_item_value(key text, value jsonb)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_text constant text := is_item_value.value #>> '{}';
begin
    if jsonb_typeof(is_item_value.value) = 'null' or is_item_value.key in ('content', 'result', 'error') then
        return true;
    end if;
    case
        when is_item_value.key in ('metadata', 'state_delta') then
            return jsonb_typeof(is_item_value.value) = 'object';
        when is_item_value.key = 'repeatable' then
            return jsonb_typeof(is_item_value.value) = 'boolean';
        when is_item_value.key = 'extra_tool_calls' then
            return jsonb_typeof(is_item_value.value) = 'array' and strpos(v_text, chr(65534)) = 0
                and not exists (
                    select from jsonb_array_elements(is_item_value.value) as t where jsonb_typeof(t.value) <> 'string'
                );
        when jsonb_typeof(is_item_value.value) <> 'string' or strpos(v_text, chr(65534)) > 0 then
            return false;
        when is_item_value.key = 'effect_uid' then
            perform v_text::uuid;
        when is_item_value.key = 'occurred_at' then
            perform v_text::timestamptz;
        else
            return true;
    end case;
    return true;
exception
    when data_exception then
        return false;
end
$$;

comment on function durable.is_item_value is 'True for a value of the type that the parameter of this name has, and for null.';

revoke all on function durable.is_item_value from public;
grant execute on function durable.is_item_value to durable_engine;
--! sql/calls/declare_tools.sql
-- Stores what a program declares of its tools, all or none. For operators. Where a stored class is stricter it stays: a
-- deployment can't loosen what somebody has tightened; set_tool can.
set local role durable_steward;

create or replace function durable.declare_tools(
    me text default null, app_name text default null, tools json default null
)
returns setof durable.tool_row
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_declared constant jsonb := durable.escape_object(declare_tools.tools, 'tools');
    v_tool record;
begin
    perform durable.check_me(declare_tools.me);
    perform durable.check_identifier('app_name', declare_tools.app_name);
    if v_declared is null then
        perform durable.refuse_argument(
            'tools',
            'tools is missing',
            'Pass {"tool": "read_only" | "keyed" | "effect", ...}.'
        );
    end if;
    -- In one order, so that two deployments at once wait for each other.
    for v_tool in
        select t.key as tool, t.value #>> '{}' as replay_class
        from jsonb_each(v_declared) as t
        order by t.key collate "C"
    loop
        -- In its stored form: what a text can't hold (NUL, half a surrogate pair) is escaped, and is no name.
        if strpos(v_tool.tool, chr(65534)) > 0 then
            raise exception using
                errcode = '22W01',
                message = 'tool holds NUL, half a surrogate pair or U+FFFE',
                detail = 'field tool',
                hint = 'Names are texts as every language has them.',
                schema = 'durable',
                column = 'tool';
        end if;
        return next durable.write_tool(
            declare_tools.app_name, v_tool.tool, v_tool.replay_class, true, 'declared by the program'
        );
    end loop;
end
$$;

comment on function durable.declare_tools is
'Stores {"tool": "read_only" | "keyed" | "effect", ...} of an app; one row a tool with outcome written, unchanged or kept (what is stored is stricter). Leaves audit rows. Raises 22W01, 22W02, 22W03, 42W01, 42W02.';

revoke all on function durable.declare_tools from public;
grant execute on function durable.declare_tools to durable_operator;
--! sql/calls/set_tool.sql
-- Sets the replay class of a tool, looser ones included. For operators, with a reason.
set local role durable_steward;

create or replace function durable.set_tool(
    me text default null,
    app_name text default null,
    tool text default null,
    replay_class text default null,
    reason text default null
)
returns durable.tool_row
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform durable.check_me(set_tool.me);
    return durable.write_tool(
        set_tool.app_name, set_tool.tool, set_tool.replay_class, false, durable.check_reason(set_tool.reason)
    );
end
$$;

comment on function durable.set_tool is
'Stores the class of one tool whatever was stored before; outcome written or unchanged. Leaves an audit row. Raises 22W01, 22W03, 42W01, 42W02.';

revoke all on function durable.set_tool from public;
grant execute on function durable.set_tool to durable_operator;
--! sql/calls/list_tools.sql
-- What is known of the tools of the caller's tenant, of one app or of all. For the app and operators.
set local role durable_owner;

create or replace function durable.list_tools(me text default null, app_name text default null)
returns setof durable.tool_row
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    perform durable.check_me(list_tools.me);
    return query
    select t.app_name, t.tool, t.replay_class, t.updated_at, 'stored'
    from durable.tools as t
    where t.tenant_id = durable.current_tenant() and (list_tools.app_name is null or t.app_name = list_tools.app_name)
    order by t.app_name, t.tool;
end
$$;

comment on function durable.list_tools is
'The stored tools, outcome stored; a tool that is not among them counts as effect. Raises 42W01, 42W02.';

revoke all on function durable.list_tools from public;
grant execute on function durable.list_tools to durable_app, durable_operator;
--! sql/calls/retry_verdict.sql
-- May a failed attempt at this turn be sent again automatically (rate limit, empty answer)? Read from the record, not
-- from the exception: only while no tool call is recorded that a repeat could do twice. Advice as of now; for the app,
-- operators and auditors.
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
    v_recorded text[];
    v_unverified text[];
    v_blocking text[];
begin
    perform durable.check_me(retry_verdict.me);
    perform durable.check_isolation('retry_verdict');
    v_run := durable.find_run(retry_verdict.run_uid);
    v_recorded := coalesce(durable.recorded_tools(v_run), '{}');
    v_unverified := durable.unverified_tools(v_run);
    v_blocking := durable.blocking_tools(v_run);
    reason := case
        when v_run.settled_at is not null then 'settled'
        when cardinality(v_unverified) > 0 then 'unverified'
        when cardinality(v_blocking) > 0 then 'tools_recorded'
        when cardinality(v_recorded) > 0 then 'nothing_repeats'
        else 'no_tool_recorded'
    end;
    tools := case reason
        when 'unverified' then v_unverified
        when 'tools_recorded' then v_blocking
        when 'nothing_repeats' then '{}'
        else v_recorded
    end;
    allowed := reason in ('no_tool_recorded', 'nothing_repeats');
end
$$;

comment on function durable.retry_verdict is
'allowed, reason (no_tool_recorded, nothing_repeats; or settled, unverified, tools_recorded) and the tools that block, by name. Raises 22W03, 42W01, 42W02, 42W05, 55W05.';

revoke all on function durable.retry_verdict from public;
grant execute on function durable.retry_verdict to durable_app, durable_operator, durable_auditor;
--! sql/calls/replay_verdict.sql
-- May a new run be started from this settled run's input? Only when it is known that nothing would happen twice: by the
-- log, the ledger and the classes of tools. Advice as of now; for the app, operators and auditors.
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
    v_unverified text[];
    v_blocking text[];
begin
    perform durable.check_me(replay_verdict.me);
    perform durable.check_isolation('replay_verdict');
    v_run := durable.find_run(replay_verdict.run_uid);
    v_recorded := durable.recorded_tools(v_run);
    v_unverified := durable.unverified_tools(v_run);
    v_blocking := durable.blocking_tools(v_run);
    reason := case
        when v_run.settled_at is null then 'not_settled'
        when cardinality(v_unverified) > 0 then 'unverified'
        when v_run.status = 'succeeded' then 'succeeded'
        -- Nobody's word counts without a history: nothing is recorded, or it is gone.
        when v_run.tools_executed is null or v_recorded is null then 'unknown'
        when cardinality(v_blocking) > 0 then 'tools_executed'
        when cardinality(v_run.tools_executed) > 0 then 'nothing_repeats'
        else 'nothing_executed'
    end;
    tools := case reason
        when 'unverified' then v_unverified
        when 'tools_executed' then v_blocking
        when 'nothing_repeats' then '{}'
        else coalesce(v_run.tools_executed, v_recorded, '{}')
    end;
    allowed := reason in ('nothing_executed', 'nothing_repeats');
end
$$;

comment on function durable.replay_verdict is
'allowed, reason (nothing_executed, nothing_repeats; or not_settled, succeeded, unverified, unknown, tools_executed) and the tools that block, by name. Raises 22W03, 42W01, 42W02, 42W05, 55W05.';

revoke all on function durable.replay_verdict from public;
grant execute on function durable.replay_verdict to durable_app, durable_operator, durable_auditor;
--! sql/access/sessions.sql
-- Who sees and writes which states, sessions and events. No DELETE for anybody, no UPDATE of events; no INSERT or
-- UPDATE for a front role.
set local role durable_owner;

-- State of an app is the whole tenant's.
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

alter table durable.sessions enable row level security;
alter table durable.sessions force row level security;

create policy refuse_owner on durable.sessions for all to durable_owner
using (tenant_id = durable.refuse_owner());

create policy select_own on durable.sessions for select to durable_app, durable_engine
using (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy select_tenant on durable.sessions for select to durable_operator, durable_steward
using (tenant_id = durable.current_tenant());

create policy select_all on durable.sessions for select to durable_auditor, durable_janitor
using (true);

create policy insert_own on durable.sessions for insert to durable_engine
with check (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy update_own on durable.sessions for update to durable_engine
using (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy update_tenant on durable.sessions for update to durable_steward
using (tenant_id = durable.current_tenant());

alter table durable.events enable row level security;
alter table durable.events force row level security;

create policy refuse_owner on durable.events for all to durable_owner
using (tenant_id = durable.refuse_owner());

create policy select_own on durable.events for select to durable_app, durable_engine
using (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy select_tenant on durable.events for select to durable_operator, durable_steward
using (tenant_id = durable.current_tenant());

create policy select_all on durable.events for select to durable_auditor
using (true);

create policy insert_own on durable.events for insert to durable_engine
with check (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());
--! sql/access/runs.sql
-- Who sees and writes which runs and checkpoints. No DELETE for anybody, no UPDATE of checkpoints; no INSERT or UPDATE
-- for a front role.
set local role durable_owner;

alter table durable.runs enable row level security;
alter table durable.runs force row level security;

create policy refuse_owner on durable.runs for all to durable_owner
using (tenant_id = durable.refuse_owner());

create policy select_own on durable.runs for select to durable_app, durable_engine
using (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy select_tenant on durable.runs for select to durable_operator, durable_steward
using (tenant_id = durable.current_tenant());

create policy select_all on durable.runs for select to durable_auditor, durable_janitor
using (true);

create policy insert_own on durable.runs for insert to durable_engine
with check (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy update_own on durable.runs for update to durable_engine
using (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy update_tenant on durable.runs for update to durable_steward
using (tenant_id = durable.current_tenant());

create policy update_all on durable.runs for update to durable_janitor
using (true);

alter table durable.checkpoints enable row level security;
alter table durable.checkpoints force row level security;

create policy refuse_owner on durable.checkpoints for all to durable_owner
using (tenant_id = durable.refuse_owner());

create policy select_own on durable.checkpoints for select to durable_app, durable_engine
using (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy select_tenant on durable.checkpoints for select to durable_operator
using (tenant_id = durable.current_tenant());

create policy select_all on durable.checkpoints for select to durable_auditor
using (true);

create policy insert_own on durable.checkpoints for insert to durable_engine
with check (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());
--! sql/access/effects.sql
-- Who sees and writes which effects, and which calls of them. No DELETE for anybody, no UPDATE of effect_calls; no
-- INSERT or UPDATE for a front role.
set local role durable_owner;

-- An effect of the scope tenant is meant for all users of the tenant: they see it, and a run of theirs may begin it
-- again.
alter table durable.effects enable row level security;
alter table durable.effects force row level security;

create policy refuse_owner on durable.effects for all to durable_owner
using (tenant_id = durable.refuse_owner());

create policy select_own on durable.effects for select to durable_app, durable_engine
using (tenant_id = durable.current_tenant() and (user_id = durable.current_user_id() or scope = 'tenant'));

create policy select_tenant on durable.effects for select to durable_operator, durable_steward
using (tenant_id = durable.current_tenant());

create policy select_all on durable.effects for select to durable_auditor, durable_janitor
using (true);

create policy insert_own on durable.effects for insert to durable_engine
with check (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy update_own on durable.effects for update to durable_engine
using (tenant_id = durable.current_tenant() and (user_id = durable.current_user_id() or scope = 'tenant'));

create policy update_tenant on durable.effects for update to durable_steward
using (tenant_id = durable.current_tenant());

create policy update_all on durable.effects for update to durable_janitor
using (true);

alter table durable.effect_calls enable row level security;
alter table durable.effect_calls force row level security;

create policy refuse_owner on durable.effect_calls for all to durable_owner
using (tenant_id = durable.refuse_owner());

create policy select_own on durable.effect_calls for select to durable_app, durable_engine
using (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy select_tenant on durable.effect_calls for select to durable_operator, durable_steward
using (tenant_id = durable.current_tenant());

create policy select_all on durable.effect_calls for select to durable_auditor, durable_janitor
using (true);

create policy insert_own on durable.effect_calls for insert to durable_engine
with check (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());
--! sql/access/operators.sql
-- Who sees and writes which tools and audit rows. No DELETE for anybody, no UPDATE of audit_log; no INSERT or UPDATE
-- for a front role.
set local role durable_owner;

alter table durable.tools enable row level security;
alter table durable.tools force row level security;

create policy refuse_owner on durable.tools for all to durable_owner
using (tenant_id = durable.refuse_owner());

create policy select_tenant on durable.tools for select to durable_app, durable_operator, durable_steward
using (tenant_id = durable.current_tenant());

create policy select_all on durable.tools for select to durable_auditor
using (true);

create policy insert_tenant on durable.tools for insert to durable_steward
with check (tenant_id = durable.current_tenant());

create policy update_tenant on durable.tools for update to durable_steward
using (tenant_id = durable.current_tenant());

-- An app leaves rows only of effects that it resolved on its own word; a maintainer acts as nobody.
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

create policy insert_own_word on durable.audit_log for insert to durable_engine
with check (
    tenant_id = durable.current_tenant() and acted_by = durable.current_user_id() and action = 'resolve_effect'
);

create policy insert_all on durable.audit_log for insert to durable_janitor
with check (acted_by is null);
--! sql/schema_seal.sql
-- Closes a migration: back roles own functions and can create nothing more. Part of every revision.
set local role durable_owner;

revoke create on schema durable from durable_engine, durable_steward, durable_janitor;
