-- For columns that hold a SHA-256.
set local role durable_owner;

create domain durable.digest as bytea
constraint digest_has_32_bytes check (octet_length(value) = 32);

comment on domain durable.digest is 'A SHA-256.';

grant usage on domain durable.digest to durable_engine, durable_steward, durable_janitor;
