-- A row of sessions in the form that callers get; the head of the chain stays inside.
set local role durable_owner;

create or replace function durable.session_as_row(session durable.sessions, outcome text)
returns durable.session_row
language sql stable
begin atomic
    select
        (session).session_uid,
        (session).app_name,
        (session).user_id,
        (session).session_id,
        durable.unescape_json((session).state),
        (session).revision,
        (session).last_seq,
        (session).created_at,
        (session).updated_at,
        (session).closed_at,
        session_as_row.outcome;
end;

comment on function durable.session_as_row(durable.sessions, text) is 'A session as callers see it.';

revoke all on function durable.session_as_row(durable.sessions, text) from public;
grant execute on function durable.session_as_row(durable.sessions, text) to
durable_app, durable_operator, durable_engine;
