"""What can't be meant is refused by the parameter's name and with what to give instead."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from enum import Enum
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import pytest

from durable_pg import Durable, Identity, Maintainer
from durable_pg.errors import BadInput, EffectNotFound, IdentifierInvalid, RoleMissing, RunNotFound, SessionNotFound
from tests.client.bad_input import OTHERS, UNFIT, UNSENDABLE, Bad, bad_arguments, methods_of, name_of, parameters_of
from tests.support.rented import Rented, nothing_written, stored

# Made of other calls, which refuse what they are handed on.
RUNNERS = {"run": Identity.run}
METHODS = {name: method for name, method in methods_of(Identity).items() if name not in ("run", "run_once")}
OF_MAINTAINERS = methods_of(Maintainer)
OF_OPERATORS = {name: METHODS[name] for name in ("declare_tools", "set_tool")}
MAKERS: dict[str, Callable[..., Any]] = {"from_url": Durable.from_url, "act_as": Durable.act_as}


@pytest.fixture
def me(db: Rented) -> Iterator[Identity]:
    with Durable.from_url(db.url("app"), max_size=1) as durable:
        yield durable.act_as(db.tenant("T1"), "U1")


def test_no_method_is_left_out() -> None:
    assert len(METHODS) == 25
    assert len(OF_MAINTAINERS) == 2
    assert set(MAKERS) | {"on", "maintainer"} == {
        name for name in vars(Durable) if not name.startswith("_") and name not in ("open", "close")
    }


def test_every_parameter_has_its_bad_values() -> None:
    methods = {**METHODS, **OF_MAINTAINERS, **MAKERS}
    parameters = {parameter.name for method in methods.values() for parameter in parameters_of(method)}
    assert [name for name in sorted(parameters) if not UNSENDABLE.get(name)] == []


@pytest.mark.parametrize("values", bad_arguments(METHODS, UNSENDABLE), ids=name_of)
def test_what_can_not_be_sent_is_refused_before(values: list[Bad]) -> None:
    # Its pool is not open: a call that was let through would say so.
    me = Durable.from_url("postgresql://nowhere.invalid/shop").act_as("T1", "U1")
    for bad in values:
        with pytest.raises(BadInput) as refusal:
            getattr(me, bad.method)(**bad.others)
        assert told(refusal.value) == bad.parameter
        assert refusal.value.call == bad.method
        assert refusal.value.names == {"tenant_id": "T1", "user_id": "U1"}


@pytest.mark.parametrize("values", bad_arguments(RUNNERS, UNSENDABLE), ids=name_of)
def test_a_run_is_not_begun_with_what_can_not_be_sent(values: list[Bad]) -> None:
    me = Durable.from_url("postgresql://nowhere.invalid/shop").act_as("T1", "U1")
    for bad in values:
        with pytest.raises(BadInput) as refusal, me.run(**bad.others):
            pass
        assert told(refusal.value) == ("content" if bad.parameter == "message" else bad.parameter)


@pytest.mark.parametrize("values", bad_arguments(OF_MAINTAINERS, UNSENDABLE), ids=name_of)
def test_what_a_maintainer_can_not_send_is_refused_before(values: list[Bad]) -> None:
    maintainer = Durable.from_url("postgresql://nowhere.invalid/shop").maintainer()
    for bad in values:
        with pytest.raises(BadInput) as refusal:
            getattr(maintainer, bad.method)(**bad.others)
        assert told(refusal.value) == bad.parameter
        assert (refusal.value.call, refusal.value.names) == (bad.method, {})


@pytest.mark.parametrize("values", bad_arguments(OF_MAINTAINERS, UNFIT), ids=name_of)
def test_what_the_database_refuses_a_maintainer(db: Rented, values: list[Bad]) -> None:
    with Durable.from_url(db.url("maintainer"), max_size=1) as durable:
        maintainer = durable.maintainer()
        for bad in values:
            with nothing_written(db), pytest.raises(BadInput) as refusal:
                getattr(maintainer, bad.method)(**bad.others)
            assert told(refusal.value) == bad.parameter


@pytest.mark.parametrize("values", bad_arguments(OF_OPERATORS, UNFIT), ids=name_of)
def test_what_the_database_refuses_an_operator(db: Rented, values: list[Bad]) -> None:
    with Durable.from_url(db.url("operator"), max_size=1) as durable:
        operator = durable.act_as(db.tenant("T1"), "on-call")
        for bad in values:
            with nothing_written(db), pytest.raises(BadInput) as refusal:
                getattr(operator, bad.method)(**bad.others)
            assert told(refusal.value) == bad.parameter


@pytest.mark.parametrize(
    ("method", "role"),
    [*((name, "operator") for name in OF_OPERATORS), *((name, "maintainer") for name in OF_MAINTAINERS)],
)
def test_an_app_is_told_whose_call_it_is(db: Rented, method: str, role: str) -> None:
    with Durable.from_url(db.url("app"), max_size=1) as durable:
        caller = durable.maintainer() if role == "maintainer" else durable.act_as(db.tenant("T1"), "U1")
        needed = {
            each.name: OTHERS[each.name] for each in parameters_of(getattr(caller, method)) if each.name in OTHERS
        }
        with nothing_written(db), pytest.raises(RoleMissing) as refusal:
            getattr(caller, method)(**needed)
    assert f"durable_{role}" in refusal.value.hint


@pytest.mark.parametrize("values", bad_arguments(MAKERS, UNSENDABLE), ids=name_of)
def test_a_client_and_an_identity_are_not_made_of_it(values: list[Bad]) -> None:
    for bad in values:
        with pytest.raises(BadInput) as refusal:
            if bad.method == "act_as":
                Durable.from_url("postgresql://nowhere.invalid/shop").act_as(**bad.others)
            else:
                Durable.from_url(**bad.others)
        assert told(refusal.value) == bad.parameter


def test_a_pool_is_not_larger_at_least_than_at_most() -> None:
    with pytest.raises(BadInput, match="max_size is 2, min_size 3"):
        Durable.from_url("postgresql://nowhere.invalid/shop", min_size=3, max_size=2)


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


@pytest.mark.parametrize("values", bad_arguments(WRITERS, UNFIT), ids=name_of)
def test_what_the_database_refuses_is_refused_in_the_same_way(db: Rented, me: Identity, values: list[Bad]) -> None:
    session = me.open_session("support", "s-1")
    run = me.start_run(session, "inv-1")
    effect = me.begin_effect(run, "mail")
    known = {"session": session, "run": run, "effect": effect}
    uids = {name: uid for name, uid in known.items() if name in values[0].others}
    for bad in values:
        with nothing_written(db), pytest.raises(BadInput) as refusal:
            getattr(me, bad.method)(**{**bad.others, **uids})
        assert told(refusal.value) == bad.parameter
        assert refusal.value.call == bad.method


@pytest.mark.parametrize("values", bad_arguments({"act_as": Durable.act_as}, UNFIT), ids=name_of)
def test_the_first_call_of_an_unfit_identity_is_refused(db: Rented, values: list[Bad]) -> None:
    with Durable.from_url(db.url("app"), max_size=1) as durable:
        for bad in values:
            me = durable.act_as(**bad.others)
            with nothing_written(db), pytest.raises(IdentifierInvalid) as refusal:
                me.list_sessions()
            assert told(refusal.value) == bad.parameter


@pytest.mark.parametrize("method", [name for name in METHODS if name != "list_runs"])
def test_an_unknown_uid_is_not_found(db: Rented, me: Identity, method: str) -> None:
    parameters = {parameter.name for parameter in parameters_of(METHODS[method])}
    for subject, error in (("session", SessionNotFound), ("run", RunNotFound), ("effect", EffectNotFound)):
        if subject in parameters:
            required = {"author", "invocation_id", "status", "tool", "step", "evidence"}
            needed = (required | {"state", "reason"} if subject == "run" else required) & parameters
            others: dict[str, Any] = {name: OTHERS[name] for name in needed}
            for uid in (uuid4(), str(uuid4()), uuid4().hex):
                with nothing_written(db), pytest.raises(error):
                    getattr(me, method)(**{**others, subject: uid})


def test_an_unknown_session_has_no_runs_and_an_unknown_app_no_sessions(me: Identity) -> None:
    me.open_session("support", "s-1")
    assert me.list_runs(uuid4()) == []
    for name in UNFIT["app_name"]:
        assert me.list_sessions(name) == []


def test_an_empty_name_of_an_event_counts_as_none(me: Identity) -> None:
    session = me.open_session("support", "s-1")
    appended = me.append_event(session, "agent", invocation_id="", event_id="")
    (event,) = me.read_events(session)
    assert (event.invocation_id, event.event_id) == (None, appended.event_id)
    assert event.event_id


def test_an_offset_may_have_a_fraction_of_a_second(me: Identity) -> None:
    session = me.open_session("support", "s-1")
    occurred_at = datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=1, seconds=1, microseconds=5)))
    me.append_event(session, "agent", occurred_at=occurred_at)
    assert [event.occurred_at for event in me.read_events(session)] == [occurred_at]


class Name(str, Enum):
    """A str that prints itself as something else."""

    APP = "support"


def test_a_str_that_prints_itself_otherwise_is_taken_as_what_it_is(db: Rented, me: Identity) -> None:
    session = me.open_session(Name.APP, "s-1", MappingProxyType({"plan": "gold"}))
    assert (session.app_name, session.state) == ("support", {"plan": "gold"})
    assert [row["app_name"] for row in stored(db, "sessions")] == ["support"]
