"""Every guard bites: without it, the test that is named for it fails; with it, the test passes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import psycopg
import pytest

from tests.rules import guards, live, test_owner_apart, test_pinned
from tests.rules.guard import Guard, Test, title
from tests.rules.world import World
from tests.support.collection import ITEMS
from tests.support.harness import Connection, Database

FAILURES = (AssertionError, pytest.fail.Exception)
PAIRS = [(guard, test) for guard in guards.GUARDS for test in guard.tests]
TESTS = {title(test): test for _, test in PAIRS}
# A sample: that every function is pinned is the catalog's to say, above. What they call inherits their path.
LED_ASTRAY = [
    "act_as",
    "append_event",
    "begin_effect",
    "interrupt_run",
    "get_state",
    "open_session",
    "read_events",
    "record_step",
    "save_checkpoint",
    "start_run",
    "verify_session",
]
ROLE_CHANGES = [
    "alter role durable_engine login",
    "alter role durable_app createrole",
    "alter role durable_steward bypassrls",
    "alter role durable_owner superuser",
    "grant durable_engine to durable_app",
    "grant pg_write_all_data to durable_janitor",
]


@dataclass(frozen=True)
class Rehearsal(Database):
    """A database as one uncommitted transaction sees it: for tests that only read, and only as the superuser."""

    connection: Connection

    @contextmanager
    def superuser(self) -> Iterator[Connection]:
        with self.connection.transaction():
            yield self.connection


@pytest.mark.parametrize(("guard", "test"), PAIRS, ids=[f"{guard.name}: {title(test)}" for guard, test in PAIRS])
def test_without_the_guard_the_attack_gets_through(db: Database, guard: Guard, test: Test) -> None:
    World.of(db)
    with db.superuser() as root:
        root.execute(guard.removal.encode())
    with pytest.raises(FAILURES):
        test(db)


@pytest.mark.parametrize("kind", sorted(live.MISSED_BY))
def test_the_catalog_misses_each_of_a_kind(db: Database, kind: str) -> None:
    blind = []
    with db.superuser() as root:
        found = live.catalogued(root, kind)
        for guard in found:
            (test,) = guard.tests
            with root.transaction(force_rollback=True):
                root.execute("set local check_function_bodies = off")
                root.execute(guard.removal.encode())
                try:
                    test(Rehearsal(db.server, db.name, root))
                except FAILURES:
                    continue
            blind.append(guard.name)
    assert found
    assert blind == []


@pytest.mark.parametrize("path", ["reset search_path", "set search_path = pg_temp, playground, pg_catalog"])
@pytest.mark.parametrize("function", LED_ASTRAY)
def test_a_function_without_its_path_is_led_astray(db: Database, function: str, path: str) -> None:
    with db.superuser() as root:
        root.execute(f"alter function durable.{function} {path}".encode())
    with pytest.raises((*FAILURES, psycopg.Error)):
        test_pinned.test_a_caller_s_own_objects_are_never_used(db, "pg_temp, playground, pg_catalog")


@pytest.mark.parametrize("change", ROLE_CHANGES)
def test_a_change_of_a_role_is_missed(db: Database, change: str) -> None:
    """Roles are the server's, which other tests share: what is changed here is never committed."""
    with db.superuser() as root, root.transaction(force_rollback=True):
        root.execute(change.encode())
        with pytest.raises(FAILURES):
            test_owner_apart.test_our_roles_have_no_attribute_and_are_members_of_nothing(
                Rehearsal(db.server, db.name, root)
            )


def test_the_registry_has_every_guard_and_no_other(db: Database) -> None:
    registered = {guard.live_name for guard in guards.GUARDS}
    with db.superuser() as root:
        there = live.listed(root)
    missing = there - registered - guards.NOT_GUARDS
    assert not missing, f"guards without a test: {sorted(missing)}"
    assert registered <= there, f"no such guard: {sorted(registered - there)}"
    assert there >= guards.NOT_GUARDS, f"no such index: {sorted(guards.NOT_GUARDS - there)}"


def test_with_every_guard_the_tests_pass(request: pytest.FixtureRequest) -> None:
    """Each test that a guard is proved by is collected with these parameters, and so runs with every guard in place."""
    collected = [item for item in request.config.stash[ITEMS] if isinstance(item, pytest.Function)]
    files = {item.path.name for item in collected}
    if not {f"{_function(test).__module__.rpartition('.')[2]}.py" for test in TESTS.values()} <= files:
        pytest.skip("only some of the files that the registry names are run")
    lonely = [name for name, test in TESTS.items() if not any(_runs(item, test) for item in collected)]
    assert lonely == []


def _function(test: Test) -> Callable[..., None]:
    return test.func if isinstance(test, partial) else test


def _runs(item: pytest.Function, test: Test) -> bool:
    function = _function(test)
    if (item.originalname, item.path.stem) != (function.__name__, function.__module__.rpartition(".")[2]):
        return False
    given = test.keywords if isinstance(test, partial) else {}
    params = item.callspec.params if hasattr(item, "callspec") else {}
    return all(params.get(name) == value for name, value in given.items())
