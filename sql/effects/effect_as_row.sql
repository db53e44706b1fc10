-- A row of effects in the form that callers get.
set local role durable_owner;

create or replace function durable.effect_as_row(effect durable.effects, outcome text)
returns durable.effect_row
language sql volatile
begin atomic
    select
        (effect).effect_uid,
        (effect).run_uid,
        (effect).user_id,
        (effect).app_name,
        (effect).step,
        (effect).ordinal,
        (effect).tool,
        (effect).scope,
        (effect).intent,
        durable.unescape_json((effect).args),
        durable.effect_status((effect).status, (effect).lease_expires_at),
        (effect).attempt,
        (effect).failures,
        (effect).idempotency_key,
        (effect).lease_expires_at,
        (effect).first_begun_at,
        (effect).begun_at,
        (effect).finished_at,
        durable.unescape_json((effect).result),
        durable.unescape_json((effect).error),
        durable.unescape_json((effect).evidence),
        effect_as_row.outcome;
end;

comment on function durable.effect_as_row(durable.effects, text) is 'An effect as callers see it.';

revoke all on function durable.effect_as_row(durable.effects, text) from public;
grant execute on function durable.effect_as_row(durable.effects, text) to
durable_app, durable_operator, durable_engine, durable_steward;
