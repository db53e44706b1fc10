-- An intent means one thing: the same tool with the same arguments, unless the tool's author said that they may differ.
set local role durable_engine;

create or replace function durable.check_same_payload(
    wanted durable.effects, recorded durable.effects, args_may_differ boolean
)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if (wanted).tool = (recorded).tool
        and ((wanted).args_digest = (recorded).args_digest or check_same_payload.args_may_differ is true)
    then
        return;
    end if;
    raise exception using
        errcode = '23W10',
        message = format(
            'the intent %L was begun %s', (wanted).intent,
            case
                when (wanted).tool <> (recorded).tool then format('for the tool %L', (recorded).tool)
                else 'with other arguments'
            end
        ),
        detail = format(
            'effect %s of run %s, %s, first begun at %s',
            (recorded).effect_uid, (recorded).run_uid,
            durable.effect_status((recorded).status, (recorded).lease_expires_at), (recorded).first_begun_at
        ),
        hint = 'If it is another thing to do, give it another intent. If a model may reword it, pass args_may_differ => true: the recorded result is then the answer.',
        schema = 'durable',
        table = 'effects',
        column = case when (wanted).tool <> (recorded).tool then 'tool' else 'args' end;
end
$$;

comment on function durable.check_same_payload(durable.effects, durable.effects, boolean) is
'Raises 23W10 for another tool, or for other arguments unless they may differ.';

revoke all on function durable.check_same_payload(durable.effects, durable.effects, boolean) from public;
