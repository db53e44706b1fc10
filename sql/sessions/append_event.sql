-- Appends one event at the end of a session's log, once. For the app. A repeat is harmless and told so (duplicate);
-- whatever would lose what the caller said is refused. Locks the session row first, then only reads runs.
-- Few statements of many expressions each: PL/pgSQL sets up every expression anew in every transaction.
set local role durable_engine;

create or replace function durable.append_event(
    me text default null,
    session_uid uuid default null,
    author text default null,
    content json default null,
    invocation_id text default null,
    event_id text default null,
    metadata json default null,
    state_delta json default null,
    occurred_at timestamptz default null,
    repeatable boolean default false,
    extra_tool_calls text[] default null,
    expected_revision integer default null,
    attempt integer default null
)
returns durable.appended_event
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_session durable.sessions;
    v_content jsonb;
    v_metadata jsonb;
    v_tool_calls text[] := '{}'::text[];
    v_says_something boolean := false;
    v_event durable.events;
    v_recorded durable.events;
    v_run durable.runs;
begin
    if (
        (append_event.me is null or durable.is_me(append_event.me))
        and durable.is_identifier(append_event.author)
        and coalesce(durable.is_identifier(nullif(append_event.invocation_id, '')), true)
        and coalesce(durable.is_identifier(nullif(append_event.event_id, '')), true)
        and octet_length(concat(durable.current_tenant(), append_event.invocation_id, append_event.author)) <= 2600
        and octet_length(concat(durable.current_tenant(), append_event.event_id)) <= 2600
        and coalesce(
            append_event.occurred_at >= '0001-01-01 00:00:00+00' and append_event.occurred_at < '10000-01-01 00:00:00+00', true
        )
    ) is not true then
        perform durable.refuse_event(
            append_event.me, append_event.author, append_event.invocation_id, append_event.event_id, append_event.occurred_at
        );
    end if;

    select s.* into v_session
    from durable.sessions as s
    where s.session_uid = append_event.session_uid
    for no key update;
    if v_session.session_uid is null or v_session.closed_at is not null then
        perform durable.refuse_session(append_event.session_uid, v_session.closed_at, v_session.close_reason);
    end if;

    -- The event as the database reads it, whatever the client claims of it. An empty name is no name.
    v_content := durable.escape_json(append_event.content, 'content');
    v_metadata := coalesce(durable.escape_object(append_event.metadata, 'metadata'), '{}');
    if append_event.author = 'user' or durable.may_call_tools(v_content) then
        select m.tool_calls, m.says_something into v_tool_calls, v_says_something
        from durable.read_message(v_content) as m;
    end if;
    v_event := row(
        v_session.tenant_id,
        v_session.session_uid,
        v_session.last_seq + 1,
        nullif(append_event.event_id, ''),
        nullif(append_event.invocation_id, ''),
        append_event.author,
        v_content,
        v_metadata,
        append_event.occurred_at,
        clock_timestamp(),
        v_session.user_id,
        null, -- attempt: the run's
        coalesce(append_event.author = 'user' and append_event.invocation_id <> '', false)
        and append_event.repeatable is not true
        and v_says_something,
        append_event.repeatable is true,
        case when v_session.rewinds = 0 then 0 else durable.current_generation(v_session, append_event.invocation_id) end,
        v_tool_calls,
        coalesce(durable.check_tool_names(append_event.extra_tool_calls, 'extra_tool_calls'), '{}'),
        null, -- rewind_to: below
        durable.content_digest(v_content),
        null, -- hash: below, when all the rest is known
        1
    )::durable.events;

    -- Before any other check: a repeat of what is recorded stays harmless, whatever has happened since.
    if v_event.event_id is not null then
        select e.* into v_recorded
        from durable.events as e
        where e.tenant_id = v_event.tenant_id and e.session_uid = v_event.session_uid and e.event_id = v_event.event_id;
    end if;
    if v_event.opening and v_recorded.seq is null then
        select e.* into v_recorded
        from durable.events as e
        where e.tenant_id = v_event.tenant_id
            and e.session_uid = v_event.session_uid
            and e.invocation_id = v_event.invocation_id
            and e.author = v_event.author
            and e.generation = v_event.generation
            and e.opening;
    end if;
    if v_recorded.seq is not null then
        if v_recorded.content is distinct from v_event.content
            or v_recorded.author <> v_event.author
            or v_recorded.invocation_id is distinct from v_event.invocation_id
            or not v_recorded.extra_tool_calls @> v_event.extra_tool_calls
            or (v_session.rewinds > 0 and durable.is_rewound(v_session, v_recorded.seq))
        then
            perform durable.refuse_repeat(v_event, v_recorded);
        end if;
        return (v_recorded.seq, v_recorded.event_id, v_session.revision, 'duplicate')::durable.appended_event;
    end if;

    -- Settlement updates the session row, which this transaction holds: neither can miss the other.
    select r.* into v_run
    from durable.runs as r
    where r.tenant_id = v_event.tenant_id
        and r.session_uid = v_event.session_uid
        and r.invocation_id = v_event.invocation_id
        and r.generation = v_event.generation;
    if append_event.expected_revision <> v_session.revision
        or v_run.settled_at is not null
        -- Whoever takes a run locks the session row first, as this does; that a lease is over needs no lock.
        or (append_event.attempt is not null or v_run.attempt is not null and append_event.author <> 'user')
        and durable.holds_run(v_run, append_event.attempt) is not true
    then
        perform durable.refuse_append(v_event, v_session, v_run, append_event.expected_revision, append_event.attempt);
    end if;

    if v_event.metadata ? 'actions' then
        v_event.rewind_to := durable.rewind_target(v_session, v_event.metadata);
    end if;
    v_event.event_id := coalesce(v_event.event_id, durable.new_uid()::text);
    v_event.occurred_at := coalesce(v_event.occurred_at, v_event.recorded_at);
    v_event.attempt := v_run.attempt;
    v_event.hash := durable.event_hash(v_event, v_session.head_hash);
    insert into durable.events select (v_event).*;
    if v_event.rewind_to is not null then
        perform durable.check_rewind(v_session, v_event);
    end if;

    if append_event.state_delta is not null then
        v_session.state := durable.merge_state(v_session, durable.escape_object(append_event.state_delta, 'state_delta'));
    end if;
    update durable.sessions as s
    set
        last_seq = v_event.seq,
        head_hash = v_event.hash,
        revision = s.revision + 1,
        state = v_session.state,
        rewinds = s.rewinds + (v_event.rewind_to is not null)::integer,
        updated_at = v_event.recorded_at
    where s.tenant_id = v_event.tenant_id and s.session_uid = v_event.session_uid;
    return (v_event.seq, v_event.event_id, v_session.revision + 1, 'appended')::durable.appended_event;
end
$$;

comment on function durable.append_event(text, uuid, text, json, text, text, json, json, timestamptz, boolean, text[], integer, integer) is
'Appends an event; outcome appended, or duplicate when it is recorded already (then nothing is written, state_delta included). Raises 22W01, 22W02, 22W03, 22W04, 23W05, 23W06, 42W01, 42W02, 42W04, 55W01, 55W02, 55W03, 55W04, 55W08.';

revoke all on function
durable.append_event(text, uuid, text, json, text, text, json, json, timestamptz, boolean, text[], integer, integer)
from public;
grant execute on function
durable.append_event(text, uuid, text, json, text, text, json, json, timestamptz, boolean, text[], integer, integer)
to durable_app;
