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
    perform durable.check_me(record_step.me);
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
        -- A key that is null is a key left out.
        v_seqs := v_seqs || (durable.append_event(
            session_uid => v_run.session_uid,
            author => v_item ->> 'author',
            content => durable.unescape_json(nullif(v_item -> 'content', 'null')),
            invocation_id => v_run.invocation_id,
            event_id => v_item ->> 'event_id',
            metadata => durable.unescape_json(nullif(v_item -> 'metadata', 'null')),
            state_delta => durable.unescape_json(nullif(v_item -> 'state_delta', 'null')),
            occurred_at => (v_item ->> 'occurred_at')::timestamptz,
            repeatable => (v_item ->> 'repeatable')::boolean,
            extra_tool_calls => case
                when jsonb_typeof(v_item -> 'extra_tool_calls') = 'array'
                    then array(select jsonb_array_elements_text(v_item -> 'extra_tool_calls'))
            end,
            attempt => v_run.attempt
        )).seq;
    end loop;
    for v_item in select i.value from jsonb_array_elements(v_finished) as i loop
        perform durable.finish_effect(
            effect_uid => (v_item ->> 'effect_uid')::uuid,
            attempt => v_run.attempt,
            status => v_item ->> 'status',
            result => durable.unescape_json(v_item -> 'result'),
            error => durable.unescape_json(v_item -> 'error'),
            run_uid => v_run.run_uid
        );
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

comment on function durable.record_step is
'Appends events (objects with the parameters of append_event, event_id among them, or a repeat adds them again), finishes effects (objects with effect_uid, status, result, error) and saves the state of a step, all or none; outcome saved, already_saved, or recorded without a state. Raises what append_event, finish_effect and save_checkpoint raise: 22W01, 22W02, 22W03, 22W04, 23W02, 23W05, 23W06, 23W11, 42W01, 42W02, 42W04, 42W05, 42W07, 55W01, 55W03, 55W04, 55W05, 55W08, 55W10.';

revoke all on function durable.record_step from public;
grant execute on function durable.record_step to durable_app;

set local role durable_owner;

-- A list of objects as one argument of record_step, in its stored form: known keys only, so that nothing a caller says
-- is lost in silence, each of the type that its parameter has.
create or replace function durable.check_items(items jsonb, field text, keys text[])
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_item jsonb;
    v_place integer := 0;
    v_member record;
    v_problem text;
begin
    if jsonb_typeof(check_items.items) <> 'array' then
        v_problem := format('%s is a JSON %s, it has to be an array', check_items.field, jsonb_typeof(check_items.items));
    else
        for v_item in select i.value from jsonb_array_elements(check_items.items) as i loop
            if jsonb_typeof(v_item) <> 'object' then
                v_problem := format(
                    '%s[%s] is a JSON %s, it has to be an object', check_items.field, v_place, jsonb_typeof(v_item)
                );
                exit;
            end if;
            for v_member in select m.key, m.value from jsonb_each(v_item) as m loop
                v_problem := case
                    when v_member.key <> all (check_items.keys)
                        then format('%s[%s] has an unknown key: %s', check_items.field, v_place, left(v_member.key, 200))
                    when durable.is_item_value(v_member.key, v_member.value) is not true
                        then format('%s[%s].%s is not what it has to be', check_items.field, v_place, v_member.key)
                end;
                exit when v_problem is not null;
            end loop;
            exit when v_problem is not null;
            v_place := v_place + 1;
        end loop;
    end if;
    if v_problem is not null then
        perform durable.refuse_argument(
            check_items.field,
            v_problem,
            'Names are texts without NUL, effect_uid a uuid, occurred_at a time with its zone, repeatable true or false, extra_tool_calls an array of texts.',
            format('The keys are %s, of the types that the parameters of these names have.', array_to_string(check_items.keys, ', '))
        );
    end if;
end
$$;

comment on function durable.check_items is
'Raises 22W03 unless it is an array of objects with these keys, and values of their types.';

revoke all on function durable.check_items from public;
grant execute on function durable.check_items to durable_engine;

-- Says whether a value may stand under a key of record_step's items. null stands for a key that is left out. What only
-- the parser of a type can tell (a time) is tried.
create or replace function durable.is_item_value(key text, value jsonb)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_text constant text := is_item_value.value #>> '{}';
begin
    if jsonb_typeof(is_item_value.value) = 'null' or is_item_value.key in ('content', 'result', 'error') then
        return true;
    end if;
    case
        when is_item_value.key in ('metadata', 'state_delta') then
            return jsonb_typeof(is_item_value.value) = 'object';
        when is_item_value.key = 'repeatable' then
            return jsonb_typeof(is_item_value.value) = 'boolean';
        when is_item_value.key = 'extra_tool_calls' then
            return jsonb_typeof(is_item_value.value) = 'array' and strpos(v_text, chr(65534)) = 0
                and not exists (
                    select from jsonb_array_elements(is_item_value.value) as t where jsonb_typeof(t.value) <> 'string'
                );
        when jsonb_typeof(is_item_value.value) <> 'string' or strpos(v_text, chr(65534)) > 0 then
            return false;
        when is_item_value.key = 'effect_uid' then
            perform v_text::uuid;
        when is_item_value.key = 'occurred_at' then
            perform v_text::timestamptz;
        else
            return true;
    end case;
    return true;
exception
    when data_exception then
        return false;
end
$$;

comment on function durable.is_item_value is 'True for a value of the type that the parameter of this name has, and for null.';

revoke all on function durable.is_item_value from public;
grant execute on function durable.is_item_value to durable_engine;
