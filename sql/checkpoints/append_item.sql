-- One event of record_step, with the run's invocation and attempt. A key that is null is a key left out.
set local role durable_engine;

create or replace function durable.append_item(run durable.runs, event jsonb)
returns integer
language sql volatile
begin atomic
    select a.seq
    from durable.append_event(
        session_uid => (run).session_uid,
        author => append_item.event ->> 'author',
        content => durable.unescape_json(nullif(append_item.event -> 'content', 'null')),
        invocation_id => (run).invocation_id,
        event_id => append_item.event ->> 'event_id',
        metadata => durable.unescape_json(nullif(append_item.event -> 'metadata', 'null')),
        state_delta => durable.unescape_json(nullif(append_item.event -> 'state_delta', 'null')),
        occurred_at => (append_item.event ->> 'occurred_at')::timestamptz,
        repeatable => (append_item.event ->> 'repeatable')::boolean,
        extra_tool_calls => case
            when jsonb_typeof(append_item.event -> 'extra_tool_calls') = 'array'
                then array(select jsonb_array_elements_text(append_item.event -> 'extra_tool_calls'))
        end,
        attempt => (run).attempt
    ) as a;
end;

comment on function durable.append_item(durable.runs, jsonb) is 'The seq of the event; see append_event for what it refuses.';

revoke all on function durable.append_item(durable.runs, jsonb) from public;
