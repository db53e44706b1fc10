-- Creates the session of this name or finds the open one; with it the state rows of app and user, so that no session
-- is ever without them. For the app. Refuses a repeat with another initial state, which would be lost.
set local role durable_engine;

create or replace function durable.open_session(
    me text default null,
    app_name text default null,
    session_id text default null,
    state json default null
)
returns durable.session_row
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_tenant constant text := durable.current_tenant();
    v_user constant text := durable.current_user_id();
    v_state constant jsonb := durable.escape_object(open_session.state, 'state');
    v_uid constant uuid := durable.new_uid();
    v_name constant text := coalesce(open_session.session_id, v_uid::text);
    v_kept jsonb;
    v_session durable.sessions;
    v_outcome text := 'found';
begin
    perform durable.check_me(open_session.me);
    perform
        durable.check_identifier('app_name', open_session.app_name),
        durable.check_identifier('session_id', v_name);
    perform durable.check_key_size('tenant_id, user_id, app_name and session_id', v_tenant, v_user, open_session.app_name, v_name);

    if v_state is not null then
        select coalesce(json_object_agg(entry.key, entry.value)::jsonb, '{}') into v_kept
        from jsonb_each(v_state) as entry (key, value)
        where not starts_with(entry.key, 'temp:');
    end if;

    -- Once, but for the rare round in which the session that stands in the way is closed before it is read back.
    loop
        select s.* into v_session
        from durable.sessions as s
        where s.tenant_id = v_tenant and s.user_id = v_user
            and s.app_name = open_session.app_name and s.session_id = v_name and s.closed_at is null;
        exit when found;

        insert into durable.app_states (tenant_id, app_name) values (v_tenant, open_session.app_name)
        on conflict (tenant_id, app_name) do nothing;
        insert into durable.user_states (tenant_id, user_id, app_name) values (v_tenant, v_user, open_session.app_name)
        on conflict (tenant_id, user_id, app_name) do nothing;
        insert into durable.sessions as s (tenant_id, session_uid, app_name, user_id, session_id, opened_with)
        values (v_tenant, v_uid, open_session.app_name, v_user, v_name, v_kept)
        on conflict (tenant_id, user_id, app_name, session_id) where closed_at is null do nothing
        returning s.* into v_session;
        if found then
            v_outcome := 'created';
            if v_kept is not null then
                update durable.sessions as s
                set state = durable.merge_state(v_session, v_kept)
                where s.tenant_id = v_tenant and s.session_uid = v_uid
                returning s.* into strict v_session;
            end if;
            exit;
        end if;
    end loop;

    if v_outcome = 'found' and v_kept is not null and v_session.opened_with is distinct from v_kept then
        raise exception using
            errcode = '23W09',
            message = format('session %L is open already and was opened with another state', v_name),
            detail = format('session_uid %s, opened at %s', v_session.session_uid, v_session.created_at),
            hint = 'Leave state out to get the open session, and change its state with append_event and state_delta.',
            schema = 'durable',
            table = 'sessions',
            column = 'opened_with';
    end if;
    return durable.session_as_row(v_session, v_outcome);
end
$$;

comment on function durable.open_session is
'Creates or finds the open session of this user, app and session_id (made up when NULL); outcome created or found. Keys of state with the prefix app: or user: go to the shared states, temp: nowhere. Raises 22W01, 22W02, 22W03, 23W09, 42W01, 42W02.';

revoke all on function durable.open_session from public;
grant execute on function durable.open_session to durable_app;
