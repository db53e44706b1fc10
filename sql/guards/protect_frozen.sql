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
