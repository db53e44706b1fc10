-- Guard for any table you own: the named counters never become smaller, so that a number given out as a token is never
-- given out again.
set local role durable_owner;

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

comment on function durable.protect_growing(regclass, text[]) is
'Refuses to make these columns smaller (23W12) for every role; calling it again adds columns. Raises 42W06 for an unfit table or column.';

revoke all on function durable.protect_growing(regclass, text[]) from public;
