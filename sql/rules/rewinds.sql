-- What a rewind takes back, and which generation of an invocation stands after it. Events stay in the log.
set local role durable_owner;

-- The generation that the next event of an invocation and its run belong to: that of the opening message which stands,
-- or one more than the last when rewinds have removed them all. A rewound turn can so be said again, and what was
-- rewound stays in the log.
create or replace function durable.current_generation(session durable.sessions, invocation_id text)
returns integer
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_said record;
    v_next integer := 0;
begin
    if (current_generation.session).rewinds = 0 then
        return 0;
    end if;
    for v_said in
        -- A generation without an opening message is known by its first event.
        select e.generation, coalesce(min(e.seq) filter (where e.opening), min(e.seq)) as seq
        from durable.events as e
        where e.tenant_id = (current_generation.session).tenant_id
            and e.session_uid = (current_generation.session).session_uid
            and e.invocation_id = current_generation.invocation_id
        group by e.generation
        order by e.generation desc
    loop
        if not durable.is_rewound(current_generation.session, v_said.seq) then
            return v_said.generation;
        end if;
        v_next := greatest(v_next, v_said.generation + 1);
    end loop;
    return v_next;
end
$$;

comment on function durable.current_generation is
'The generation an invocation is in: 0, and one more each time that a rewind removed its opening message.';

revoke all on function durable.current_generation from public;
grant execute on function durable.current_generation to durable_app, durable_operator, durable_auditor, durable_engine;

-- Says whether a rewind has taken an event back. Walks the rewinds from the newest backward, as ADK does: each one that
-- is still standing removes all from its target on, earlier rewinds included, and the walk goes on before the target.
create or replace function durable.is_rewound(session durable.sessions, seq integer)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_rewind record;
    v_before integer := (is_rewound.session).last_seq + 1;
begin
    for v_rewind in
        select e.seq, e.rewind_to
        from durable.events as e
        where e.tenant_id = (is_rewound.session).tenant_id
            and e.session_uid = (is_rewound.session).session_uid
            and e.rewind_to is not null
            and e.seq > is_rewound.seq
        order by e.seq desc
    loop
        if v_rewind.seq < v_before then
            if v_rewind.rewind_to <= is_rewound.seq then
                return true;
            end if;
            v_before := v_rewind.rewind_to;
        end if;
    end loop;
    return false;
end
$$;

comment on function durable.is_rewound is
'True when a later rewind, not taken back itself, reaches back to this seq or beyond.';

revoke all on function durable.is_rewound from public;
grant execute on function durable.is_rewound to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;

-- Where a rewind event reaches back to: the first event of the invocation that ADK puts into the event's actions;
-- callers of other frameworks may use the same key. Refuses (22W04) a rewind to what the session does not hold.
create or replace function durable.rewind_target(session durable.sessions, metadata jsonb)
returns integer
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_named constant jsonb := coalesce(
        rewind_target.metadata #> array['actions', 'rewind_before_invocation_id'],
        rewind_target.metadata #> array['actions', 'rewindBeforeInvocationId']
    );
    v_invocation text;
    v_seq integer;
begin
    if jsonb_typeof(v_named) is distinct from 'string' or v_named = '""' then
        return null;
    end if;
    v_invocation := v_named #>> '{}';
    select min(e.seq) into v_seq
    from durable.events as e
    where e.tenant_id = (rewind_target.session).tenant_id
        and e.session_uid = (rewind_target.session).session_uid
        and e.invocation_id = v_invocation;
    if v_seq is null then
        raise exception using
            errcode = '22W04',
            message = format('the rewind names invocation %L, of which this session holds nothing', left(v_invocation, 512)),
            detail = 'metadata.actions.rewind_before_invocation_id',
            hint = 'Name an invocation of this session.',
            schema = 'durable',
            table = 'events',
            column = 'metadata';
    end if;
    return v_seq;
end
$$;

comment on function durable.rewind_target is
'The first seq that metadata.actions.rewind_before_invocation_id takes back; NULL when the event is no rewind. Raises 22W04.';

revoke all on function durable.rewind_target from public;
grant execute on function durable.rewind_target to durable_engine;

set local role durable_engine;

-- A rewind must leave the runs alone that are not settled: what their workers still record would belong to another
-- generation, or to nobody. Called when the rewind is in the log and the session row is not updated yet.
create or replace function durable.check_rewind(session durable.sessions, rewind durable.events)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_session durable.sessions := check_rewind.session;
    v_running text;
begin
    -- As the session will be.
    v_session.last_seq := rewind.seq;
    v_session.rewinds := v_session.rewinds + 1;

    select r.invocation_id into v_running
    from durable.runs as r
    where r.tenant_id = rewind.tenant_id
        and r.session_uid = rewind.session_uid
        and r.settled_at is null
        and (
            r.generation <> durable.current_generation(v_session, r.invocation_id)
            or exists (
                select
                from durable.events as e
                where e.tenant_id = r.tenant_id
                    and e.session_uid = r.session_uid
                    and e.invocation_id = r.invocation_id
                    and e.generation = r.generation
                    and e.seq between rewind.rewind_to and rewind.seq - 1
            )
        )
    limit 1;
    if found then
        raise exception using
            errcode = '55W08',
            message = format('the rewind would take back invocation %L, whose run is not settled', v_running),
            detail = format('it reaches back to seq %s', rewind.rewind_to),
            hint = 'Settle that run first, or call it off with cancel_run; then rewind.',
            schema = 'durable',
            table = 'runs';
    end if;
end
$$;

comment on function durable.check_rewind is
'Raises 55W08 when the rewind would take back events of a run that executes, or move its invocation to another generation.';

revoke all on function durable.check_rewind from public;
