-- Opens a migration: back roles may create their functions until schema_seal.sql. Part of every revision.
set local role durable_owner;

grant create on schema durable to durable_engine, durable_steward, durable_janitor;
