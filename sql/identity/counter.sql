-- Counters that drivers read are integer: some drivers turn bigint into strings.
set local role durable_owner;

create domain durable.counter as integer
constraint counter_is_not_negative check (value >= 0);

comment on domain durable.counter is 'A count or a place in an order, from 0.';

grant usage on domain durable.counter to durable_engine, durable_steward, durable_janitor;
