-- What a worker acts on outside must survive the server's crash: a begin that is forgotten is done twice, an attempt
-- that is forgotten is given out twice. Overrides synchronous_commit = off for this transaction.
set local role durable_owner;

create or replace function durable.commit_durably()
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    if current_setting('synchronous_commit') = 'off' then
        set local synchronous_commit = on;
    end if;
end
$$;

comment on function durable.commit_durably() is 'Makes the commit of this transaction wait for the log to be on disk.';

revoke all on function durable.commit_durably() from public;
grant execute on function durable.commit_durably() to durable_engine;
