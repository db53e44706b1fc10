"""Every table of the schema, so that a new one can't forget what the others promise."""

from tests.catalog.faults import faults
from tests.support.harness import Database

# No tenant's rows: facts that a migration writes.
SHARED = ["alembic_version", "transitions"]
NULLABLE = {
    "checkpoints": {"previous_step"},
    "effects": {"args", "error", "evidence", "finished_at", "intent", "provider_dedupes_for", "result"},
    "events": {"attempt", "content", "invocation_id", "rewind_to"},
    "runs": {
        *("error", "input", "interrupted_with", "lease_holder", "max_attempts", "result", "settled_at"),
        "tools_executed",
    },
    "sessions": {"close_reason", "closed_at", "head_hash", "opened_with"},
    "audit_log": {"acted_by", "subject_uid"},
}
# For speed alone: without them every answer is the same, later. See test_guards_bite.
PLAIN_INDEXES = {
    *("effects_of_a_user", "effects_open", "events_by_invocation", "events_rewinds"),
    *("runs_interrupted", "runs_running"),
}
# An app, its tools and what is meant for the whole tenant belong to no user of it.
OF_THE_APP = [
    *("app_states_pkey", "effects_once_for_a_tenant", "effects_tries_for_a_tenant", "tools_pkey"),
    "user_states_app_exists",
]
REFUSALS = (
    "refuse_rewrite",
    "refuse_truncate",
    "refuse_write_once",
    "refuse_frozen",
    "refuse_shrinking",
    "refuse_begun_again",
    "enforce_transitions",
)


def test_there_are_tables_only(db: Database) -> None:
    found = faults(
        db,
        """
        select format('%s %s', relkind, relname) from pg_class
        where relnamespace = 'durable'::regnamespace and relkind not in ('r', 'i', 'c')
        """,
    )
    assert found == []


def test_every_table_of_tenants_begins_with_tenant_id(db: Database) -> None:
    found = faults(
        db,
        """
        select relname from pg_class as c
        where relnamespace = 'durable'::regnamespace and relkind = 'r' and not exists (
            select from pg_attribute as a
            where a.attrelid = c.oid and a.attname = 'tenant_id' and a.attnum = 1 and a.attnotnull
        )
        """,
    )
    assert found == SHARED


def test_every_table_of_tenants_has_row_security_forced(db: Database) -> None:
    found = faults(
        db,
        """
        select relname from pg_class
        where relnamespace = 'durable'::regnamespace and relkind = 'r' and not (relrowsecurity and relforcerowsecurity)
        """,
    )
    assert found == SHARED


def test_every_table_of_tenants_refuses_its_owner(db: Database) -> None:
    found = faults(
        db,
        """
        select relname from pg_class as c
        where relnamespace = 'durable'::regnamespace and relkind = 'r' and not exists (
            select from pg_policy as p
            where p.polrelid = c.oid and p.polname = 'refuse_owner' and p.polcmd = '*'
                and p.polroles = array['durable_owner'::regrole::oid]
                and pg_get_expr(p.polqual, p.polrelid) = '((tenant_id)::text = durable.refuse_owner())'
        )
        """,
    )
    assert found == SHARED


def test_every_table_belongs_to_the_owner(db: Database) -> None:
    found = faults(
        db,
        """
        select relname from pg_class
        where relnamespace = 'durable'::regnamespace and relowner <> 'durable_owner'::regrole
        union all
        select typname from pg_type
        where typnamespace = 'durable'::regnamespace and typowner <> 'durable_owner'::regrole
        """,
    )
    assert found == []


def test_every_table_has_a_primary_key(db: Database) -> None:
    found = faults(
        db,
        """
        select relname from pg_class as c
        where relnamespace = 'durable'::regnamespace and relkind = 'r'
            and not exists (select from pg_constraint as k where k.conrelid = c.oid and k.contype = 'p')
        """,
    )
    assert found == []


def test_every_key_begins_with_the_tenant(db: Database) -> None:
    """Then the user or the session, where the row belongs to one: a key that a caller can choose is that user's own."""
    found = faults(
        db,
        """
        with keys as (
            select
                c.relname, i.indexrelid::regclass::text as name,
                array(
                    select a.attname::text from unnest(i.indkey) with ordinality as k (attnum, place)
                    inner join pg_attribute as a on a.attrelid = c.oid and a.attnum = k.attnum
                    where k.place <= i.indnkeyatts
                    order by k.place
                ) as columns
            from pg_index as i
            inner join pg_class as c on c.oid = i.indrelid
            where c.relnamespace = 'durable'::regnamespace and i.indisunique and c.relname <> all (%s)
            union all
            select
                k.conrelid::regclass::text, k.conname,
                array(
                    select a.attname::text from unnest(k.conkey) with ordinality as n (attnum, place)
                    inner join pg_attribute as a on a.attrelid = k.conrelid and a.attnum = n.attnum
                    order by n.place
                )
            from pg_constraint as k
            where k.connamespace = 'durable'::regnamespace and k.contype = 'f'
        )
        select format('%%s %%s (%%s)', relname, name, array_to_string(columns, ', ')) from keys
        where columns[1] is distinct from 'tenant_id'
            -- A uid is the database's own choice, held_by that of a run; app_name is shared by the tenant.
            or coalesce(columns[2], '') not in (
                'user_id', 'session_uid', 'run_uid', 'effect_uid', 'held_by', 'audit_uid', 'app_name'
            )
            or (columns[2] = 'app_name' and replace(name, 'durable.', '') <> all (%s))
        """,
        SHARED,
        OF_THE_APP,
    )
    assert found == []


def test_no_foreign_key_acts(db: Database) -> None:
    found = faults(
        db,
        """
        select conname from pg_constraint
        where connamespace = 'durable'::regnamespace and contype = 'f'
            and (confupdtype <> 'a' or confdeltype <> 'a' or condeferrable or not convalidated)
        """,
    )
    assert found == []


def test_every_constraint_is_named_as_a_rule(db: Database) -> None:
    found = faults(
        db,
        """
        select conname from pg_constraint
        where connamespace = 'durable'::regnamespace and contype in ('c', 'f', 'u', 'x')
            and conname ~ '(_check|_fkey|_key|_excl)[0-9]*$'
            -- The tail that foreign keys carry: the owner of a session, of a run.
            and conname not in ('sessions_owner_key', 'runs_owner_key')
        """,
    )
    assert found == []


def test_every_trigger_is_a_guard_and_always_on(db: Database) -> None:
    """Column guards look only at statements that name a guarded column: no other trigger may change the row."""
    found = faults(
        db,
        """
        select format('%%s.%%s', tgrelid::regclass, tgname) from pg_trigger as t
        inner join pg_class as c on c.oid = t.tgrelid
        inner join pg_proc as p on p.oid = t.tgfoid
        where c.relnamespace = 'durable'::regnamespace and not t.tgisinternal
            and (t.tgenabled <> 'A' or p.pronamespace <> 'durable'::regnamespace or p.proname <> all (%s))
        """,
        list(REFUSALS),
    )
    assert found == []


def test_every_table_of_tenants_keeps_its_rows(db: Database) -> None:
    found = faults(
        db,
        """
        select relname from pg_class as c
        where relnamespace = 'durable'::regnamespace and relkind = 'r' and relname <> 'alembic_version'
            and 2 <> (
                select count(*) from pg_trigger as t inner join pg_proc as p on p.oid = t.tgfoid
                where t.tgrelid = c.oid and (
                    -- 8 is DELETE, 32 is TRUNCATE, 2 is BEFORE
                    (p.proname = 'refuse_rewrite' and t.tgtype & 10 = 10)
                    or (p.proname = 'refuse_truncate' and t.tgtype & 34 = 34)
                )
            )
        """,
    )
    assert found == []


def test_no_trigger_rule_or_inheritance_comes_before_the_guards(db: Database) -> None:
    found = faults(
        db,
        """
        select rulename from pg_rewrite as r inner join pg_class as c on c.oid = r.ev_class
        where c.relnamespace = 'durable'::regnamespace
        union all
        select inhrelid::regclass::text from pg_inherits as i inner join pg_class as c on c.oid in (inhrelid, inhparent)
        where c.relnamespace = 'durable'::regnamespace and c.relkind = 'r'
        """,
    )
    assert found == []


def test_only_these_columns_may_be_null(db: Database) -> None:
    found = faults(
        db,
        """
        select format('%s.%s', c.relname, a.attname) from pg_attribute as a
        inner join pg_class as c on c.oid = a.attrelid
        where c.relnamespace = 'durable'::regnamespace and c.relkind = 'r'
            and a.attnum > 0 and not a.attisdropped and not a.attnotnull
        """,
    )
    assert found == sorted(f"{table}.{column}" for table, columns in NULLABLE.items() for column in columns)


def test_counters_are_integers(db: Database) -> None:
    found = faults(
        db,
        """
        select format('%s.%s %s', c.relname, a.attname, a.atttypid::regtype) from pg_attribute as a
        inner join pg_class as c on c.oid = a.attrelid
        where c.relnamespace = 'durable'::regnamespace and c.relkind in ('r', 'c')
            and a.attnum > 0 and not a.attisdropped
            and (a.atttypid in ('bigint'::regtype, 'numeric'::regtype, 'real'::regtype, 'double precision'::regtype)
                or a.atttypid = 'integer'::regtype)
        """,
    )
    assert found == []


def test_a_name_is_an_identifier(db: Database) -> None:
    found = faults(
        db,
        """
        select format('%s.%s %s', c.relname, a.attname, a.atttypid::regtype) from pg_attribute as a
        inner join pg_class as c on c.oid = a.attrelid
        where c.relnamespace = 'durable'::regnamespace and c.relkind in ('r', 'c') and a.attnum > 0
            and (a.attname ~ '_id$' and a.atttypid <> 'durable.identifier'::regtype
                or a.attname ~ '_uid$' and a.atttypid <> 'uuid'::regtype)
        """,
    )
    assert found == []


def test_indexes_without_a_rule_are_these(db: Database) -> None:
    found = faults(
        db,
        """
        select i.indexrelid::regclass::text from pg_index as i inner join pg_class as c on c.oid = i.indrelid
        where c.relnamespace = 'durable'::regnamespace and not i.indisunique
        """,
    )
    assert found == sorted(f"durable.{name}" for name in PLAIN_INDEXES)


def test_every_index_is_valid(db: Database) -> None:
    found = faults(
        db,
        """
        select i.indexrelid::regclass::text from pg_index as i inner join pg_class as c on c.oid = i.indrelid
        where c.relnamespace = 'durable'::regnamespace
            and not (i.indisvalid and i.indisready and i.indislive and i.indimmediate)
        """,
    )
    assert found == []
