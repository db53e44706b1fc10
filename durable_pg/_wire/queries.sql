-- What the client sends: one call of one function a statement, all arguments named and cast. Every column comes back as
-- text, a time as seconds since 1970 and a list as JSON, so that neither the driver nor the settings of a connection
-- have a say. A name in a comment of its own begins a statement.

-- open_session
-- Create or find the open session of a user, an app and a name.
select session_uid::text, app_name, user_id, session_id, state::text, revision::text, last_seq::text,
    extract(epoch from created_at)::text, extract(epoch from updated_at)::text, extract(epoch from closed_at)::text,
    outcome
from durable.open_session(
    me => durable.act_as(%(tenant_id)s::text, %(user_id)s::text),
    app_name => %(app_name)s::text,
    session_id => %(session_id)s::text,
    state => %(state)s::json
);

-- close_session
-- Hide a session and free its name.
select session_uid::text, app_name, user_id, session_id, state::text, revision::text, last_seq::text,
    extract(epoch from created_at)::text, extract(epoch from updated_at)::text, extract(epoch from closed_at)::text,
    outcome
from durable.close_session(
    me => durable.act_as(%(tenant_id)s::text, %(user_id)s::text),
    session_uid => %(session_uid)s::uuid,
    reason => %(reason)s::text
);

-- list_sessions
-- The open sessions, of one app or of all.
select session_uid::text, app_name, user_id, session_id, state::text, revision::text, last_seq::text,
    extract(epoch from created_at)::text, extract(epoch from updated_at)::text, extract(epoch from closed_at)::text,
    outcome
from durable.list_sessions(
    me => durable.act_as(%(tenant_id)s::text, %(user_id)s::text),
    app_name => %(app_name)s::text
);

-- get_state
-- The merged state of a session, or of user and app alone.
select state::text, revision::text
from durable.get_state(
    me => durable.act_as(%(tenant_id)s::text, %(user_id)s::text),
    app_name => %(app_name)s::text,
    session_uid => %(session_uid)s::uuid
);

-- append_event
-- Record an event, or learn that it is recorded already.
select seq::text, event_id, revision::text, outcome
from durable.append_event(
    me => durable.act_as(%(tenant_id)s::text, %(user_id)s::text),
    session_uid => %(session_uid)s::uuid,
    author => %(author)s::text,
    content => %(content)s::json,
    invocation_id => %(invocation_id)s::text,
    event_id => %(event_id)s::text,
    metadata => %(metadata)s::json,
    state_delta => %(state_delta)s::json,
    occurred_at => %(occurred_at)s::text::timestamptz,
    repeatable => %(repeatable)s::boolean,
    extra_tool_calls => %(extra_tool_calls)s::text[],
    expected_revision => %(expected_revision)s::integer,
    attempt => %(attempt)s::integer
);

-- read_events
-- The events of a session in order.
select seq::text, event_id, invocation_id, author, content::text, metadata::text, extract(epoch from occurred_at)::text,
    extract(epoch from recorded_at)::text, attempt::text, opening::text, repeatable::text, generation::text,
    to_json(tool_calls)::text, to_json(extra_tool_calls)::text, rewind_to::text, encode(hash, 'hex')
from durable.read_events(
    me => durable.act_as(%(tenant_id)s::text, %(user_id)s::text),
    session_uid => %(session_uid)s::uuid,
    after_seq => %(after_seq)s::integer,
    latest => %(latest)s::integer,
    after_time => %(after_time)s::text::timestamptz
);

-- verify_session
-- Recompute the hash chain of a session.
select intact::text, events_checked::text, broken_seq::text, problem
from durable.verify_session(
    me => durable.act_as(%(tenant_id)s::text, %(user_id)s::text),
    session_uid => %(session_uid)s::uuid
);

-- start_run
-- Start the run of an invocation, or learn where it stands.
select run_uid::text, attempt::text, status, outcome, to_json(tools_executed)::text, result::text, error::text,
    extract(epoch from lease_expires_at)::text
from durable.start_run(
    me => durable.act_as(%(tenant_id)s::text, %(user_id)s::text),
    session_uid => %(session_uid)s::uuid,
    invocation_id => %(invocation_id)s::text,
    trigger => %(trigger)s::text,
    input => %(input)s::json,
    worker => %(worker)s::text,
    lease => %(lease)s::text::interval,
    max_attempts => %(max_attempts)s::integer
);

-- renew_lease
-- Hold a run for longer.
select run_uid::text, attempt::text, status, outcome, to_json(tools_executed)::text, result::text, error::text,
    extract(epoch from lease_expires_at)::text
from durable.renew_lease(
    me => durable.act_as(%(tenant_id)s::text, %(user_id)s::text),
    run_uid => %(run_uid)s::uuid,
    attempt => %(attempt)s::integer,
    lease => %(lease)s::text::interval
);

-- interrupt_run
-- Give a run back that is not done.
select run_uid::text, attempt::text, status, outcome, to_json(tools_executed)::text, result::text, error::text,
    extract(epoch from lease_expires_at)::text
from durable.interrupt_run(
    me => durable.act_as(%(tenant_id)s::text, %(user_id)s::text),
    run_uid => %(run_uid)s::uuid,
    attempt => %(attempt)s::integer,
    error => %(error)s::json
);

-- cancel_run
-- Call a run off.
select run_uid::text, attempt::text, status, outcome, to_json(tools_executed)::text, result::text, error::text,
    extract(epoch from lease_expires_at)::text
from durable.cancel_run(
    me => durable.act_as(%(tenant_id)s::text, %(user_id)s::text),
    run_uid => %(run_uid)s::uuid,
    reason => %(reason)s::text
);

-- settle_run
-- End a run for good.
select run_uid::text, attempt::text, status, outcome, to_json(tools_executed)::text, result::text, error::text,
    extract(epoch from lease_expires_at)::text
from durable.settle_run(
    me => durable.act_as(%(tenant_id)s::text, %(user_id)s::text),
    run_uid => %(run_uid)s::uuid,
    attempt => %(attempt)s::integer,
    status => %(status)s::text,
    result => %(result)s::json,
    error => %(error)s::json,
    tools_executed => %(tools_executed)s::text[]
);

-- list_runs
-- The runs, of one session or of all.
select run_uid::text, session_uid::text, user_id, invocation_id, generation::text, trigger, input::text, status,
    attempt::text, max_attempts::text, lease_holder, extract(epoch from lease_expires_at)::text,
    interrupted_with::text, to_json(tools_executed)::text, result::text, error::text,
    extract(epoch from started_at)::text, extract(epoch from settled_at)::text
from durable.list_runs(
    me => durable.act_as(%(tenant_id)s::text, %(user_id)s::text),
    session_uid => %(session_uid)s::uuid
);

-- retry_verdict
-- Whether the same turn may be sent to the model again.
select allowed::text, reason, to_json(tools)::text
from durable.retry_verdict(
    me => durable.act_as(%(tenant_id)s::text, %(user_id)s::text),
    run_uid => %(run_uid)s::uuid
);

-- replay_verdict
-- Whether a settled run may be started anew from its input.
select allowed::text, reason, to_json(tools)::text
from durable.replay_verdict(
    me => durable.act_as(%(tenant_id)s::text, %(user_id)s::text),
    run_uid => %(run_uid)s::uuid
);

-- begin_effect
-- Ask whether to execute an effect.
select effect_uid::text, run_uid::text, idempotency_key, outcome, status, step::text, ordinal::text, tool, args::text,
    args_match::text, result::text, error::text, attempt::text, failures::text,
    extract(epoch from lease_expires_at)::text, extract(epoch from begun_at)::text
from durable.begin_effect(
    me => durable.act_as(%(tenant_id)s::text, %(user_id)s::text),
    run_uid => %(run_uid)s::uuid,
    attempt => %(attempt)s::integer,
    step => %(step)s::integer,
    tool => %(tool)s::text,
    args => %(args)s::json,
    ordinal => %(ordinal)s::integer,
    intent => %(intent)s::text,
    scope => %(scope)s::text,
    args_may_differ => %(args_may_differ)s::boolean,
    lease => %(lease)s::text::interval,
    provider_dedupes_for => %(provider_dedupes_for)s::text::interval
);

-- finish_effect
-- Record what came of an effect.
select effect_uid::text, run_uid::text, user_id, app_name, step::text, ordinal::text, tool, scope, intent, args::text,
    status, attempt::text, failures::text, idempotency_key, extract(epoch from lease_expires_at)::text,
    extract(epoch from first_begun_at)::text, extract(epoch from begun_at)::text, extract(epoch from finished_at)::text,
    result::text, error::text, evidence::text, outcome
from durable.finish_effect(
    me => durable.act_as(%(tenant_id)s::text, %(user_id)s::text),
    effect_uid => %(effect_uid)s::uuid,
    attempt => %(attempt)s::integer,
    status => %(status)s::text,
    result => %(result)s::json,
    error => %(error)s::json,
    run_uid => %(run_uid)s::uuid
);

-- resolve_effect
-- Say what became of an unverified effect, and how that is known.
select effect_uid::text, run_uid::text, user_id, app_name, step::text, ordinal::text, tool, scope, intent, args::text,
    status, attempt::text, failures::text, idempotency_key, extract(epoch from lease_expires_at)::text,
    extract(epoch from first_begun_at)::text, extract(epoch from begun_at)::text, extract(epoch from finished_at)::text,
    result::text, error::text, evidence::text, outcome
from durable.resolve_effect(
    me => durable.act_as(%(tenant_id)s::text, %(user_id)s::text),
    effect_uid => %(effect_uid)s::uuid,
    status => %(status)s::text,
    evidence => %(evidence)s::json,
    result => %(result)s::json,
    as_of => %(as_of)s::text::timestamptz
);

-- list_effects
-- The effects, of one run or of all.
select effect_uid::text, run_uid::text, user_id, app_name, step::text, ordinal::text, tool, scope, intent, args::text,
    status, attempt::text, failures::text, idempotency_key, extract(epoch from lease_expires_at)::text,
    extract(epoch from first_begun_at)::text, extract(epoch from begun_at)::text, extract(epoch from finished_at)::text,
    result::text, error::text, evidence::text, outcome
from durable.list_effects(
    me => durable.act_as(%(tenant_id)s::text, %(user_id)s::text),
    run_uid => %(run_uid)s::uuid,
    status => %(status)s::text
);

-- save_checkpoint
-- Save what a run is resumed from.
select run_uid::text, step::text, schema_version::text, event_seq::text, attempt::text, state::text,
    extract(epoch from created_at)::text, outcome
from durable.save_checkpoint(
    me => durable.act_as(%(tenant_id)s::text, %(user_id)s::text),
    run_uid => %(run_uid)s::uuid,
    attempt => %(attempt)s::integer,
    step => %(step)s::integer,
    state => %(state)s::json,
    schema_version => %(schema_version)s::integer
);

-- load_checkpoint
-- The newest checkpoint of a run.
select run_uid::text, step::text, schema_version::text, event_seq::text, attempt::text, state::text,
    extract(epoch from created_at)::text, outcome
from durable.load_checkpoint(
    me => durable.act_as(%(tenant_id)s::text, %(user_id)s::text),
    run_uid => %(run_uid)s::uuid
);

-- record_step
-- Append events, finish effects and save a checkpoint at once.
select run_uid::text, step::text, event_seq::text, to_json(event_seqs)::text, outcome
from durable.record_step(
    me => durable.act_as(%(tenant_id)s::text, %(user_id)s::text),
    run_uid => %(run_uid)s::uuid,
    attempt => %(attempt)s::integer,
    step => %(step)s::integer,
    events => %(events)s::json,
    finished => %(finished)s::json,
    state => %(state)s::json,
    schema_version => %(schema_version)s::integer
);

-- list_tools
-- What is known of tools, of one app or of all.
select app_name, tool, replay_class, extract(epoch from updated_at)::text, outcome
from durable.list_tools(
    me => durable.act_as(%(tenant_id)s::text, %(user_id)s::text),
    app_name => %(app_name)s::text
);

-- declare_tools
-- Write what a program declares of its tools.
select app_name, tool, replay_class, extract(epoch from updated_at)::text, outcome
from durable.declare_tools(
    me => durable.act_as(%(tenant_id)s::text, %(user_id)s::text),
    app_name => %(app_name)s::text,
    tools => %(tools)s::json
);

-- set_tool
-- Say what a tool is like.
select app_name, tool, replay_class, extract(epoch from updated_at)::text, outcome
from durable.set_tool(
    me => durable.act_as(%(tenant_id)s::text, %(user_id)s::text),
    app_name => %(app_name)s::text,
    tool => %(tool)s::text,
    replay_class => %(replay_class)s::text,
    reason => %(reason)s::text
);

-- list_resumable
-- The runs of all tenants that nobody executes.
select tenant_id, user_id, app_name, session_uid::text, run_uid::text, invocation_id, status, attempt::text,
    extract(epoch from since)::text, unverified::text
from durable.list_resumable(
    max_runs => %(max_runs)s::integer
);

-- reap_runs
-- Mark runs whose lease is over as interrupted.
select runs::text, effects::text, skipped::text
from durable.reap_runs(
    max_runs => %(max_runs)s::integer
);
