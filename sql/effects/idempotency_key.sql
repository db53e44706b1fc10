-- What a provider gets to know a repeat by: a hash over tenant, scope and key of the effect, and over how often it has
-- certainly failed, so that a provider that remembers a failure is asked anew. No personal data, and the same when the
-- row was lost with its transaction after the provider had heard.
set local role durable_owner;

create or replace function durable.idempotency_key(effect durable.effects)
returns text
language sql stable
return 'dpg_' || left(
    encode(
        sha256(
            convert_to(
                case (effect).scope
                    when 'run' then jsonb_build_array(
                        'run', (effect).tenant_id, (effect).run_uid, (effect).step, (effect).tool, (effect).ordinal,
                        encode((effect).args_digest, 'hex'), (effect).failures
                    )
                    when 'user' then jsonb_build_array(
                        'user', (effect).tenant_id, (effect).user_id, (effect).app_name, (effect).intent,
                        (effect).failures
                    )
                    else jsonb_build_array(
                        'tenant', (effect).tenant_id, (effect).app_name, (effect).intent, (effect).failures
                    )
                end::text,
                'UTF8'
            )
        ),
        'hex'
    ),
    48
);

comment on function durable.idempotency_key(durable.effects) is '52 characters of ASCII, the same for the same key and count of failures.';

revoke all on function durable.idempotency_key(durable.effects) from public;
grant execute on function durable.idempotency_key(durable.effects) to durable_engine;
