-- Records a step of a run as one: its events, the effects that have ended, and the state to go on from, all or none.
-- For the app, as the attempt that holds the run. One transaction and one round trip. Locks session, run, effects.
set local role durable_engine;

create or replace function durable.record_step(
    me text default null,
    run_uid uuid default null,
    attempt integer default null,
    step integer default null,
    events json default null,
    finished json default null,
    state json default null,
    schema_version integer default 1
)
returns durable.recorded_step
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_state constant jsonb := durable.escape_json(record_step.state, 'state');
    v_events constant jsonb := coalesce(durable.escape_json(record_step.events, 'events'), '[]');
    v_finished constant jsonb := coalesce(durable.escape_json(record_step.finished, 'finished'), '[]');
    v_run durable.runs;
    v_item jsonb;
    v_seqs integer[] := '{}';
    v_last_seq integer;
    v_outcome text := 'recorded';
begin
    if record_step.me is not null then
        perform durable.check_me(record_step.me);
    end if;
    perform durable.check_isolation('record_step');
    perform durable.check_place(record_step.step, 'step');
    perform durable.check_items(v_events, 'events', array[
        'author', 'content', 'event_id', 'metadata', 'state_delta', 'occurred_at', 'repeatable', 'extra_tool_calls'
    ]);
    perform durable.check_items(v_finished, 'finished', array['effect_uid', 'status', 'result', 'error']);

    select r.* into v_run from durable.runs as r where r.run_uid = record_step.run_uid;
    if not found then
        perform durable.refuse_run(record_step.run_uid);
    end if;
    perform durable.lock_session(v_run.session_uid);
    v_run := durable.lock_attempt(v_run.run_uid, record_step.attempt);

    for v_item in select i.value from jsonb_array_elements(v_events) as i loop
        v_seqs := v_seqs || durable.append_item(v_run, v_item);
    end loop;
    for v_item in select i.value from jsonb_array_elements(v_finished) as i loop
        perform durable.finish_item(v_run, v_item);
    end loop;
    if v_state is not null then
        v_outcome := (durable.write_checkpoint(v_run, record_step.step, v_state, record_step.schema_version)).outcome;
    end if;
    select s.last_seq into v_last_seq
    from durable.sessions as s
    where s.tenant_id = v_run.tenant_id and s.session_uid = v_run.session_uid;
    return (v_run.run_uid, record_step.step, v_last_seq, v_seqs, v_outcome)::durable.recorded_step;
end
$$;

comment on function durable.record_step(text, uuid, integer, integer, json, json, json, integer) is
'Appends events (objects with the parameters of append_event, event_id among them, or a repeat adds them again), finishes effects (objects with effect_uid, status, result, error) and saves the state of a step, all or none; outcome saved, already_saved, or recorded without a state. Raises what append_event, finish_effect and save_checkpoint raise: 22W01, 22W02, 22W03, 22W04, 23W02, 23W05, 23W06, 23W11, 42W01, 42W02, 42W04, 42W05, 42W07, 55W01, 55W03, 55W04, 55W05, 55W08, 55W10.';

revoke all on function durable.record_step(text, uuid, integer, integer, json, json, json, integer) from public;
grant execute on function durable.record_step(text, uuid, integer, integer, json, json, json, integer) to durable_app;
