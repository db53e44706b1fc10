"""D11, kortix-ai/suna#5267: a key unique across tenants let one tenant notice, block or read another's record."""

import pytest

from tests.support.calls import append, call, events, open_session, said, say, settle, start
from tests.support.harness import Connection, refused
from tests.support.rented import TABLES, Rented, nothing_written, stored

PEOPLE = (("T1", "U1"), ("T2", "U1"), ("T1", "U2"))


def one_turn(app: Connection, answer: str) -> dict[str, object]:
    """Record a whole turn under names that everybody uses, and return all that its caller is told."""
    told: dict[str, object] = {}
    told["open"] = call(app, "open_session", app_name="support", session_id="1", state={"app:k": answer, "x": 1})
    session = told["open"]["session_uid"]  # type: ignore[index]
    told["say"] = say(app, session, answer, event_id="e-1")
    told["start"] = call(app, "start_run", session_uid=session, invocation_id="inv-1", input={"a": answer})
    told["answer"] = append(app, session, "agent", said(answer), invocation_id="inv-1", event_id="e-2", attempt=1)
    told["settle"] = settle(app, told["start"]["run_uid"], result={"a": answer})  # type: ignore[index]
    return told


def without_uids(told: dict[str, object]) -> dict[str, object]:
    ours = ("session_uid", "run_uid", "created_at", "updated_at", "lease_expires_at", "user_id", "result")
    return {name: {k: v for k, v in row.items() if k not in ours} for name, row in told.items()}  # type: ignore[attr-defined]


def test_everybody_gets_fresh_records_under_the_same_names(db: Rented) -> None:
    told = {}
    for person in PEOPLE:
        with db.as_app(*person) as app:
            told[person] = one_turn(app, " ".join(person))
    first, *others = (without_uids(each) for each in told.values())
    for other in others:
        assert other == first
    for person in PEOPLE:
        with db.as_app(*person) as app:
            session = told[person]["open"]["session_uid"]  # type: ignore[index]
            assert [event["content"] for event in events(app, session)] == [said(" ".join(person))] * 2
            assert call(app, "list_runs")["result"] == {"a": " ".join(person)}


def test_the_same_names_meet_nothing_while_the_other_is_still_writing(db: Rented) -> None:
    with db.as_app("T1", "U1") as open_transaction:
        one_turn(open_transaction, "T1")
        with db.as_app("T2", "U1", login="app2") as app:
            app.execute("set local lock_timeout = '2s'")
            one_turn(app, "T2")
        # Another user of the tenant shares the state row of the app, whose lock is held; all other names are their own.
        with db.as_app("T1", "U2", login="app2") as app:
            app.execute("set local lock_timeout = '2s'")
            session = open_session(app, "1", app_name="another")
            say(app, session, "U2", event_id="e-1")
            start(app, session)
    assert len(stored(db, "sessions")) == 3


@pytest.mark.parametrize("table", TABLES)
def test_the_app_can_probe_no_key_by_inserting(db: Rented, table: str) -> None:
    with db.as_app("T1", "U1") as app:
        one_turn(app, "T1")
    for tenant in ("T1", "T2"):
        with nothing_written(db), refused("42501"), db.as_app(tenant, "U2") as app:
            insert = f"insert into durable.{table} select * from durable.{table}"
            app.execute(f"{insert} on conflict do nothing returning tenant_id".encode())


def test_every_key_and_reference_of_data_begins_with_the_tenant(db: Rented) -> None:
    with db.superuser() as root:
        found = root.execute(
            """
            select i.indexrelid::regclass::text as name, i.indrelid::regclass::text as owner, a.attname as leads
            from pg_index as i
            join pg_class as c on c.oid = i.indrelid
            join pg_attribute as a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
            where c.relnamespace = 'durable'::regnamespace and i.indisunique
            union all
            select f.conname, f.conrelid::regclass::text, a.attname
            from pg_constraint as f
            join pg_attribute as a on a.attrelid = f.conrelid and a.attnum = f.conkey[1]
            where f.connamespace = 'durable'::regnamespace and f.contype = 'f'
            """
        ).fetchall()
    data = [row for row in found if row["owner"] not in ("durable.transitions", "durable.alembic_version")]
    assert len(data) >= 30
    assert {row["leads"] for row in data} == {"tenant_id"}
