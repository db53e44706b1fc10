-- Guard for an own table with a column status: it is born and moves only along the rows of durable.transitions.
set local role durable_owner;

create or replace function durable.protect_transitions(target regclass, entity text)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    perform durable.check_guardable(protect_transitions.target, array['status']);
    execute format(
        'create or replace trigger _400_legal_transitions after insert or update on %s for each row execute function durable.enforce_transitions(%L)',
        protect_transitions.target,
        protect_transitions.entity
    );
    execute format('alter table %s enable always trigger _400_legal_transitions', protect_transitions.target);
end
$$;

comment on function durable.protect_transitions(regclass, text) is
'Refuses births and moves of status that durable.transitions does not list for the entity, and any change of a final row (23W04), for every role.';

revoke all on function durable.protect_transitions(regclass, text) from public;
