-- Every legal move of every status, as rows: the triggers and the state pictures in docs/ read the same table.
-- A status that no row leads out of is final. Nobody writes here but a migration, which lifts the guard for it.
set local role durable_owner;

create table durable.transitions (
    entity text not null,
    from_status text not null,
    to_status text not null,
    meaning text not null,
    constraint transitions_pkey primary key (entity, from_status, to_status)
);

comment on table durable.transitions is 'The legal moves of every status; from_status is empty for the birth of a row.';

insert into durable.transitions (entity, from_status, to_status, meaning) values
('run', '', 'running', 'start_run: an invocation begins to execute'),
('run', 'running', 'succeeded', 'settle_run: it is done and has a result'),
('run', 'running', 'failed', 'settle_run: it is given up'),
('run', 'running', 'cancelled', 'settle_run: it is called off');

select durable.protect_read_only('durable.transitions');

grant select on durable.transitions to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;
