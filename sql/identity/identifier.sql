-- The domains of the columns: what a value must be to be stored anywhere, whoever writes it. Domains and not CHECKs on
-- each table: a session plans a domain's condition once, a table's CHECKs are planned again for every statement.
set local role durable_owner;

create domain durable.identifier as text
constraint identifier_is_1_to_512_unpadded check (durable.is_identifier(value));

comment on domain durable.identifier is 'A caller''s own name for something: 1 to 512 characters without white space at its ends.';

grant usage on domain durable.identifier to durable_engine, durable_steward, durable_janitor;
