-- A list of objects as one argument of record_step, in its stored form: known keys only, so that nothing a caller says
-- is lost in silence, each of the type that its parameter has.
set local role durable_owner;

create or replace function durable.check_items(items jsonb, field text, keys text[])
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_item jsonb;
    v_place integer := 0;
    v_member record;
    v_problem text;
begin
    if jsonb_typeof(check_items.items) <> 'array' then
        v_problem := format('%s is a JSON %s, it has to be an array', check_items.field, jsonb_typeof(check_items.items));
    else
        for v_item in select i.value from jsonb_array_elements(check_items.items) as i loop
            if jsonb_typeof(v_item) <> 'object' then
                v_problem := format(
                    '%s[%s] is a JSON %s, it has to be an object', check_items.field, v_place, jsonb_typeof(v_item)
                );
                exit;
            end if;
            for v_member in select m.key, m.value from jsonb_each(v_item) as m loop
                v_problem := case
                    when v_member.key <> all (check_items.keys)
                        then format('%s[%s] has an unknown key: %s', check_items.field, v_place, left(v_member.key, 200))
                    when durable.is_item_value(v_member.key, v_member.value) is not true
                        then format('%s[%s].%s is not what it has to be', check_items.field, v_place, v_member.key)
                end;
                exit when v_problem is not null;
            end loop;
            exit when v_problem is not null;
            v_place := v_place + 1;
        end loop;
    end if;
    if v_problem is not null then
        raise exception using
            errcode = '22W03',
            message = v_problem,
            detail = format('The keys are %s, of the types that the parameters of these names have.', array_to_string(check_items.keys, ', ')),
            hint = 'Names are texts without NUL, effect_uid a uuid, occurred_at a time with its zone, repeatable true or false, extra_tool_calls an array of texts.',
            schema = 'durable',
            column = check_items.field;
    end if;
end
$$;

comment on function durable.check_items(jsonb, text, text[]) is
'Raises 22W03 unless it is an array of objects with these keys, and values of their types.';

revoke all on function durable.check_items(jsonb, text, text[]) from public;
grant execute on function durable.check_items(jsonb, text, text[]) to durable_engine;
