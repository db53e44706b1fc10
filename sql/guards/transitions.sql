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
('run', 'running', 'failed', 'settle_run: it is given up; interrupt_run: that was its last attempt'),
('run', 'running', 'cancelled', 'settle_run, cancel_run: it is called off'),
('run', 'running', 'interrupted', 'interrupt_run: its worker gave it back; reap_runs: its lease ran out'),
('run', 'running', 'awaiting', 'it waits for a decision of a person'),
('run', 'interrupted', 'running', 'start_run: the next attempt takes it up'),
('run', 'interrupted', 'failed', 'start_run: it has no attempt left'),
('run', 'interrupted', 'cancelled', 'cancel_run: it is called off'),
('run', 'awaiting', 'running', 'start_run: the decision is there'),
('run', 'awaiting', 'cancelled', 'cancel_run: it is called off'),
('effect', '', 'begun', 'begin_effect: the tool is about to be called'),
('effect', 'begun', 'succeeded', 'finish_effect, resolve_effect: it happened'),
('effect', 'begun', 'failed', 'finish_effect, resolve_effect: it certainly did not happen'),
('effect', 'begun', 'unverified', 'finish_effect, interrupt_run, reap_runs: nobody knows whether it happened'),
('effect', 'unverified', 'succeeded', 'resolve_effect: somebody looked; finish_effect: its worker is back'),
('effect', 'unverified', 'failed', 'resolve_effect: somebody looked; finish_effect: its worker is back'),
('effect', 'unverified', 'begun', 'begin_effect: same key again, while the provider still knows it');

select durable.protect_read_only('durable.transitions');

grant select on durable.transitions to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward, durable_janitor;
