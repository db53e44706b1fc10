-- A new uid, ordered by time: random ones touch a new index page each and multiply the WAL after a checkpoint.
set local role durable_owner;

create or replace function durable.new_uid()
returns uuid
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_bytes bytea;
begin
    if current_setting('server_version_num')::integer >= 180000 then
        return uuidv7();
    end if;
    -- RFC 9562, version 7: 48 bits of milliseconds, then random bits around the version and the variant.
    v_bytes := overlay(
        uuid_send(gen_random_uuid())
        placing substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
        from 1 for 6
    );
    return encode(set_byte(v_bytes, 6, (get_byte(v_bytes, 6) & 15) | 112), 'hex')::uuid;
end
$$;

comment on function durable.new_uid is 'A uuid of version 7: uuidv7() on Postgres 18, composed here below it.';

revoke all on function durable.new_uid from public;
grant execute on function durable.new_uid to durable_engine, durable_steward, durable_janitor;
