-- Says why an event is no repeat of the one that is recorded under its name: it would be lost, so it is refused.
set local role durable_engine;

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
        detail = format(
            'the opening message is seq %s, event_id %L; it differs in %s', recorded.seq, recorded.event_id, v_differs
        ),
        hint = 'A new turn gets a new invocation_id; a retry repeats the message as it was; further user texts of one invocation are appended with repeatable => true.',
        schema = 'durable',
        table = 'events',
        constraint = 'events_one_opening_message';
end
$$;

comment on function durable.refuse_repeat(durable.events, durable.events) is
'Raises 23W05 when the event_id is taken by another event, else 23W06: the invocation was opened with another message.';

revoke all on function durable.refuse_repeat(durable.events, durable.events) from public;
