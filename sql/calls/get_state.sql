-- The state a turn works with: the session's own keys, the user's under user: and the app's under app:.
-- Without session_uid: the shared part only, for a user who has no session yet.
set local role durable_owner;

create or replace function durable.get_state(
    me text default null,
    app_name text default null,
    session_uid uuid default null
)
returns table (state json, revision integer)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_session durable.sessions;
    v_tenant constant text := durable.current_tenant();
    v_user text := durable.current_user_id();
    v_app text := get_state.app_name;
    v_user_part jsonb;
    v_app_part jsonb;
begin
    perform durable.check_me(get_state.me);
    if get_state.session_uid is not null then
        v_session := durable.find_session(get_state.session_uid);
        if v_app is not null and v_app <> v_session.app_name then
            perform durable.refuse_session(get_state.session_uid);
        end if;
        v_user := v_session.user_id;
        v_app := v_session.app_name;
    else
        perform durable.check_identifier('app_name', v_app);
    end if;

    -- json_object_agg: jsonb_object_agg takes time with the square of what a value holds.
    select json_object_agg('user:' || entry.key, entry.value)::jsonb into v_user_part
    from durable.user_states as u
    cross join jsonb_each(u.state) as entry (key, value)
    where u.tenant_id = v_tenant and u.user_id = v_user and u.app_name = v_app;

    select json_object_agg('app:' || entry.key, entry.value)::jsonb into v_app_part
    from durable.app_states as a
    cross join jsonb_each(a.state) as entry (key, value)
    where a.tenant_id = v_tenant and a.app_name = v_app;

    return query select
        durable.unescape_json(coalesce(v_session.state, '{}') || coalesce(v_user_part, '{}') || coalesce(v_app_part, '{}')),
        v_session.revision::integer;
end
$$;

comment on function durable.get_state is
'The merged state of a session with its revision, or of user and app alone. Raises 22W01, 42W01, 42W02, 42W04, 55W01.';

revoke all on function durable.get_state from public;
grant execute on function durable.get_state to durable_app, durable_operator;
