-- Where in a JSON value the part stands that jsonb refuses, as content.parts[0].text; for error messages only.
set local role durable_owner;

create or replace function durable.json_fault_path(value json, field text)
returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_path text := json_fault_path.field;
    v_value json := durable.escape_text(json_fault_path.value::text)::json;
    v_child record;
    v_descended boolean;
begin
    loop
        v_descended := false;
        for v_child in
            select '.' || member.key as step, member.value as child
            from json_each(case json_typeof(v_value) when 'object' then v_value else '{}'::json end) as member (key, value)
            union all
            select '[' || element.place - 1 || ']', element.value
            from json_array_elements(case json_typeof(v_value) when 'array' then v_value else '[]'::json end)
                with ordinality as element (value, place)
        loop
            begin
                perform v_child.child::jsonb;
            exception
                when numeric_value_out_of_range or untranslatable_character then
                    v_path := v_path || v_child.step;
                    v_value := v_child.child;
                    v_descended := true;
                    exit;
            end;
        end loop;
        exit when not v_descended;
    end loop;
    return v_path;
end
$$;

comment on function durable.json_fault_path(json, text) is
'The path of the first member that jsonb refuses, beginning with field; field alone when the whole value is too deep or too large.';

revoke all on function durable.json_fault_path(json, text) from public;
grant execute on function durable.json_fault_path(json, text) to
durable_app, durable_operator, durable_engine, durable_steward;
