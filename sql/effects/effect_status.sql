-- What the status of an effect is now: one that was begun and whose lease is over is unverified to everybody, by the
-- clock of the database, whether or not somebody has swept.
set local role durable_owner;

create or replace function durable.effect_status(status text, lease_expires_at timestamptz)
returns text
language sql volatile
return case
    when effect_status.status = 'begun' and effect_status.lease_expires_at <= clock_timestamp() then 'unverified'
    else effect_status.status
end;

comment on function durable.effect_status(text, timestamptz) is
'The effective status of a row of durable.effects: unverified for a begun one whose lease is over.';

revoke all on function durable.effect_status(text, timestamptz) from public;
grant execute on function durable.effect_status(text, timestamptz) to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward, durable_janitor;
