-- A settled run settles again only as it did: an equal repeat is harmless, whatever would change the outcome is
-- refused, and the loser of a race is told what is stored.
set local role durable_owner;

create or replace function durable.check_same_outcome(run durable.runs, wanted durable.runs)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if wanted.tools_executed is not null and wanted.tools_executed is distinct from run.tools_executed then
        raise exception using
            errcode = '23W02',
            message = format('tools_executed of run %s is settled already', run.run_uid),
            detail = format('stored: %s; refused: %s', coalesce(run.tools_executed::text, 'NULL'), wanted.tools_executed),
            hint = 'Keep the stored value. Writing the same value again is accepted.',
            schema = 'durable',
            table = 'runs',
            column = 'tools_executed',
            constraint = '_200_write_once';
    end if;
    if wanted.status <> run.status or wanted.result is distinct from run.result or wanted.error is distinct from run.error then
        raise exception using
            errcode = '55W03',
            message = format('run %s has %s already, with another outcome', run.run_uid, run.status),
            detail = format(
                'settled at %s; it differs in %s',
                run.settled_at,
                concat_ws(
                    ', ',
                    case when wanted.status <> run.status then 'status' end,
                    case when wanted.result is distinct from run.result then 'result' end,
                    case when wanted.error is distinct from run.error then 'error' end
                )
            ),
            hint = 'Settling is final. start_run returns the stored outcome.',
            schema = 'durable',
            table = 'runs';
    end if;
end
$$;

comment on function durable.check_same_outcome(durable.runs, durable.runs) is
'Raises 23W02 for another tools_executed and 55W03 for another status, result or error than the settled run has.';

revoke all on function durable.check_same_outcome(durable.runs, durable.runs) from public;
grant execute on function durable.check_same_outcome(durable.runs, durable.runs) to durable_engine, durable_steward;
