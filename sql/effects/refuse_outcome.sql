-- Raises 23W02: the outcome of an effect is recorded, and another one was to take its place.
set local role durable_owner;

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

comment on function durable.refuse_outcome(durable.effects, text) is 'Raises 23W02; DETAIL has the recorded status and the refused one.';

revoke all on function durable.refuse_outcome(durable.effects, text) from public;
grant execute on function durable.refuse_outcome(durable.effects, text) to durable_engine, durable_steward;
