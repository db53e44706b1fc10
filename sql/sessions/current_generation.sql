-- How many rewinds have removed the opening message of this invocation: the generation that its next event and its run
-- belong to. A rewound turn can so be said again, and what was rewound stays in the log.
set local role durable_owner;

create or replace function durable.current_generation(session durable.sessions, invocation_id text)
returns integer
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_seq integer;
    v_generation integer;
begin
    if (current_generation.session).rewinds = 0 or current_generation.invocation_id is null then
        return 0;
    end if;
    select e.seq, e.generation into v_seq, v_generation
    from durable.events as e
    where e.tenant_id = (current_generation.session).tenant_id
        and e.session_uid = (current_generation.session).session_uid
        and e.invocation_id = current_generation.invocation_id
        and e.opening
    order by e.generation desc
    limit 1;
    if not found then
        return 0;
    end if;
    if durable.is_rewound(current_generation.session, v_seq) then
        return v_generation + 1;
    end if;
    return v_generation;
end
$$;

comment on function durable.current_generation(durable.sessions, text) is
'The generation an invocation is in: 0, and one more for each rewind that removed its opening message.';

revoke all on function durable.current_generation(durable.sessions, text) from public;
grant execute on function durable.current_generation(durable.sessions, text) to
durable_app, durable_operator, durable_auditor, durable_engine;
