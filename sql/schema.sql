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
