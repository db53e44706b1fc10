-- Sorts the keys of a state delta by prefix: app: and user: go to the shared states without it, temp: goes nowhere,
-- everything else belongs to the session.
set local role durable_owner;

create or replace function durable.split_state(
    delta jsonb, out session_part jsonb, out app_part jsonb, out user_part jsonb
)
language sql immutable parallel safe
begin atomic
    select
        -- json_object_agg: jsonb_object_agg takes time with the square of what a value holds.
        coalesce(
            (
                json_object_agg(entry.key, entry.value) filter (
                    where not starts_with(entry.key, 'app:')
                        and not starts_with(entry.key, 'user:')
                        and not starts_with(entry.key, 'temp:')
                )
            )::jsonb,
            '{}'
        ),
        coalesce(
            (
                json_object_agg(substr(entry.key, 5), entry.value) filter (where starts_with(entry.key, 'app:'))
            )::jsonb,
            '{}'
        ),
        coalesce(
            (
                json_object_agg(substr(entry.key, 6), entry.value) filter (where starts_with(entry.key, 'user:'))
            )::jsonb,
            '{}'
        )
    from jsonb_each(split_state.delta) as entry (key, value);
end;

comment on function durable.split_state(jsonb) is
'The parts of a state delta for the session, the app and the user, prefixes removed; temp: keys are dropped.';

revoke all on function durable.split_state(jsonb) from public;
grant execute on function durable.split_state(jsonb) to durable_engine;
