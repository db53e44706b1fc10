--! refuse-while-rows-exist
set local role durable_owner;
do $rows$
declare
    v_full text[] := '{}';
begin
    if current_setting('durable.drop_data', true) is distinct from 'on' then
        -- A forced owner would see no row, or an error; all this is undone with the refusal, or dropped below.
        alter table durable.app_states no force row level security;
        alter table durable.user_states no force row level security;
        alter table durable.sessions no force row level security;
        alter table durable.events no force row level security;
        alter table durable.runs no force row level security;
        alter table durable.effects no force row level security;
        alter table durable.effect_calls no force row level security;
        alter table durable.checkpoints no force row level security;
        alter table durable.tools no force row level security;
        alter table durable.audit_log no force row level security;
        select array_agg(t.name order by t.name)
        into v_full
        from (
            values
                ('durable.app_states', exists (select from durable.app_states)),
                ('durable.user_states', exists (select from durable.user_states)),
                ('durable.sessions', exists (select from durable.sessions)),
                ('durable.events', exists (select from durable.events)),
                ('durable.runs', exists (select from durable.runs)),
                ('durable.effects', exists (select from durable.effects)),
                ('durable.effect_calls', exists (select from durable.effect_calls)),
                ('durable.checkpoints', exists (select from durable.checkpoints)),
                ('durable.tools', exists (select from durable.tools)),
                ('durable.audit_log', exists (select from durable.audit_log))
        ) as t (name, has_rows)
        where t.has_rows;
    end if;
    if cardinality(v_full) > 0 then
        raise exception using
            errcode = '55W06',
            message = 'tables of durable_pg hold rows that the downgrade would drop',
            detail = array_to_string(v_full, ', '),
            hint = 'Dump them first; then: durable-pg downgrade --drop-data, or set local durable.drop_data = ''on''.',
            schema = 'durable';
    end if;
end
$rows$;
--! drop
set local role durable_owner;
drop function durable.replay_verdict;
drop function durable.retry_verdict;
drop function durable.list_tools;
drop function durable.set_tool;
drop function durable.declare_tools;
drop function durable.is_item_value;
drop function durable.check_items;
drop function durable.record_step;
drop function durable.load_checkpoint;
drop function durable.save_checkpoint;
drop function durable.list_effects;
drop function durable.check_evidence;
drop function durable.resolve_open_effect;
drop function durable.resolve_tenant_effect;
drop function durable.resolve_own_effect;
drop function durable.resolve_effect;
drop function durable.finish_effect;
drop function durable.effect_as_begun;
drop function durable.check_same_payload;
drop function durable.check_effect;
drop function durable.begin_effect;
drop function durable.reap_runs;
drop function durable.list_resumable;
drop function durable.list_runs;
drop function durable.cancel_open_run;
drop function durable.cancel_tenant_run;
drop function durable.cancel_own_run;
drop function durable.cancel_run;
drop function durable.check_same_outcome;
drop function durable.settle_run;
drop function durable.interrupt_run;
drop function durable.renew_lease;
drop function durable.take_run;
drop function durable.start_run;
drop function durable.verify_session;
drop function durable.read_events;
drop function durable.refuse_append;
drop function durable.refuse_repeat;
drop function durable.check_event;
drop function durable.append_event;
drop function durable.get_state;
drop function durable.list_sessions;
drop function durable.close_session;
drop function durable.open_session;
drop function durable.unverified_tools;
drop function durable.blocking_tools;
drop function durable.strictness;
drop function durable.write_tool;
drop function durable.checkpoint_as_row;
drop function durable.refuse_checkpoint;
drop function durable.write_checkpoint;
drop function durable.hold_effect;
drop function durable.may_begin_again;
drop function durable.insert_effect;
drop function durable.left_behind;
drop function durable.latest_try;
drop function durable.idempotency_key;
drop function durable.canonical_scalar;
drop function durable.canonical_json;
drop function durable.args_digest;
drop function durable.refuse_outcome;
drop function durable.check_finish;
drop function durable.refuse_effect;
drop function durable.effect_as_row;
drop function durable.effect_status;
drop function durable.attempts_used_up;
drop function durable.recorded_tools;
drop function durable.settle_locked_run;
drop function durable.lock_run;
drop function durable.refuse_attempt;
drop function durable.lock_attempt;
drop function durable.holds_run;
drop function durable.run_as_outcome;
drop function durable.refuse_run;
drop function durable.find_run;
drop function durable.scan_message;
drop function durable.may_call_tools;
drop function durable.read_message;
drop function durable.openai_chat_calls;
drop function durable.openai_responses_mark;
drop function durable.anthropic_mark;
drop function durable.adk_mark;
drop function durable.part_says_something;
drop function durable.tool_name;
drop function durable.check_rewind;
drop function durable.rewind_target;
drop function durable.is_rewound;
drop function durable.current_generation;
drop function durable.event_hash;
drop function durable.content_digest;
drop function durable.merge_state;
drop function durable.split_state;
drop function durable.session_as_row;
drop function durable.refuse_session;
drop function durable.lock_session;
drop function durable.find_session;
drop table durable.audit_log;
drop table durable.tools;
drop table durable.checkpoints;
drop table durable.effect_calls;
drop table durable.effects;
drop table durable.runs;
drop table durable.events;
drop table durable.sessions;
drop table durable.user_states;
drop table durable.app_states;
drop type durable.tool_row;
drop type durable.recorded_step;
drop type durable.checkpoint_row;
drop type durable.effect_row;
drop type durable.begun_effect;
drop type durable.resumable_run;
drop type durable.run_row;
drop type durable.run_outcome;
drop type durable.event_row;
drop type durable.appended_event;
drop type durable.session_row;
drop function durable.refuse_begun_again;
drop function durable.enforce_transitions;
drop function durable.protect_transitions;
drop table durable.transitions;
drop function durable.refuse_shrinking;
drop function durable.refuse_frozen;
drop function durable.refuse_write_once;
drop function durable.protect_growing;
drop function durable.protect_frozen;
drop function durable.protect_write_once;
drop function durable.put_column_guard;
drop function durable.refuse_truncate;
drop function durable.refuse_rewrite;
drop function durable.protect_read_only;
drop function durable.protect_rows;
drop function durable.protect_append_only;
drop function durable.check_guardable;
drop function durable.json_fault_path;
drop function durable.refuse_json;
drop function durable.refuse_large_json;
drop function durable.check_expansion;
drop function durable.escape_text;
drop function durable.unescape_json;
drop function durable.escape_object;
drop function durable.escape_rare_json;
drop function durable.escape_json;
drop function durable.check_isolation;
drop function durable.commit_durably;
drop function durable.new_uid;
drop function durable.refuse_owner;
drop function durable.check_me;
drop function durable.refuse_me;
drop function durable.is_me;
drop function durable.current_user_id;
drop function durable.current_tenant;
drop function durable.identity_missing;
drop function durable.act_as;
drop function durable.check_tool_names;
drop function durable.check_reason;
drop function durable.check_batch;
drop function durable.check_lease;
drop function durable.check_place;
drop function durable.is_common_time;
drop function durable.refuse_argument;
drop domain durable.digest;
drop domain durable.json_object;
drop domain durable.counter;
drop domain durable.identifier;
drop function durable.check_key_size;
drop function durable.fits_key;
drop function durable.check_identifier;
drop function durable.refuse_identifier;
drop function durable.is_identifier;
drop function durable.trimmed;
--! default-privileges
set local role durable_engine;
alter default privileges grant execute on functions to public;
set local role durable_steward;
alter default privileges grant execute on functions to public;
set local role durable_janitor;
alter default privileges grant execute on functions to public;
set local role durable_owner;
alter default privileges grant execute on functions to public;
alter default privileges grant usage on types to public;
