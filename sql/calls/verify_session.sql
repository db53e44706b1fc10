-- Recomputes the chain of a session from its rows and says where it breaks first: an altered or missing event, or a cut
-- tail. For the app, operators and auditors, under their own row policies.
set local role durable_owner;

create or replace function durable.verify_session(
    me text default null,
    session_uid uuid default null,
    out intact boolean,
    out events_checked integer,
    out broken_seq integer,
    out problem text
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_session durable.sessions;
    v_event durable.events;
    v_previous bytea;
begin
    perform durable.check_me(verify_session.me);
    v_session := durable.find_session(verify_session.session_uid, closed_too => true);
    events_checked := 0;
    for v_event in
        select e.*
        from durable.events as e
        where e.tenant_id = v_session.tenant_id and e.session_uid = v_session.session_uid
        order by e.seq
    loop
        problem := case
            when v_event.seq <> events_checked + 1 then 'missing event'
            when v_event.hash_version <> 1 then 'unknown hash version'
            when v_event.content_digest <> durable.content_digest(v_event.content) then 'altered content'
            -- No recorded event has such a time, and the hash has no form for it.
            when not isfinite(v_event.occurred_at) or not isfinite(v_event.recorded_at) then 'altered event'
            when v_event.hash <> durable.event_hash(v_event, v_previous) then 'altered event'
        end;
        if problem is not null then
            broken_seq := case when v_event.seq <> events_checked + 1 then events_checked + 1 else v_event.seq end;
            intact := false;
            return;
        end if;
        events_checked := events_checked + 1;
        v_previous := v_event.hash;
    end loop;

    if v_session.last_seq <> events_checked then
        problem := case when v_session.last_seq > events_checked then 'missing tail' else 'events beyond the head' end;
        broken_seq := least(v_session.last_seq, events_checked) + 1;
    elsif v_session.head_hash is distinct from v_previous then
        problem := 'the head is not the last event';
        broken_seq := events_checked;
    end if;
    intact := problem is null;
end
$$;

comment on function durable.verify_session is
'One row: intact, how many events were checked, and the first broken link with what is wrong there. Raises 22W03, 42W01, 42W02, 42W04.';

revoke all on function durable.verify_session from public;
grant execute on function durable.verify_session to durable_app, durable_operator, durable_auditor;
