"""An effect that is a write in this very database joins its transaction, and is then done exactly once."""

from collections.abc import Iterator
from uuid import UUID

import psycopg
import pytest

from tests.support.calls import begin, finish, settle, take_over
from tests.support.harness import Connection, value
from tests.support.rented import Rented, stored


@pytest.fixture
def shop(db: Rented) -> Iterator[str]:
    """A table of the application's own."""
    name = f"public.bookings_{db.number}"
    with db.superuser() as root:
        root.execute(f"create table {name} (tenant text, idempotency_key text)".encode())
        root.execute(f"grant select, insert on {name} to app".encode())
    yield name
    with db.superuser() as root:
        root.execute(f"drop table {name}".encode())


def book(app: Connection, shop: str, run: UUID, attempt: int = 1) -> str:
    """Begin, write and finish; return begin's outcome."""
    begun = begin(app, run, attempt, tool="book", intent="booking:7")
    if begun["outcome"] == "execute":
        app.execute(f"insert into {shop} values ('T1', %s)".encode(), (begun["idempotency_key"],))
        finish(app, begun["effect_uid"], attempt=attempt, result={"booked": True})
    return str(begun["outcome"])


def bookings(db: Rented, shop: str) -> int:
    with db.superuser() as root:
        found = value(root, f"select count(*) from {shop}")
    assert isinstance(found, int)
    return found


def test_committed_it_has_happened_once_and_is_recorded(db: Rented, run: UUID, shop: str) -> None:
    for expected in ("execute", "recorded", "recorded"):
        with db.as_app() as app:
            assert book(app, shop, run) == expected
    assert bookings(db, shop) == 1
    (row,) = stored(db, "effects")
    assert (row["status"], row["result"]) == ("succeeded", {"booked": True})


def test_rolled_back_neither_the_write_nor_the_effect_has_ever_been(db: Rented, run: UUID, shop: str) -> None:
    for _ in range(2):
        with db.as_app() as app:
            assert book(app, shop, run) == "execute"
            app.rollback()
    assert (bookings(db, shop), stored(db, "effects"), stored(db, "effect_calls")) == (0, [], [])
    with db.as_app() as app:
        assert book(app, shop, run) == "execute"
    assert bookings(db, shop) == 1


@pytest.mark.parametrize("when", ["before", "after"])
def test_whether_its_connection_dies_before_or_after_the_commit_it_is_done_once(
    db: Rented, session: UUID, run: UUID, shop: str, when: str
) -> None:
    with db.connect("app") as app:
        db.act_as(app)
        book(app, shop, run)
        if when == "after":
            app.commit()
        with db.superuser() as root:
            root.execute("select pg_terminate_backend(%s, 5000)", (app.info.backend_pid,))
        with pytest.raises(psycopg.OperationalError):
            app.execute("select 1")
    assert bookings(db, shop) == (1 if when == "after" else 0)
    with db.as_app() as app:
        attempt = take_over(app, session, run)
        assert book(app, shop, run, attempt) == ("recorded" if when == "after" else "execute")
    assert bookings(db, shop) == 1


def test_a_write_that_is_refused_takes_the_effect_with_it(db: Rented, run: UUID, shop: str) -> None:
    with pytest.raises(psycopg.errors.UndefinedColumn), db.as_app() as app:
        begin(app, run, tool="book", intent="booking:7")
        app.execute(f"insert into {shop} (nonsense) values (1)".encode())
    assert stored(db, "effects") == []


def test_it_is_named_by_the_settlement_in_the_same_transaction(db: Rented, run: UUID, shop: str) -> None:
    with db.as_app() as app:
        book(app, shop, run)
        assert settle(app, run)["tools_executed"] == ["book"]
    assert bookings(db, shop) == 1
