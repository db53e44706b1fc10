-- What the session functions return.
set local role durable_owner;

create type durable.session_row as (
    session_uid uuid,
    app_name durable.identifier,
    user_id durable.identifier,
    session_id durable.identifier,
    state json,
    revision durable.counter,
    last_seq durable.counter,
    created_at timestamptz,
    updated_at timestamptz,
    closed_at timestamptz,
    outcome text
);

comment on type durable.session_row is
'A session as callers see it; outcome is created or found (open_session), closed or already_closed (close_session), open (list_sessions).';

grant usage on type durable.session_row to durable_engine;
