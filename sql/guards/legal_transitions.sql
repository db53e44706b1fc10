-- Guard for a column status: what is legal stands in durable.transitions, for the triggers and for people.
set local role durable_owner;

-- Guard for an own table with a column status: it is born and moves only along the rows of durable.transitions.
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

comment on function durable.protect_transitions is
'Refuses births and moves of status that durable.transitions does not list for the entity, and any change of a final row (23W04), for every role.';

revoke all on function durable.protect_transitions from public;

-- Trigger function behind protect_transitions: a status is born and moves only along the rows of durable.transitions,
-- and a row in a final status (one that no row leads out of) never changes again.
create or replace function durable.enforce_transitions()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_entity constant text := tg_argv[0];
    v_from text := ''; -- a birth
begin
    if tg_op = 'UPDATE' then
        v_from := old.status;
        if old.status = new.status then
            if old is not distinct from new
                or exists (select from durable.transitions as t where t.entity = v_entity and t.from_status = old.status)
            then
                return null;
            end if;
        end if;
    end if;
    if exists (
        select from durable.transitions as t
        where t.entity = v_entity and t.from_status = v_from and t.to_status = new.status
    ) then
        return null;
    end if;
    raise exception using
        errcode = '23W04',
        message = case
            when v_from = '' then format('no %s begins as %s', v_entity, coalesce(new.status, 'NULL'))
            when v_from = new.status then format('a %s that has %s never changes', v_entity, v_from)
            else format('no %s goes from %s to %s', v_entity, v_from, coalesce(new.status, 'NULL'))
        end,
        detail = format(
            'legal: %s',
            coalesce(
                (
                    select string_agg(t.to_status, ', ' order by t.to_status)
                    from durable.transitions as t
                    where t.entity = v_entity and t.from_status = v_from
                ),
                'none, it is final'
            )
        ),
        hint = 'The table durable.transitions lists every legal move.',
        schema = tg_table_schema,
        table = tg_table_name,
        column = 'status',
        constraint = tg_name;
end
$$;

comment on function durable.enforce_transitions is
'Row trigger with the entity as its argument; raises 23W04 for a birth or a move that durable.transitions does not list, and for any change of a final row.';

revoke all on function durable.enforce_transitions from public;
