-- Says what is wrong with the names of an event that append_event has found unfit; never returns for such an event.
set local role durable_engine;

create or replace function durable.refuse_event(
    me text, author text, invocation_id text, event_id text, occurred_at timestamptz
)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if refuse_event.me is not null then
        perform durable.check_me(refuse_event.me);
    end if;
    if durable.is_identifier(refuse_event.author) is not true then
        perform durable.refuse_identifier('author', refuse_event.author);
    end if;
    if refuse_event.invocation_id <> '' and not durable.is_identifier(refuse_event.invocation_id) then
        perform durable.refuse_identifier('invocation_id', refuse_event.invocation_id);
    end if;
    if refuse_event.event_id <> '' and not durable.is_identifier(refuse_event.event_id) then
        perform durable.refuse_identifier('event_id', refuse_event.event_id);
    end if;
    perform durable.check_key_size(
        'tenant_id, invocation_id and author', durable.current_tenant(), refuse_event.invocation_id, refuse_event.author
    );
    perform durable.check_key_size('tenant_id and event_id', durable.current_tenant(), refuse_event.event_id);
    raise exception using
        errcode = '22W03',
        message = format('occurred_at is %s', refuse_event.occurred_at),
        -- Whoever reads the session next, in any language, has to be able to.
        detail = 'The limits are the years 1 and 9999 in UTC, beyond which many languages have no time.',
        hint = 'Pass a time within these years, or leave it out for now.',
        schema = 'durable',
        column = 'occurred_at';
end
$$;

comment on function durable.refuse_event(text, text, text, text, timestamptz) is
'Raises 42W02, 22W01 or 22W03 for arguments that append_event has found unfit.';

revoke all on function durable.refuse_event(text, text, text, text, timestamptz) from public;
