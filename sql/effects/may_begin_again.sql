-- May an effect of which nobody knows the outcome be asked for again under the same key? Only while the provider still
-- knows the key, by the word of the tool's author at the first begin and now, and only with the same arguments.
set local role durable_owner;

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

comment on function durable.may_begin_again(durable.effects, durable.effects) is
'True for an unverified effect with these arguments whose provider_dedupes_for, as said first and now, is not over since the first begin.';

revoke all on function durable.may_begin_again(durable.effects, durable.effects) from public;
grant execute on function durable.may_begin_again(durable.effects, durable.effects) to durable_engine;
