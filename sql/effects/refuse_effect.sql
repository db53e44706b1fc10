-- Raises the one answer to an effect_uid that leads to no row: the same for a foreign effect and for none.
set local role durable_owner;

create or replace function durable.refuse_effect(effect_uid uuid)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if refuse_effect.effect_uid is null then
        raise exception using
            errcode = '22W03',
            message = 'effect_uid is missing',
            hint = 'Pass the effect_uid that begin_effect or list_effects returned.',
            schema = 'durable',
            column = 'effect_uid';
    end if;
    raise exception using
        errcode = '42W07',
        message = format('there is no effect %s here', refuse_effect.effect_uid),
        hint = 'Check tenant and user of act_as, and use the effect_uid that begin_effect returned to the same user.',
        schema = 'durable',
        table = 'effects';
end
$$;

comment on function durable.refuse_effect(uuid) is 'Raises 42W07, or 22W03 for NULL.';

revoke all on function durable.refuse_effect(uuid) from public;
grant execute on function durable.refuse_effect(uuid) to durable_engine, durable_steward;
