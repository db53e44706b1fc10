"""What can't be meant is refused by the parameter's name and with what to give instead."""

from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta, timezone
from enum import Enum
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from durable_pg import AsyncDurable, AsyncIdentity, AsyncMaintainer
from durable_pg.errors import BadInput, EffectNotFound, IdentifierInvalid, RoleMissing, RunNotFound, SessionNotFound
from tests.client.bad_input import OTHERS, UNFIT, UNSENDABLE, Bad, bad_arguments, methods_of, name_of, parameters_of
from tests.support.rented import Rented, nothing_written, stored

# Made of other calls, which refuse what they are handed on.
RUNNERS = {"run": AsyncIdentity.run}
METHODS = {name: method for name, method in methods_of(AsyncIdentity).items() if name not in ("run", "run_once")}
OF_MAINTAINERS = methods_of(AsyncMaintainer)
OF_OPERATORS = {name: METHODS[name] for name in ("declare_tools", "set_tool")}
MAKERS: dict[str, Callable[..., Any]] = {"from_url": AsyncDurable.from_url, "act_as": AsyncDurable.act_as}


@pytest_asyncio.fixture
async def me_async(db: Rented) -> AsyncIterator[AsyncIdentity]:
    async with AsyncDurable.from_url(db.url("app"), max_size=1) as durable:
        yield durable.act_as(db.tenant("T1"), "U1")


def test_no_method_is_left_out() -> None:
    assert len(METHODS) == 25
    assert len(OF_MAINTAINERS) == 2
    assert set(MAKERS) | {"on", "maintainer"} == {
        name for name in vars(AsyncDurable) if not name.startswith("_") and name not in ("open", "close")
    }


@pytest.mark.parametrize(
    ("method", "parameter"),
    [
        (name, parameter.name)
        for name, method in {**METHODS, **OF_MAINTAINERS, **MAKERS}.items()
        for parameter in parameters_of(method)
    ],
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


@pytest.mark.parametrize("bad", bad_arguments(RUNNERS, UNSENDABLE), ids=name_of)
async def test_a_run_is_not_begun_with_what_can_not_be_sent(bad: Bad) -> None:
    me = AsyncDurable.from_url("postgresql://nowhere.invalid/shop").act_as("T1", "U1")
    with pytest.raises(BadInput) as refusal:
        async with me.run(**bad.others):
            pass
    assert told(refusal.value) == ("content" if bad.parameter == "message" else bad.parameter)


@pytest.mark.parametrize("bad", bad_arguments(OF_MAINTAINERS, UNSENDABLE), ids=name_of)
async def test_what_a_maintainer_can_not_send_is_refused_before(bad: Bad) -> None:
    maintainer = AsyncDurable.from_url("postgresql://nowhere.invalid/shop").maintainer()
    with pytest.raises(BadInput) as refusal:
        await getattr(maintainer, bad.method)(**bad.others)
    assert told(refusal.value) == bad.parameter
    assert (refusal.value.call, refusal.value.names) == (bad.method, {})


@pytest.mark.parametrize("bad", bad_arguments(OF_MAINTAINERS, UNFIT), ids=name_of)
async def test_what_the_database_refuses_a_maintainer(db: Rented, bad: Bad) -> None:
    async with AsyncDurable.from_url(db.url("maintainer"), max_size=1) as durable:
        maintainer = durable.maintainer()
        with nothing_written(db), pytest.raises(BadInput) as refusal:
            await getattr(maintainer, bad.method)(**bad.others)
    assert told(refusal.value) == bad.parameter


@pytest.mark.parametrize("bad", bad_arguments(OF_OPERATORS, UNFIT), ids=name_of)
async def test_what_the_database_refuses_an_operator(db: Rented, bad: Bad) -> None:
    async with AsyncDurable.from_url(db.url("operator"), max_size=1) as durable:
        operator = durable.act_as(db.tenant("T1"), "on-call")
        with nothing_written(db), pytest.raises(BadInput) as refusal:
            await getattr(operator, bad.method)(**bad.others)
    assert told(refusal.value) == bad.parameter


@pytest.mark.parametrize(
    ("method", "role"),
    [*((name, "operator") for name in OF_OPERATORS), *((name, "maintainer") for name in OF_MAINTAINERS)],
)
async def test_an_app_is_told_whose_call_it_is(db: Rented, method: str, role: str) -> None:
    async with AsyncDurable.from_url(db.url("app"), max_size=1) as durable:
        caller = durable.maintainer() if role == "maintainer" else durable.act_as(db.tenant("T1"), "U1")
        needed = {
            each.name: OTHERS[each.name] for each in parameters_of(getattr(caller, method)) if each.name in OTHERS
        }
        with nothing_written(db), pytest.raises(RoleMissing) as refusal:
            await getattr(caller, method)(**needed)
    assert f"durable_{role}" in refusal.value.hint


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
WRITERS = {
    name: method for name, method in METHODS.items() if name not in ("list_sessions", "list_tools", *OF_OPERATORS)
}


@pytest.mark.parametrize("bad", bad_arguments(WRITERS, UNFIT), ids=name_of)
async def test_what_the_database_refuses_is_refused_in_the_same_way(
    db: Rented, me_async: AsyncIdentity, bad: Bad
) -> None:
    session = await me_async.open_session("support", "s-1")
    run = await me_async.start_run(session, "inv-1")
    effect = await me_async.begin_effect(run, "mail")
    known = {"session": session, "run": run, "effect": effect}
    uids = {name: uid for name, uid in known.items() if name in bad.others}
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
    for subject, error in (("session", SessionNotFound), ("run", RunNotFound), ("effect", EffectNotFound)):
        if subject in parameters:
            required = {"author", "invocation_id", "status", "tool", "step", "evidence"}
            needed = (required | {"state", "reason"} if subject == "run" else required) & parameters
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
