-- The arguments of begin_effect, before any row is looked at: names, places, scope and times.
set local role durable_engine;

create or replace function durable.check_effect(
    tool text, intent text, scope text, provider_dedupes_for interval
)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_column text;
    v_message text;
begin
    if durable.is_identifier(check_effect.tool) is not true then
        perform durable.refuse_identifier('tool', check_effect.tool);
    end if;
    if check_effect.intent is not null and not durable.is_identifier(check_effect.intent) then
        perform durable.refuse_identifier('intent', check_effect.intent);
    end if;
    perform durable.check_key_size('tenant_id and tool', durable.current_tenant(), check_effect.tool);
    if not check_effect.provider_dedupes_for between interval '100 milliseconds' and interval '366 days' then
        v_column := 'provider_dedupes_for';
        v_message := format('provider_dedupes_for is %s', check_effect.provider_dedupes_for);
    elsif check_effect.intent is null and check_effect.scope <> 'run' then
        v_column := 'scope';
        v_message := format('the scope %L is given and no intent', check_effect.scope);
    elsif check_effect.intent is not null and check_effect.scope not in ('user', 'tenant') then
        v_column := 'scope';
        v_message := format('%L is no scope of an intent', check_effect.scope);
    end if;
    if v_message is not null then
        raise exception using
            errcode = '22W03',
            message = v_message,
            hint = 'scope is user (the default of an intent) or tenant, and goes with an intent; provider_dedupes_for is 100 milliseconds to 366 days, such as 24 hours, or left out.',
            schema = 'durable',
            column = v_column;
    end if;
end
$$;

comment on function durable.check_effect(text, text, text, interval) is 'Raises 22W01 or 22W03, naming the argument of begin_effect.';

revoke all on function durable.check_effect(text, text, text, interval) from public;
