-- Says whether a later rewind has taken an event back.
set local role durable_owner;

create or replace function durable.is_rewound(session durable.sessions, seq integer)
returns boolean
language sql stable
return exists (
    select
    from durable.events as r
    where r.tenant_id = (is_rewound.session).tenant_id
        and r.session_uid = (is_rewound.session).session_uid
        and r.seq > is_rewound.seq
        and r.rewind_to <= is_rewound.seq
);

comment on function durable.is_rewound(durable.sessions, integer) is 'True when a rewind after this seq reaches back to it or beyond.';

revoke all on function durable.is_rewound(durable.sessions, integer) from public;
grant execute on function durable.is_rewound(durable.sessions, integer) to
durable_app, durable_operator, durable_auditor, durable_engine;
