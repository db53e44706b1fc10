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
