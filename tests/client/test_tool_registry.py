"""@durable_tool: the function stays what it was, and run.call() calls it through the ledger."""

import inspect
from collections.abc import Iterator, Mapping
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest

from durable_pg import Durable, Identity, Succeeded, declared_tools, durable_tool
from durable_pg.errors import EffectFailed, EffectPayloadDiffers, LeaseLost
from durable_pg.tools import declarations, tool_of
from durable_pg.types import Session
from tests.client.leases import let_the_lease_run_out, statuses, wait_until_the_provider_forgets
from tests.client.provider import LOOK, Declined
from tests.support.rented import Rented, nothing_written, stored

CALLS: list[tuple[Any, ...]] = []


def was_refunded(key: str, args: Mapping[str, Any]) -> Succeeded:
    CALLS.append(("verify", key, dict(args)))
    return Succeeded({"id": "re_7"}, **LOOK)


@durable_tool(
    replay_class="keyed",
    intent=lambda args: f"refund:{args['order']}",
    failed_on=Declined,
    verify=was_refunded,
    provider_dedupes_for=timedelta(milliseconds=100),
)
def refund(order: int, cents: int = 100, *, idempotency_key: str = "") -> dict[str, Any]:
    """Pay an order back."""
    CALLS.append(("refund", order, cents, idempotency_key))
    if cents == 0:
        raise Declined("nothing to refund")
    if cents < 0:
        raise ConnectionError
    return {"order": order}


@durable_tool("send_mail", timeout=10)
def mail(to: str) -> str:
    CALLS.append(("mail", to))
    return "sent"


@durable_tool(replay_class="read_only")
def search(words: str) -> list[str]:
    CALLS.append(("search", words))
    return [words]


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    CALLS.clear()


@pytest.fixture
def me(db: Rented) -> Iterator[Identity]:
    with Durable.from_url(db.url("app"), max_size=3) as durable:
        yield durable.act_as(db.tenant("T1"), "U1")


@pytest.fixture
def session(me: Identity) -> Session:
    return me.open_session("support", "s-1")


def test_a_decorated_function_is_called_as_before() -> None:
    assert refund(7, cents=5) == {"order": 7}
    assert CALLS == [("refund", 7, 5, "")]
    assert (refund.__name__, refund.__doc__) == ("refund", "Pay an order back.")
    assert "idempotency_key" in inspect.signature(refund).parameters


def test_a_run_calls_it_once_for_its_intent_and_hands_it_the_key(db: Rented, me: Identity, session: Session) -> None:
    for invocation in ("inv-1", "inv-2"):
        with me.run(session, invocation) as run:
            assert run.call(refund, {"order": 7, "cents": 5}, step=1) == {"order": 7}
    (effect,) = stored(db, "effects")
    assert [("refund", 7, 5, effect["idempotency_key"])] == CALLS
    assert (effect["tool"], effect["intent"], effect["scope"]) == ("refund", "refund:7", "user")
    assert (effect["args"], effect["step"]) == ({"order": 7, "cents": 5}, 1)


def test_other_arguments_for_the_same_intent_are_refused(db: Rented, me: Identity, session: Session) -> None:
    with me.run(session, "inv-1") as run:
        run.call(refund, {"order": 7, "cents": 5})
        with nothing_written(db), pytest.raises(EffectPayloadDiffers):
            run.call(refund, {"order": 7, "cents": 6})
    assert len(CALLS) == 1


def test_without_an_intent_the_key_is_of_the_run(db: Rented, me: Identity, session: Session) -> None:
    with me.run(session, "inv-1") as run:
        for ordinal in (0, 1, 1):
            assert run.call(mail, {"to": "mia"}, ordinal=ordinal) == "sent"
    assert CALLS == [("mail", "mia")] * 2
    assert [row["tool"] for row in stored(db, "effects")] == ["send_mail"] * 2


def test_what_is_declared_decides_how_a_failure_is_judged(db: Rented, me: Identity, session: Session) -> None:
    with me.run(session, "inv-1") as run:
        with pytest.raises(EffectFailed):
            run.call(refund, {"order": 7, "cents": 0})
        with pytest.raises(ConnectionError):
            run.call(refund, {"order": 8, "cents": -1})
        assert statuses(db) == ["failed", "unverified"]
        wait_until_the_provider_forgets(db)
        assert run.call(refund, {"order": 8, "cents": -1}) == {"id": "re_7"}
    (_, key, args) = CALLS[-1]
    assert args == {"order": 8, "cents": -1}
    assert key == CALLS[-2][-1]


def test_a_tool_that_only_reads_is_called_without_the_ledger(db: Rented, me: Identity, session: Session) -> None:
    with pytest.raises(LeaseLost), me.run(session, "inv-1") as run:
        with nothing_written(db):
            assert run.call(search, {"words": "a"}) == run.call(search, {"words": "a"}) == ["a"]
        let_the_lease_run_out(db, run.run_uid)
        with pytest.raises(LeaseLost):
            run.checkpoint(1, {})
        run.call(search, {"words": "b"})
    assert CALLS == [("search", "a")] * 2


@pytest.mark.parametrize("args", [{}, {"order": 7, "amount": 5}, {"order": 7, "idempotency_key": "mine"}])
def test_arguments_that_do_not_fit_begin_nothing(
    db: Rented, me: Identity, session: Session, args: dict[str, Any]
) -> None:
    with me.run(session, "inv-1") as run, nothing_written(db), pytest.raises(TypeError, match="refund"):
        run.call(refund, args)
    assert CALLS == []


def test_a_function_that_is_not_decorated_is_not_called(db: Rented, me: Identity, session: Session) -> None:
    with me.run(session, "inv-1") as run, nothing_written(db), pytest.raises(TypeError, match="@durable_tool"):
        run.call(was_refunded, {"key": "k", "args": {}})


def test_a_module_says_which_tools_it_declares() -> None:
    module = ModuleType("shop.tools")
    vars(module).update(
        refund=refund, pay_back=refund, mail=mail, search=search, CALLS=CALLS, was_refunded=was_refunded
    )
    assert [tool.name for tool in declared_tools(module)] == ["refund", "search", "send_mail"]
    assert declarations(module) == {"refund": "keyed", "search": "read_only", "send_mail": "effect"}
    vars(module)["other"] = durable_tool("refund")(lambda: None)
    with pytest.raises(ValueError, match="are called refund"):
        declared_tools(module)


def test_a_declaration_that_means_nothing_is_refused() -> None:
    wrong: Any = "writes"
    given: Any
    with pytest.raises(ValueError, match="replay_class"):
        durable_tool(replay_class=wrong)
    for given in ({"scope": "tenant"}, {"args_may_differ": True}):
        with pytest.raises(ValueError, match="intent"):
            durable_tool(**given)
    with pytest.raises(TypeError, match="parentheses"):
        durable_tool(was_refunded)  # type: ignore[arg-type]  # that is the point
    with pytest.raises(TypeError, match="failed_on"):
        durable_tool(failed_on=wrong)(lambda: None)
    assert tool_of(mail).timeout == 10
