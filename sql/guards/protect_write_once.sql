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
