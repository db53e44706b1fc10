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
    -- In one expression; check_event asks the same one by one, to say which it is.
    if (
        (append_event.me is null or durable.is_me(append_event.me))
        and durable.is_identifier(append_event.author)
        and coalesce(durable.is_identifier(nullif(append_event.invocation_id, '')), true)
        and coalesce(durable.is_identifier(nullif(append_event.event_id, '')), true)
        and durable.fits_key(octet_length(concat(durable.current_tenant(), append_event.invocation_id, append_event.author)))
        and durable.fits_key(octet_length(concat(durable.current_tenant(), append_event.event_id)))
        and coalesce(durable.is_common_time(append_event.occurred_at), true)
    ) is not true then
        perform durable.check_event(
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

comment on function durable.append_event is
'Appends an event; outcome appended, or duplicate when it is recorded already (then nothing is written, state_delta included). Raises 22W01, 22W02, 22W03, 22W04, 23W05, 23W06, 42W01, 42W02, 42W04, 55W01, 55W02, 55W03, 55W04, 55W08.';

revoke all on function durable.append_event from public;
grant execute on function durable.append_event to durable_app;

-- The first test of append_event once more, to say what is wrong.
create or replace function durable.check_event(
    me text, author text, invocation_id text, event_id text, occurred_at timestamptz
)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    perform durable.check_me(check_event.me);
    perform
        durable.check_identifier('author', check_event.author),
        case when check_event.invocation_id <> '' then durable.check_identifier('invocation_id', check_event.invocation_id) end,
        case when check_event.event_id <> '' then durable.check_identifier('event_id', check_event.event_id) end,
        durable.check_key_size(
            'tenant_id, invocation_id and author', durable.current_tenant(), check_event.invocation_id, check_event.author
        ),
        durable.check_key_size('tenant_id and event_id', durable.current_tenant(), check_event.event_id);
    if not durable.is_common_time(check_event.occurred_at) then
        perform durable.refuse_argument(
            'occurred_at',
            format('occurred_at is %s', check_event.occurred_at),
            'Pass a time within these years, or leave it out for now.',
            'The limits are the years 1 and 9999 in UTC, beyond which many languages have no time.'
        );
    end if;
end
$$;

comment on function durable.check_event is 'Raises 42W02, 22W01 or 22W03, naming the argument of append_event that is unfit.';

revoke all on function durable.check_event from public;

-- Says why an event is no repeat of the one that is recorded under its name: it would be lost, so it is refused.
create or replace function durable.refuse_repeat(event durable.events, recorded durable.events)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_differs constant text := coalesce(
        nullif(
            concat_ws(
                ', ',
                case when recorded.content is distinct from event.content then 'content' end,
                case when recorded.author <> event.author then 'author' end,
                case when recorded.invocation_id is distinct from event.invocation_id then 'invocation_id' end,
                case when not recorded.extra_tool_calls @> event.extra_tool_calls then 'extra_tool_calls' end
            ),
            ''
        ),
        'nothing, but it was rewound'
    );
begin
    if recorded.event_id = event.event_id then
        raise exception using
            errcode = '23W05',
            message = format('another event is recorded as %L', event.event_id),
            detail = format(
                'recorded: seq %s by %L in invocation %L; it differs in %s',
                recorded.seq, recorded.author, recorded.invocation_id, v_differs
            ),
            hint = 'Repeat an event as it was. After a crash read_events shows what is recorded: go on from there, and give only what is really another event another event_id.',
            schema = 'durable',
            table = 'events',
            constraint = 'events_event_id_once';
    end if;
    raise exception using
        errcode = '23W06',
        message = format('invocation %L was opened with another message', event.invocation_id),
        detail = format('the opening message is seq %s, event_id %L; it differs in %s', recorded.seq, recorded.event_id, v_differs),
        hint = 'A new turn gets a new invocation_id; a retry repeats the message as it was; further user texts of one invocation are appended with repeatable => true.',
        schema = 'durable',
        table = 'events',
        constraint = 'events_one_opening_message';
end
$$;

comment on function durable.refuse_repeat is
'Raises 23W05 when the event_id is taken by another event, else 23W06: the invocation was opened with another message.';

revoke all on function durable.refuse_repeat from public;

-- Says why an event can't follow what is recorded: a stale caller, a settled run, an attempt that does not hold it.
create or replace function durable.refuse_append(
    event durable.events, session durable.sessions, run durable.runs, expected_revision integer, attempt integer
)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if run.settled_at is not null then
        perform durable.refuse_attempt(run, refuse_append.attempt);
    end if;
    if refuse_append.attempt is not null and event.invocation_id is null then
        perform durable.refuse_argument(
            'invocation_id',
            'attempt is given and invocation_id is not',
            'An attempt is one of an invocation''s run: pass its invocation_id too, or the event belongs to no run.'
        );
    end if;
    if refuse_append.attempt is not null and run.run_uid is null then
        raise exception using
            errcode = '55W04',
            message = format('attempt %s is not the current one of invocation %L', refuse_append.attempt, event.invocation_id),
            detail = 'the invocation has no run',
            hint = 'Stop this worker: nothing was started under this name. Check the invocation_id.',
            schema = 'durable',
            table = 'runs';
    elsif (refuse_append.attempt is not null or run.run_uid is not null and event.author <> 'user')
        and durable.holds_run(run, refuse_append.attempt) is not true
    then
        perform durable.refuse_attempt(run, refuse_append.attempt);
    end if;
    raise exception using
        errcode = '55W02',
        message = format('session %s has moved on', session.session_uid),
        detail = format('expected revision %s, current revision %s', refuse_append.expected_revision, session.revision),
        hint = 'Read the events after the last seq you know, decide again, then append with the current revision.',
        schema = 'durable',
        table = 'sessions',
        column = 'revision';
end
$$;

comment on function durable.refuse_append is
'Raises 22W03 for an attempt without an invocation, 55W03 for a settled run, 55W04 for an attempt that does not hold it or is missing, 55W02 for a stale revision.';

revoke all on function durable.refuse_append from public;
