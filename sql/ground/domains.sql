-- The domains of the columns: what a value must be to be stored anywhere, whoever writes it. Domains and not CHECKs on
-- each table: a session plans a domain's condition once, a table's CHECKs are planned again for every statement.
set local role durable_owner;

create domain durable.identifier as text
constraint identifier_is_1_to_512_unpadded check (durable.is_identifier(value));

comment on domain durable.identifier is 'A caller''s own name for something: 1 to 512 characters without white space at its ends.';

grant usage on domain durable.identifier to durable_engine, durable_steward, durable_janitor;

-- Counters that drivers read are integer: some drivers turn bigint into strings.
create domain durable.counter as integer
constraint counter_is_not_negative check (value >= 0);

comment on domain durable.counter is 'A count or a place in an order, from 0.';

grant usage on domain durable.counter to durable_engine, durable_steward, durable_janitor;

-- For columns that hold keys and values: state, metadata, detail.
create domain durable.json_object as jsonb
constraint json_object_is_an_object check (jsonb_typeof(value) = 'object');

comment on domain durable.json_object is 'A JSON object in its stored form; see escape_json.';

grant usage on domain durable.json_object to durable_engine, durable_steward, durable_janitor;

-- For columns that hold a SHA-256.
create domain durable.digest as bytea
constraint digest_has_32_bytes check (octet_length(value) = 32);

comment on domain durable.digest is 'A SHA-256.';

grant usage on domain durable.digest to durable_engine, durable_steward, durable_janitor;
