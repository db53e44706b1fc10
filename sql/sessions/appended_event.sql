-- What append_event returns.
set local role durable_owner;

create type durable.appended_event as (
    seq durable.counter,
    event_id durable.identifier,
    revision durable.counter,
    outcome text
);

comment on type durable.appended_event is
'Where an event is recorded; outcome is appended, or duplicate when it was there already and nothing was written.';

grant usage on type durable.appended_event to durable_engine;
