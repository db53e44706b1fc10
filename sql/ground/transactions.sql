-- What a call asks of its transaction: a commit that is on disk, a snapshot that is not older than its locks.
set local role durable_owner;

-- What a worker acts on outside must survive the server's crash: a begin that is forgotten is done twice, an attempt
-- that is forgotten is given out twice. Overrides synchronous_commit = off for this transaction.
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

comment on function durable.commit_durably is 'Makes the commit of this transaction wait for the log to be on disk.';

revoke all on function durable.commit_durably from public;
grant execute on function durable.commit_durably to durable_engine;

-- Calls that derive their answer from the log must see everything that was committed before their lock. Under
-- REPEATABLE READ and SERIALIZABLE the snapshot may be older than the lock: refuse instead of answering from the past.
create or replace function durable.check_isolation(call text)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        raise exception using
            errcode = '55W05',
            message = format('%s can''t run under %s', check_isolation.call, upper(current_setting('transaction_isolation'))),
            detail = 'Its answer is derived from the event log, and this snapshot may be older than the log.',
            hint = 'Call it in a transaction of its own, under READ COMMITTED.',
            schema = 'durable';
    end if;
end
$$;

comment on function durable.check_isolation is 'Raises 55W05 under REPEATABLE READ and SERIALIZABLE.';

revoke all on function durable.check_isolation from public;
grant execute on function durable.check_isolation to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;
