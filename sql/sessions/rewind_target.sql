-- Where a rewind event reaches back to: the first event of the invocation that ADK puts into the event's actions;
-- callers of other frameworks may use the same key. Refuses (22W04) a rewind to what the session does not hold, and
-- (55W08) one that would take back a run while it executes: what it still records would belong to nobody.
set local role durable_owner;

create or replace function durable.rewind_target(session durable.sessions, metadata jsonb)
returns integer
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_named constant jsonb := coalesce(
        rewind_target.metadata #> array['actions', 'rewind_before_invocation_id'],
        rewind_target.metadata #> array['actions', 'rewindBeforeInvocationId']
    );
    v_invocation text;
    v_seq integer;
begin
    if jsonb_typeof(v_named) is distinct from 'string' or v_named = '""' then
        return null;
    end if;
    v_invocation := v_named #>> '{}';
    select min(e.seq) into v_seq
    from durable.events as e
    where e.tenant_id = (rewind_target.session).tenant_id
        and e.session_uid = (rewind_target.session).session_uid
        and e.invocation_id = v_invocation;
    if v_seq is null then
        raise exception using
            errcode = '22W04',
            message = format('the rewind names invocation %L, of which this session holds nothing', left(v_invocation, 512)),
            detail = 'metadata.actions.rewind_before_invocation_id',
            hint = 'Name an invocation of this session.',
            schema = 'durable',
            table = 'events',
            column = 'metadata';
    end if;
    return v_seq;
end
$$;

comment on function durable.rewind_target(durable.sessions, jsonb) is
'The first seq that metadata.actions.rewind_before_invocation_id takes back; NULL when the event is no rewind. Raises 22W04.';

revoke all on function durable.rewind_target(durable.sessions, jsonb) from public;
grant execute on function durable.rewind_target(durable.sessions, jsonb) to durable_engine;
