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
drop function durable.list_runs;
drop function durable.settle_run;
drop function durable.start_run;
drop function durable.check_same_outcome;
drop function durable.lock_run;
drop function durable.recorded_tools;
drop function durable.check_isolation;
drop function durable.find_run;
drop function durable.refuse_run;
drop function durable.run_as_outcome;
drop type durable.run_row;
drop type durable.run_outcome;
drop function durable.verify_session;
drop function durable.read_events;
drop function durable.append_event;
drop function durable.refuse_append;
drop function durable.refuse_event;
drop function durable.refuse_repeat;
drop function durable.check_rewind;
drop function durable.rewind_target;
drop function durable.current_generation;
drop function durable.is_rewound;
drop function durable.event_hash;
drop function durable.content_digest;
drop function durable.get_state;
drop function durable.list_sessions;
drop function durable.close_session;
drop function durable.open_session;
drop function durable.merge_state;
drop function durable.split_state;
drop function durable.lock_session;
drop function durable.find_session;
drop function durable.refuse_session;
drop function durable.session_as_row;
drop type durable.event_row;
drop type durable.appended_event;
drop type durable.session_row;
drop table durable.audit_log;
drop table durable.runs;
drop table durable.events;
drop table durable.sessions;
drop table durable.user_states;
drop table durable.app_states;
drop function durable.may_call_tools;
drop function durable.read_message;
drop function durable.openai_responses_parts;
drop function durable.openai_responses_mark;
drop function durable.openai_chat_parts;
drop function durable.openai_chat_calls;
drop function durable.anthropic_parts;
drop function durable.anthropic_mark;
drop function durable.adk_parts;
drop function durable.adk_mark;
drop function durable.scan_message;
drop function durable.part_says_something;
drop function durable.tool_name;
drop function durable.check_tool_names;
drop function durable.unescape_json;
drop function durable.escape_object;
drop function durable.escape_json;
drop function durable.escape_rare_json;
drop function durable.check_expansion;
drop function durable.refuse_large_json;
drop function durable.refuse_json;
drop function durable.json_fault_path;
drop function durable.escape_text;
drop domain durable.digest;
drop domain durable.json_object;
drop function durable.protect_transitions;
drop function durable.enforce_transitions;
drop table durable.transitions;
drop function durable.protect_frozen;
drop function durable.protect_write_once;
drop function durable.protect_read_only;
drop function durable.protect_rows;
drop function durable.protect_append_only;
drop function durable.put_column_guard;
drop function durable.check_guardable;
drop function durable.refuse_frozen;
drop function durable.refuse_write_once;
drop function durable.refuse_truncate;
drop function durable.refuse_rewrite;
drop function durable.new_uid;
drop function durable.refuse_owner;
drop function durable.check_me;
drop function durable.is_me;
drop function durable.act_as;
drop function durable.current_user_id;
drop function durable.current_tenant;
drop function durable.identity_missing;
drop function durable.check_key_size;
drop function durable.refuse_identifier;
drop domain durable.counter;
drop domain durable.identifier;
drop function durable.is_identifier;
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
