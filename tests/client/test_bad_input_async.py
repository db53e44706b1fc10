"""What can't be meant is refused by the parameter's name and with what to give instead."""

from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta, timezone
from enum import Enum
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from durable_pg import AsyncDurable, AsyncIdentity
from durable_pg.errors import BadInput, IdentifierInvalid, RunNotFound, SessionNotFound
from tests.client.bad_input import OTHERS, UNFIT, UNSENDABLE, Bad, bad_arguments, methods_of, name_of, parameters_of
from tests.rented import Rented, nothing_written, stored

METHODS = methods_of(AsyncIdentity)
MAKERS: dict[str, Callable[..., Any]] = {"from_url": AsyncDurable.from_url, "act_as": AsyncDurable.act_as}


@pytest_asyncio.fixture
async def me_async(db: Rented) -> AsyncIterator[AsyncIdentity]:
    async with AsyncDurable.from_url(db.url("app"), max_size=1) as durable:
        yield durable.act_as(db.tenant("T1"), "U1")


def test_no_method_is_left_out() -> None:
    assert len(METHODS) == 12
    assert set(MAKERS) | {"on"} == {
        name for name in vars(AsyncDurable) if not name.startswith("_") and name not in ("open", "close")
    }


@pytest.mark.parametrize(
    ("method", "parameter"),
    [(name, parameter.name) for name, method in {**METHODS, **MAKERS}.items() for parameter in parameters_of(method)],
)
def test_every_parameter_has_its_bad_values(method: str, parameter: str) -> None:
    assert UNSENDABLE[parameter]


@pytest.mark.parametrize("bad", bad_arguments(METHODS, UNSENDABLE), ids=name_of)
async def test_what_can_not_be_sent_is_refused_before(bad: Bad) -> None:
    # Its pool is not open: a call that was let through would say so.
    me = AsyncDurable.from_url("postgresql://nowhere.invalid/shop").act_as("T1", "U1")
    with pytest.raises(BadInput) as refusal:
        await getattr(me, bad.method)(**bad.others)
    assert told(refusal.value) == bad.parameter
    assert refusal.value.call == bad.method
    assert refusal.value.names == {"tenant_id": "T1", "user_id": "U1"}


@pytest.mark.parametrize("bad", bad_arguments(MAKERS, UNSENDABLE), ids=name_of)
def test_a_client_and_an_identity_are_not_made_of_it(bad: Bad) -> None:
    with pytest.raises(BadInput) as refusal:
        if bad.method == "act_as":
            AsyncDurable.from_url("postgresql://nowhere.invalid/shop").act_as(**bad.others)
        else:
            AsyncDurable.from_url(**bad.others)
    assert told(refusal.value) == bad.parameter


def test_a_pool_is_not_larger_at_least_than_at_most() -> None:
    with pytest.raises(BadInput, match="max_size is 2, min_size 3"):
        AsyncDurable.from_url("postgresql://nowhere.invalid/shop", min_size=3, max_size=2)


def told(error: BadInput) -> str:
    """Return which parameter an error is about; it has to say it in words, and what to do."""
    parameter = error.column.partition("[")[0]
    assert parameter in str(error) or parameter == "url"
    assert error.sqlstate in ("22W01", "22W02", "22W03")
    assert not error.may_have_taken_effect
    assert str(error).encode().isascii()
    assert error.hint or parameter == "url"
    return parameter


# list_sessions only looks for a name.
WRITERS = {name: method for name, method in METHODS.items() if name != "list_sessions"}


@pytest.mark.parametrize("bad", bad_arguments(WRITERS, UNFIT), ids=name_of)
async def test_what_the_database_refuses_is_refused_in_the_same_way(
    db: Rented, me_async: AsyncIdentity, bad: Bad
) -> None:
    session = await me_async.open_session("support", "s-1")
    run = await me_async.start_run(session, "inv-1")
    uids = {name: uid for name, uid in (("session", session), ("run", run)) if name in bad.others}
    with nothing_written(db), pytest.raises(BadInput) as refusal:
        await getattr(me_async, bad.method)(**{**bad.others, **uids})
    assert told(refusal.value) == bad.parameter
    assert refusal.value.call == bad.method


@pytest.mark.parametrize("bad", bad_arguments({"act_as": AsyncDurable.act_as}, UNFIT), ids=name_of)
async def test_the_first_call_of_an_unfit_identity_is_refused(db: Rented, bad: Bad) -> None:
    async with AsyncDurable.from_url(db.url("app"), max_size=1) as durable:
        me = durable.act_as(**bad.others)
        with nothing_written(db), pytest.raises(IdentifierInvalid) as refusal:
            await me.list_sessions()
    assert told(refusal.value) == bad.parameter


@pytest.mark.parametrize("method", [name for name in METHODS if name != "list_runs"])
async def test_an_unknown_uid_is_not_found(db: Rented, me_async: AsyncIdentity, method: str) -> None:
    parameters = {parameter.name for parameter in parameters_of(METHODS[method])}
    for subject, error in (("session", SessionNotFound), ("run", RunNotFound)):
        if subject in parameters:
            needed = {"author", "invocation_id", "status"} & parameters
            others: dict[str, Any] = {name: OTHERS[name] for name in needed}
            for uid in (uuid4(), str(uuid4()), uuid4().hex):
                with nothing_written(db), pytest.raises(error):
                    await getattr(me_async, method)(**{**others, subject: uid})


async def test_an_unknown_session_has_no_runs_and_an_unknown_app_no_sessions(me_async: AsyncIdentity) -> None:
    await me_async.open_session("support", "s-1")
    assert await me_async.list_runs(uuid4()) == []
    for name in UNFIT["app_name"]:
        assert await me_async.list_sessions(name) == []


async def test_an_empty_name_of_an_event_counts_as_none(me_async: AsyncIdentity) -> None:
    session = await me_async.open_session("support", "s-1")
    appended = await me_async.append_event(session, "agent", invocation_id="", event_id="")
    (event,) = await me_async.read_events(session)
    assert (event.invocation_id, event.event_id) == (None, appended.event_id)
    assert event.event_id


async def test_an_offset_may_have_a_fraction_of_a_second(me_async: AsyncIdentity) -> None:
    session = await me_async.open_session("support", "s-1")
    occurred_at = datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=1, seconds=1, microseconds=5)))
    await me_async.append_event(session, "agent", occurred_at=occurred_at)
    assert [event.occurred_at for event in await me_async.read_events(session)] == [occurred_at]


class Name(str, Enum):
    """A str that prints itself as something else."""

    APP = "support"


async def test_a_str_that_prints_itself_otherwise_is_taken_as_what_it_is(db: Rented, me_async: AsyncIdentity) -> None:
    session = await me_async.open_session(Name.APP, "s-1", MappingProxyType({"plan": "gold"}))
    assert (session.app_name, session.state) == ("support", {"plan": "gold"})
    assert [row["app_name"] for row in stored(db, "sessions")] == ["support"]
