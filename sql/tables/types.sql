-- The rows that calls return. Apart from the functions that return them: a type can't be replaced, a migration alters
-- it by hand.
set local role durable_owner;

-- What the session functions return.
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

-- What append_event returns.
create type durable.appended_event as (
    seq durable.counter,
    event_id durable.identifier,
    revision durable.counter,
    outcome text
);

comment on type durable.appended_event is
'Where an event is recorded; outcome is appended, or duplicate when it was there already and nothing was written.';

grant usage on type durable.appended_event to durable_engine;

-- What read_events returns.
create type durable.event_row as (
    seq durable.counter,
    event_id durable.identifier,
    invocation_id durable.identifier,
    author durable.identifier,
    content json,
    metadata json,
    occurred_at timestamptz,
    recorded_at timestamptz,
    attempt durable.counter,
    opening boolean,
    repeatable boolean,
    generation durable.counter,
    tool_calls text[],
    extra_tool_calls text[],
    rewind_to durable.counter,
    hash durable.digest
);

comment on type durable.event_row is 'An event as callers see it: content and metadata equal to what was sent.';

-- What the calls that change a run return.
create type durable.run_outcome as (
    run_uid uuid,
    attempt durable.counter,
    status text,
    outcome text,
    tools_executed text[],
    result json,
    error json,
    lease_expires_at timestamptz
);

comment on type durable.run_outcome is
'A run after the call. outcome of start_run: started, resumed, busy, awaiting (then without attempt: it is not the caller''s), settled (with its result); of settle_run and cancel_run: settled, already_settled; of renew_lease: renewed; of interrupt_run: interrupted, already_interrupted, settled.';

grant usage on type durable.run_outcome to durable_engine, durable_steward;

-- What list_runs returns.
create type durable.run_row as (
    run_uid uuid,
    session_uid uuid,
    user_id durable.identifier,
    invocation_id durable.identifier,
    generation durable.counter,
    trigger durable.identifier,
    input json,
    status text,
    attempt durable.counter,
    max_attempts durable.counter,
    lease_holder durable.identifier,
    lease_expires_at timestamptz,
    interrupted_with json,
    tools_executed text[],
    result json,
    error json,
    started_at timestamptz,
    settled_at timestamptz
);

comment on type durable.run_row is 'A run as callers see it: input, result and error equal to what was sent.';

-- What list_resumable returns: where a run is and whose, nothing that anybody said.
create type durable.resumable_run as (
    tenant_id durable.identifier,
    user_id durable.identifier,
    app_name durable.identifier,
    session_uid uuid,
    run_uid uuid,
    invocation_id durable.identifier,
    status text,
    attempt durable.counter,
    since timestamptz,
    unverified durable.counter
);

comment on type durable.resumable_run is
'A run that nobody executes. since: when its lease was over or given back; unverified: how many of its effects somebody has to look into first.';

grant usage on type durable.resumable_run to durable_janitor;

-- What begin_effect returns.
create type durable.begun_effect as (
    effect_uid uuid,
    run_uid uuid,
    idempotency_key text,
    outcome text,
    status text,
    step durable.counter,
    ordinal durable.counter,
    tool durable.identifier,
    args json,
    args_match boolean,
    result json,
    error json,
    attempt durable.counter,
    failures durable.counter,
    lease_expires_at timestamptz,
    begun_at timestamptz
);

comment on type durable.begun_effect is
'outcome: execute (call the tool now, with this idempotency_key), recorded (it has happened: result), in_flight (somebody is at it until lease_expires_at), unverified (nobody knows: resolve_effect), diverged (an earlier attempt did something that this one has not asked for: step, ordinal, tool, args, status and result of that). run_uid: whose attempt has it in hand. begun_at: when it was begun last; resolve_effect takes it as as_of. The other columns are those of the effect.';

grant usage on type durable.begun_effect to durable_engine;

-- What list_effects, finish_effect and resolve_effect return.
create type durable.effect_row as (
    effect_uid uuid,
    run_uid uuid,
    user_id durable.identifier,
    app_name durable.identifier,
    step durable.counter,
    ordinal durable.counter,
    tool durable.identifier,
    scope text,
    intent durable.identifier,
    args json,
    status text,
    attempt durable.counter,
    failures durable.counter,
    idempotency_key text,
    lease_expires_at timestamptz,
    first_begun_at timestamptz,
    begun_at timestamptz,
    finished_at timestamptz,
    result json,
    error json,
    evidence json,
    outcome text
);

comment on type durable.effect_row is
'An effect as callers see it, with its effective status. outcome of finish_effect: finished, already_finished; of resolve_effect: resolved, already_resolved.';

grant usage on type durable.effect_row to durable_engine, durable_steward;

-- What save_checkpoint and load_checkpoint return.
create type durable.checkpoint_row as (
    run_uid uuid,
    step durable.counter,
    schema_version durable.counter,
    event_seq durable.counter,
    attempt durable.counter,
    state json,
    created_at timestamptz,
    outcome text
);

comment on type durable.checkpoint_row is
'A checkpoint as callers see it. outcome of save_checkpoint: saved, already_saved; of load_checkpoint: loaded.';

grant usage on type durable.checkpoint_row to durable_engine;

-- What record_step returns.
create type durable.recorded_step as (
    run_uid uuid,
    step durable.counter,
    event_seq durable.counter,
    event_seqs integer[],
    outcome text
);

comment on type durable.recorded_step is
'event_seqs: the seq of each event, in the order given; event_seq: the last event of the session. outcome: saved, already_saved (an equal repeat), or recorded when no state was given.';

grant usage on type durable.recorded_step to durable_engine;

-- What list_tools, declare_tools and set_tool return.
create type durable.tool_row as (
    app_name durable.identifier,
    tool durable.identifier,
    replay_class text,
    updated_at timestamptz,
    outcome text
);

comment on type durable.tool_row is
'A tool as callers see it. outcome of declare_tools and set_tool: written, unchanged; of declare_tools also kept (what is stored is stricter than what was declared).';

grant usage on type durable.tool_row to durable_steward;
