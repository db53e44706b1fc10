-- The escape of what jsonb can't hold, on the text of a JSON value: U+0000 and half a surrogate pair become U+FFFE (a
-- noncharacter) and the four hex digits of the code unit; U+FFFE itself becomes U+FFFE and fffe, so nothing is
-- ambiguous.
set local role durable_owner;

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

comment on function durable.escape_text(text) is
'The text of a JSON value with NUL, lone surrogates and U+FFFE as U+FFFE and four hex digits; injective.';

revoke all on function durable.escape_text(text) from public;
grant execute on function durable.escape_text(text) to durable_app, durable_operator, durable_engine, durable_steward;
