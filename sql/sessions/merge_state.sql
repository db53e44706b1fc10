-- Merges a state delta: the app: and user: parts into their rows, app first, one order for every caller; the rest into
-- the state of the session, which is returned for the caller's own update. temp: keys go nowhere.
set local role durable_engine;

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

comment on function durable.merge_state(durable.sessions, jsonb) is
'Writes the shared parts of a state delta and returns the session''s merged state; later keys win.';

revoke all on function durable.merge_state(durable.sessions, jsonb) from public;
