-- Closes a migration: back roles own functions and can create nothing more. Part of every revision.
set local role durable_owner;

revoke create on schema durable from durable_engine, durable_steward, durable_janitor;
