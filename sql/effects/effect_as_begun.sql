-- An effect in the form that begin_effect returns. The attempt is told only to whoever is to call the tool and to say
-- how it ended.
set local role durable_engine;

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

comment on function durable.effect_as_begun(durable.effects, text, boolean) is 'An effect as begin_effect returns it.';

revoke all on function durable.effect_as_begun(durable.effects, text, boolean) from public;
