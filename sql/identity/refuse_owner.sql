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
