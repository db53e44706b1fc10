-- The state of session, user and app: how the keys of a delta are shared out by prefix, and merged.
set local role durable_owner;

-- Sorts the keys of a state delta by prefix: app: and user: go to the shared states without it, temp: goes nowhere,
-- everything else belongs to the session.
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

comment on function durable.split_state is
'The parts of a state delta for the session, the app and the user, prefixes removed; temp: keys are dropped.';

revoke all on function durable.split_state from public;
grant execute on function durable.split_state to durable_engine;

set local role durable_engine;

-- Merges a state delta: the app: and user: parts into their rows, app first, one order for every caller; the rest into
-- the state of the session, which is returned for the caller's own update. temp: keys go nowhere.
create or replace function durable.merge_state(session durable.sessions, delta jsonb)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_parts constant record := durable.split_state(merge_state.delta);
begin
    if v_parts.app_part <> '{}' then
        update durable.app_states as a
        set state = a.state || v_parts.app_part, revision = a.revision + 1, updated_at = clock_timestamp()
        where a.tenant_id = session.tenant_id and a.app_name = session.app_name;
    end if;
    if v_parts.user_part <> '{}' then
        update durable.user_states as u
        set state = u.state || v_parts.user_part, revision = u.revision + 1, updated_at = clock_timestamp()
        where u.tenant_id = session.tenant_id and u.user_id = session.user_id and u.app_name = session.app_name;
    end if;
    return session.state || v_parts.session_part;
end
$$;

comment on function durable.merge_state is
'Writes the shared parts of a state delta and returns the session''s merged state; later keys win.';

revoke all on function durable.merge_state from public;
