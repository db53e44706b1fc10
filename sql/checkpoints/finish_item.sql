-- One finished effect of record_step, by the run's attempt.
set local role durable_engine;

create or replace function durable.finish_item(run durable.runs, effect jsonb)
returns text
language sql volatile
begin atomic
    select f.outcome
    from durable.finish_effect(
        effect_uid => (finish_item.effect ->> 'effect_uid')::uuid,
        attempt => (run).attempt,
        status => finish_item.effect ->> 'status',
        result => durable.unescape_json(finish_item.effect -> 'result'),
        error => durable.unescape_json(finish_item.effect -> 'error'),
        run_uid => (run).run_uid
    ) as f;
end;

comment on function durable.finish_item(durable.runs, jsonb) is 'The outcome of finish_effect; see there for what it refuses.';

revoke all on function durable.finish_item(durable.runs, jsonb) from public;
