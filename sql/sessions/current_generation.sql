-- The generation that the next event of an invocation and its run belong to: that of the opening message which stands,
-- or one more than the last when rewinds have removed them all. A rewound turn can so be said again, and what was
-- rewound stays in the log.
set local role durable_owner;

create or replace function durable.current_generation(session durable.sessions, invocation_id text)
returns integer
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_said record;
    v_next integer := 0;
begin
    if (current_generation.session).rewinds = 0 then
        return 0;
    end if;
    for v_said in
        -- A generation without an opening message is known by its first event.
        select e.generation, coalesce(min(e.seq) filter (where e.opening), min(e.seq)) as seq
        from durable.events as e
        where e.tenant_id = (current_generation.session).tenant_id
            and e.session_uid = (current_generation.session).session_uid
            and e.invocation_id = current_generation.invocation_id
        group by e.generation
        order by e.generation desc
    loop
        if not durable.is_rewound(current_generation.session, v_said.seq) then
            return v_said.generation;
        end if;
        v_next := greatest(v_next, v_said.generation + 1);
    end loop;
    return v_next;
end
$$;

comment on function durable.current_generation(durable.sessions, text) is
'The generation an invocation is in: 0, and one more each time that a rewind removed its opening message.';

revoke all on function durable.current_generation(durable.sessions, text) from public;
grant execute on function durable.current_generation(durable.sessions, text) to
durable_app, durable_operator, durable_auditor, durable_engine;
