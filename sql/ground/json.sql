-- JSON between callers and columns: escape_json for what comes in, unescape_json for what goes out.
set local role durable_owner;

-- JSON as a caller sends it -> jsonb as it is stored. NUL and lone surrogates, which jsonb can't hold and tools do
-- return, are kept by the reversible escape of escape_text; unescape_json is the inverse. What can't be kept is refused
-- (22W02). Postgres is asked first: almost every value needs no escape, and whole surrogate pairs it reads itself.
create or replace function durable.escape_json(value json, field text)
returns jsonb
language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Only the escape's own mark, U+FFFE, has to be looked for: Postgres would take it as it is.
    if strpos(escape_json.value::text, chr(65534)) = 0
        and (strpos(escape_json.value::text, chr(92) || 'u') = 0 or escape_json.value::text !~* (repeat(chr(92), 2) || 'ufffe'))
    then
        return durable.check_expansion(escape_json.value, escape_json.value::text::jsonb, escape_json.field);
    end if;
    return durable.escape_rare_json(escape_json.value, escape_json.field);
exception
    -- U+0000, and half a surrogate pair.
    when untranslatable_character or invalid_text_representation then
        return durable.escape_rare_json(escape_json.value, escape_json.field);
    when numeric_value_out_of_range then
        perform durable.refuse_json(escape_json.value, escape_json.field, sqlerrm);
    when statement_too_complex or program_limit_exceeded then
        perform durable.refuse_large_json(escape_json.field, sqlerrm);
end
$$;

comment on function durable.escape_json is
'The stored form of a JSON value; NUL, lone surrogates and U+FFFE become U+FFFE and four hex digits. Raises 22W02 naming the path of what jsonb can''t hold.';

revoke all on function durable.escape_json from public;
grant execute on function durable.escape_json to durable_app, durable_operator, durable_engine, durable_steward;

-- escape_json for the values that do need the escape.
create or replace function durable.escape_rare_json(value json, field text)
returns jsonb
language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
as $$
begin
    return durable.check_expansion(
        escape_rare_json.value, durable.escape_text(escape_rare_json.value::text)::jsonb, escape_rare_json.field
    );
exception
    when numeric_value_out_of_range then
        perform durable.refuse_json(escape_rare_json.value, escape_rare_json.field, sqlerrm);
    when statement_too_complex or program_limit_exceeded then
        perform durable.refuse_large_json(escape_rare_json.field, sqlerrm);
end
$$;

comment on function durable.escape_rare_json is 'The stored form of a JSON value that holds NUL, a lone surrogate or U+FFFE. Raises 22W02.';

revoke all on function durable.escape_rare_json from public;
grant execute on function durable.escape_rare_json to durable_app, durable_operator, durable_engine, durable_steward;

-- escape_json for arguments that are an object by contract (state, state_delta, metadata): anything else is refused.
create or replace function durable.escape_object(value json, field text)
returns jsonb
language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
as $$
begin
    if json_typeof(escape_object.value) <> 'object' then
        perform durable.refuse_argument(
            escape_object.field,
            format('%s is a JSON %s, it has to be an object', escape_object.field, json_typeof(escape_object.value)),
            'Send an object such as {"key": "value"}, or leave the argument out.'
        );
    end if;
    return durable.escape_json(escape_object.value, escape_object.field);
end
$$;

comment on function durable.escape_object is
'The stored form of a JSON object, NULL for NULL. Raises 22W03 for any other JSON type, 22W02 for what can''t be stored.';

revoke all on function durable.escape_object from public;
grant execute on function durable.escape_object to durable_engine, durable_steward;

-- Stored jsonb -> the JSON its caller sent: the inverse of escape_json. The result is json and not jsonb, because
-- only json can carry what the escape stands for.
create or replace function durable.unescape_json(value jsonb)
returns json
language sql immutable parallel safe
return case
    when strpos(unescape_json.value::text, chr(65534)) = 0 then unescape_json.value::json
    else regexp_replace(
        unescape_json.value::text, chr(65534) || '([0-9a-fA-F]{4})', chr(92) || chr(92) || 'u' || chr(92) || '1', 'g'
    )::json
end;

comment on function durable.unescape_json is 'A stored JSON value as its caller sent it, key order and white space aside.';

revoke all on function durable.unescape_json from public;
grant execute on function durable.unescape_json to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;

-- The escape of what jsonb can't hold, on the text of a JSON value: U+0000 and half a surrogate pair become U+FFFE (a
-- noncharacter) and the four hex digits of the code unit; U+FFFE itself becomes U+FFFE and fffe, so nothing is
-- ambiguous.
create or replace function durable.escape_text(value text)
returns text
language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
as $$
declare
    v_text text := escape_text.value;
    v_mark constant text := chr(65534);
    v_slash constant text := chr(92) || chr(92);
    -- An escape counts only if its backslash is not itself escaped: an even number of backslashes goes before.
    v_even constant text := '(?<!' || v_slash || ')((?:' || v_slash || v_slash || ')*)' || v_slash || 'u';
    v_group_1 constant text := chr(92) || '1';
    v_group_2 constant text := chr(92) || '2';
    v_group_3 constant text := chr(92) || '3';
begin
    v_text := regexp_replace(v_text, v_even || '[fF]{3}[eE]', v_group_1 || v_mark, 'g');
    v_text := replace(v_text, v_mark, v_mark || 'fffe');
    if strpos(v_text, v_slash) = 0 then
        -- No escaped backslash anywhere: NULs, by far the most common guests, need no look at what goes before.
        v_text := replace(v_text, chr(92) || 'u0000', v_mark || '0000');
    end if;
    if v_text !~* (v_slash || 'u(0000|d)') then
        return v_text;
    end if;
    -- Whole pairs step aside, so that the surrogates left over are the lone ones. A raw control character can't occur in
    -- JSON, so chr(1) is free as a mark in between.
    v_text := regexp_replace(
        v_text,
        v_even || '([dD][89abAB][0-9a-fA-F]{2})' || v_slash || 'u([dD][c-fC-F][0-9a-fA-F]{2})',
        v_group_1 || chr(1) || v_group_2 || v_group_3,
        'g'
    );
    v_text := regexp_replace(
        v_text, v_even || '(0000|[dD][89a-fA-F][0-9a-fA-F]{2})', v_group_1 || v_mark || v_group_2, 'g'
    );
    -- Either case of the digits is the same half pair.
    select string_agg(
        case when p.place = 1 then p.piece else lower(left(p.piece, 4)) || substr(p.piece, 5) end, v_mark order by p.place
    )
    into v_text
    from unnest(string_to_array(v_text, v_mark)) with ordinality as p (piece, place);
    return regexp_replace(
        v_text, chr(1) || '(.{4})(.{4})', v_slash || 'u' || v_group_1 || v_slash || 'u' || v_group_2, 'g'
    );
end
$$;

comment on function durable.escape_text is
'The text of a JSON value with NUL, lone surrogates and U+FFFE as U+FFFE and four hex digits; injective.';

revoke all on function durable.escape_text from public;
grant execute on function durable.escape_text to durable_app, durable_operator, durable_engine, durable_steward;

-- jsonb writes numbers out: 1e131071 is 8 bytes as sent and 131,072 digits in every answer. A few kilobytes of them
-- would make every list they appear in too large for Postgres, for operators too. Refuse them where they come in.
create or replace function durable.check_expansion(value json, stored jsonb, field text)
returns jsonb
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if octet_length(check_expansion.value::text) > 134217728 then
        perform durable.refuse_large_json(check_expansion.field, 'limit 128 MB of text');
    end if;
    -- Only an exponent of three digits or more makes a number much longer than it was sent.
    if check_expansion.value::text ~ '[0-9][eE][-+]?[0-9]{3}'
        and octet_length(check_expansion.stored::text) > greatest(4096, 16 * octet_length(check_expansion.value::text))
    then
        perform durable.refuse_large_json(
            check_expansion.field, 'its numbers, written out in full, take more than 16 times its own length'
        );
    end if;
    return check_expansion.stored;
end
$$;

comment on function durable.check_expansion is
'stored, if it is not much longer as text than value. Raises 22W02 beyond 128 MB, or when numbers with large exponents expand it.';

revoke all on function durable.check_expansion from public;
grant execute on function durable.check_expansion to durable_app, durable_operator, durable_engine, durable_steward;

-- Raises 22W02 for a JSON value that is too deep or too large as a whole; no path leads to a part at fault.
create or replace function durable.refuse_large_json(field text, reason text)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using
        errcode = '22W02',
        message = format('%s is nested too deep or too large to be stored', refuse_large_json.field),
        detail = refuse_large_json.reason,
        hint = 'Store the large part elsewhere and refer to it.',
        schema = 'durable',
        column = refuse_large_json.field;
end
$$;

comment on function durable.refuse_large_json is 'Raises 22W02.';

revoke all on function durable.refuse_large_json from public;
grant execute on function durable.refuse_large_json to durable_app, durable_operator, durable_engine, durable_steward;

-- Raises 22W02 for a JSON value that jsonb can't hold, naming the path of the part at fault.
create or replace function durable.refuse_json(value json, field text, reason text)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using
        errcode = '22W02',
        message = format('%s can''t be stored exactly', durable.json_fault_path(refuse_json.value, refuse_json.field)),
        detail = refuse_json.reason,
        hint = 'Send the value as a string, or leave it out.',
        schema = 'durable',
        column = refuse_json.field;
end
$$;

comment on function durable.refuse_json is 'Raises 22W02 with the path of the first member that jsonb refuses.';

revoke all on function durable.refuse_json from public;
grant execute on function durable.refuse_json to durable_app, durable_operator, durable_engine, durable_steward;

-- Where in a JSON value the part stands that jsonb refuses, as content.parts[0].text; for error messages only.
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

comment on function durable.json_fault_path is
'The path of the first member that jsonb refuses, beginning with field; field alone when the whole value is too deep or too large.';

revoke all on function durable.json_fault_path from public;
grant execute on function durable.json_fault_path to durable_app, durable_operator, durable_engine, durable_steward;
