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
