"""D16, josipmusa/idempotency4j#12: a key used again with another payload got the first one's answer."""

from typing import Any
from uuid import UUID

import pytest

from tests.support.calls import begin, finish, open_session, start
from tests.support.harness import refused
from tests.support.rented import Rented, nothing_written, stored

PAID = {"to": "acct-9", "cents": 500}


@pytest.fixture
def run(db: Rented) -> UUID:
    with db.as_app() as app:
        return start(app, open_session(app))


@pytest.fixture
def paid(db: Rented, run: UUID) -> UUID:
    """The payment k1, which has succeeded."""
    with db.as_app() as app:
        effect = begin(app, run, tool="pay", intent="k1", args=PAID)["effect_uid"]
        finish(app, effect, result={"receipt": "p-1"})
    assert isinstance(effect, UUID)
    return effect


@pytest.mark.parametrize(
    "other",
    [{"to": "acct-9", "cents": 501}, {"to": "acct-8", "cents": 500}, {"to": "acct-9"}, {**PAID, "memo": ""}, None],
)
def test_another_payload_under_the_key_is_refused_and_the_original_untouched(
    db: Rented, run: UUID, paid: UUID, other: Any
) -> None:
    with nothing_written(db), refused("23W10", match="k1") as refusal, db.as_app() as app:
        begin(app, run, tool="pay", intent="k1", args=other)
    assert (refusal.diag.table_name, refusal.diag.column_name) == ("effects", "args")
    assert str(refusal.diag.message_detail).startswith(f"effect {paid} of run {run}, succeeded")


@pytest.mark.parametrize("same", ['{"cents": 500, "to": "acct-9"}', '{ "to":"acct-9","cents":5e2}'])
def test_the_same_payload_in_another_order_is_answered_with_the_stored_outcome(
    db: Rented, run: UUID, paid: UUID, same: str
) -> None:
    with nothing_written(db), db.as_app() as app:
        told = begin(app, run, tool="pay", intent="k1", args=same)
    assert (told["effect_uid"], told["outcome"], told["result"]) == (paid, "recorded", {"receipt": "p-1"})


def test_another_tool_under_the_key_is_refused(db: Rented, run: UUID, paid: UUID) -> None:
    with nothing_written(db), refused("23W10", match="for the tool 'pay'") as refusal, db.as_app() as app:
        begin(app, run, tool="refund", intent="k1", args=PAID)
    assert refusal.diag.column_name == "tool"


def test_it_is_refused_before_the_first_one_is_over_too(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        begin(app, run, tool="pay", intent="k1", args=PAID)
    with nothing_written(db), refused("23W10"), db.as_app() as app:
        begin(app, run, tool="pay", intent="k1", args={**PAID, "cents": 501})


@pytest.mark.parametrize(
    "change", ["args = '{}'", "args_digest = sha256('')", "tool = 'refund'", "intent = 'k2'", "idempotency_key = 'k'"]
)
def test_the_stored_payload_is_changed_neither_by_the_app_nor_by_the_back_role(
    db: Rented, paid: UUID, change: str
) -> None:
    statement = f"update durable.effects set {change}".encode()
    with nothing_written(db), refused("42501"), db.as_app() as app:
        app.execute(statement)
    with nothing_written(db), refused("42501"), db.as_engine() as engine:
        engine.execute(statement)


@pytest.mark.parametrize("change", ["args = '{}'", "args_digest = sha256('')", "tool = 'refund'", "failures = 9"])
def test_the_stored_payload_is_not_even_changed_past_all_rights(db: Rented, paid: UUID, change: str) -> None:
    with nothing_written(db), refused("23W03"), db.superuser() as root:
        root.execute(f"update durable.effects set {change} where effect_uid = %s".encode(), (paid,))


def test_a_second_row_under_the_key_is_refused_by_the_table_itself(db: Rented, paid: UUID) -> None:
    copy = """
        insert into durable.effects (tenant_id, user_id, app_name, run_uid, step, ordinal, tool, scope, intent, args,
            args_digest, failures, idempotency_key, first_begun_at, held_by, attempt, begun_at, lease_expires_at)
        select tenant_id, user_id, app_name, run_uid, step, ordinal, tool, scope, intent, '{"cents": 501}',
            sha256('other'), 1, 'another', first_begun_at, held_by, attempt, begun_at, lease_expires_at
        from durable.effects"""
    with nothing_written(db), refused("23505", "effects_once_for_a_user"), db.as_engine() as engine:
        engine.execute(copy.encode())
    assert len(stored(db, "effects")) == 1
