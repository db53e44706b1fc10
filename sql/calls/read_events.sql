-- The events of a session in the order of seq, content as it was sent. Under the caller's own row policies: an app its
-- user's sessions, an operator its tenant's, an auditor all.
set local role durable_owner;

create or replace function durable.read_events(
    me text default null,
    session_uid uuid default null,
    after_seq integer default null,
    latest integer default null,
    after_time timestamptz default null
)
returns setof durable.event_row
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_session durable.sessions;
begin
    perform durable.check_me(read_events.me);
    if read_events.latest < 0 then
        perform durable.refuse_argument(
            'latest',
            format('latest is %s', read_events.latest),
            'Pass how many of the newest events to read, 0 or more, or leave it out for all.'
        );
    end if;
    v_session := durable.find_session(read_events.session_uid);

    return query
    select
        newest.seq, newest.event_id, newest.invocation_id, newest.author,
        durable.unescape_json(newest.content), durable.unescape_json(newest.metadata),
        newest.occurred_at, newest.recorded_at, newest.attempt, newest.opening, newest.repeatable, newest.generation,
        newest.tool_calls, newest.extra_tool_calls, newest.rewind_to, newest.hash
    from (
        select e.*
        from durable.events as e
        where e.tenant_id = v_session.tenant_id
            and e.session_uid = v_session.session_uid
            and e.seq > coalesce(read_events.after_seq, 0)
            and (read_events.after_time is null or e.occurred_at >= read_events.after_time)
        order by e.seq desc
        limit read_events.latest
    ) as newest
    order by newest.seq;
end
$$;

comment on function durable.read_events is
'Events after a seq, of an occurred_at at or after a time, or the latest so many of these; always in order of seq. Raises 22W03, 42W01, 42W02, 42W04, 55W01.';

revoke all on function durable.read_events from public;
grant execute on function durable.read_events to durable_app, durable_operator, durable_auditor;
