-- Says whether a rewind has taken an event back. Walks the rewinds from the newest backward, as ADK does: each one that
-- is still standing removes all from its target on, earlier rewinds included, and the walk goes on before the target.
set local role durable_owner;

create or replace function durable.is_rewound(session durable.sessions, seq integer)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_rewind record;
    v_before integer := (is_rewound.session).last_seq + 1;
begin
    for v_rewind in
        select e.seq, e.rewind_to
        from durable.events as e
        where e.tenant_id = (is_rewound.session).tenant_id
            and e.session_uid = (is_rewound.session).session_uid
            and e.rewind_to is not null
            and e.seq > is_rewound.seq
        order by e.seq desc
    loop
        if v_rewind.seq < v_before then
            if v_rewind.rewind_to <= is_rewound.seq then
                return true;
            end if;
            v_before := v_rewind.rewind_to;
        end if;
    end loop;
    return false;
end
$$;

comment on function durable.is_rewound(durable.sessions, integer) is
'True when a later rewind, not taken back itself, reaches back to this seq or beyond.';

revoke all on function durable.is_rewound(durable.sessions, integer) from public;
grant execute on function durable.is_rewound(durable.sessions, integer) to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;
