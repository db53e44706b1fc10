"""Every row policy of the schema."""

import pytest

from tests.catalog.faults import faults
from tests.support.harness import Database
from tests.support.rented import TABLES

BACK = ("durable_engine", "durable_steward", "durable_janitor")


def test_no_policy_has_a_sub_select(db: Database) -> None:
    found = faults(
        db,
        """
        select format('%s.%s', polrelid::regclass, polname) from pg_policy as p
        inner join pg_class as c on c.oid = p.polrelid
        where c.relnamespace = 'durable'::regnamespace
            and concat(p.polqual::text, p.polwithcheck::text) ~ ':(hasSubLinks true|subselect|SUBLINK)|\\{SUBLINK'
        """,
    )
    assert found == []


def test_every_policy_is_permissive_and_names_its_roles(db: Database) -> None:
    """Restrictive policies would add to the others; PUBLIC would add to every role."""
    found = faults(
        db,
        """
        select format('%s.%s', polrelid::regclass, polname) from pg_policy as p
        inner join pg_class as c on c.oid = p.polrelid
        where c.relnamespace = 'durable'::regnamespace and (
            not p.polpermissive or 0 = any (p.polroles)
            or exists (select from unnest(p.polroles) as r where r::regrole::text not like 'durable\\_%')
        )
        """,
    )
    assert found == []


def test_every_policy_but_an_auditor_s_and_the_janitor_s_compares_with_the_identity(db: Database) -> None:
    found = faults(
        db,
        """
        select format('%s.%s', polrelid::regclass, polname) from pg_policy as p
        inner join pg_class as c on c.oid = p.polrelid
        where c.relnamespace = 'durable'::regnamespace
            and concat(pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid))
            !~ 'tenant_id\\)::text = (durable\\.)?(current_tenant|refuse_owner)\\(\\)'
        """,
    )
    janitor = ("durable.audit_log.insert_all", "durable.effects.update_all", "durable.runs.update_all")
    assert found == sorted([*(f"durable.{table}.select_all" for table in TABLES), *janitor])


def test_no_policy_lets_a_front_role_write(db: Database) -> None:
    found = faults(
        db,
        """
        select format('%%s.%%s', polrelid::regclass, polname) from pg_policy as p
        inner join pg_class as c on c.oid = p.polrelid
        cross join unnest(p.polroles) as r (oid)
        where c.relnamespace = 'durable'::regnamespace and p.polcmd <> 'r'
            and r.oid::regrole::text <> all (%s) and p.polname <> 'refuse_owner'
        """,
        list(BACK),
    )
    assert found == []


def test_no_policy_lets_anybody_delete(db: Database) -> None:
    found = faults(
        db,
        """
        select format('%s.%s', polrelid::regclass, polname) from pg_policy as p
        inner join pg_class as c on c.oid = p.polrelid
        where c.relnamespace = 'durable'::regnamespace and p.polcmd in ('d', '*') and p.polname <> 'refuse_owner'
        """,
    )
    assert found == []


@pytest.mark.parametrize("role", ["durable_app", "durable_engine"])
def test_the_same_policy_serves_the_app_and_its_back_role(db: Database, role: str) -> None:
    found = faults(
        db,
        """
        select format('%%s.%%s', polrelid::regclass, polname) from pg_policy as p
        inner join pg_class as c on c.oid = p.polrelid
        where c.relnamespace = 'durable'::regnamespace and p.polcmd = 'r'
            and %s::regrole::oid = any (p.polroles)
            and not p.polroles @> array['durable_app'::regrole::oid, 'durable_engine'::regrole::oid]
            -- A table that the back role has no business with needs no policy for it.
            and has_any_column_privilege('durable_engine', p.polrelid, 'select')
        """,
        role,
    )
    assert found == []
