"""Odd JSON in args, result, error and evidence comes back equal, or is refused by its path with nothing written."""

import json
from typing import Any
from uuid import UUID

import pytest
from psycopg import Error

from tests.support.calls import EVIDENCE, begin, effects, finish, resolve
from tests.support.harness import Connection, refused, value
from tests.support.rented import Rented, nothing_written

ODD: list[Any] = [
    {"a\0b": ["\0", {"\0": "\0\0"}]},
    {"half": "\ud800", "other half": "\udfff", "wrong way round": "\udc00\ud800"},
    {"mark": "\ufffe", "looks like an escape": "\ufffe0041", "pair": "\U0001f600"},
    {"slashes": "\\u0000 \\\\u0000 \\\\\\ud800"},
    [None, True, False, 0, -1, 1.5, 1e22, "", {}, []],
    {"": {"": ""}},
    "\0",
    7,
    None,
]
TOO_DEEP = "[" * 30_000 + "]" * 30_000
LARGE = {"text": "w\u00f6rd " * 1_900_000}


def sent(value: Any) -> str:
    return json.dumps(value)


@pytest.mark.parametrize("odd", ODD)
def test_arguments_come_back_equal(db: Rented, run: UUID, odd: Any) -> None:
    with db.as_app() as app:
        assert begin(app, run, args=sent(odd))["args"] == odd
        again = begin(app, run, args=sent(odd))
        assert (again["outcome"], again["args"], again["args_match"]) == ("in_flight", odd, True)
        assert effects(app)[0]["args"] == odd


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(("status", "field"), [("succeeded", "result"), ("failed", "error"), ("unverified", "error")])
def test_results_and_errors_come_back_equal(db: Rented, run: UUID, odd: Any, status: str, field: str) -> None:
    with db.as_app() as app:
        effect = begin(app, run)["effect_uid"]
        assert finish(app, effect, status, **{field: sent(odd)})[field] == odd
        assert finish(app, effect, status, **{field: sent(odd)})["outcome"] == "already_finished"
        assert effects(app)[0][field] == odd


@pytest.mark.parametrize("odd", ODD)
def test_evidence_and_the_result_it_is_for_come_back_equal(db: Rented, run: UUID, odd: Any) -> None:
    evidence = {**EVIDENCE, "page": odd}
    with db.as_app() as app:
        effect = begin(app, run)["effect_uid"]
        finish(app, effect, "unverified")
        told = resolve(app, effect, evidence=sent(evidence), result=sent(odd))
    assert (told["evidence"], told["result"]) == (evidence, odd)


def offer(app: Connection, run: UUID, field: str, text: str) -> None:
    """Send this text as a field, for a run whose refund is begun."""
    (effect,) = (row["effect_uid"] for row in effects(app))
    if field == "args":
        begin(app, run, step=9, args=text)
    elif field == "evidence":
        resolve(app, effect, evidence='{"channel": "x", "seen": "y", "a": ' + text + "}")
    else:
        finish(app, effect, "succeeded" if field == "result" else "failed", **{field: text})


@pytest.mark.parametrize("field", ["args", "result", "error", "evidence"])
def test_a_number_that_can_not_be_stored_is_refused_by_its_path(db: Rented, run: UUID, field: str) -> None:
    with db.as_app() as app:
        begin(app, run)
    with nothing_written(db), refused("22W02", match=rf"{field}\.a.* can't be stored exactly"), db.as_app() as app:
        offer(app, run, field, '{"a": [0, 1e200000]}' if field != "evidence" else "1e200000")


@pytest.mark.parametrize("field", ["args", "result", "error", "evidence"])
def test_what_is_nested_too_deep_is_refused_whole(db: Rented, run: UUID, field: str) -> None:
    """By our own 22W02, or by the 54001 of json's input, which comes before any function of ours."""
    with db.as_app() as app:
        begin(app, run)
    with nothing_written(db), pytest.raises(Error) as refusal, db.as_app() as app:
        offer(app, run, field, TOO_DEEP)
    early = refusal.value.sqlstate == "54001" and "durable" not in str(refusal.value.diag.context)
    assert early or refusal.value.sqlstate == "22W02"


def number_of_effects(db: Rented) -> Any:
    with db.superuser() as root:
        return value(root, "select count(*) from durable.effects")


@pytest.mark.parametrize("leaf", ["1", "1.50", '"e\u0301"'])
@pytest.mark.parametrize("level", ["[]", '{"a":}'])
def test_deep_arguments_come_back_equal_or_are_refused(db: Rented, run: UUID, leaf: str, level: str) -> None:
    """Those in another form than the canonical one need more of the stack."""
    read = "select args::text from durable.begin_effect(run_uid => %s, attempt => 1, tool => 't', args => %s)"
    for depth in (100, 400, 2_000, 10_000):
        text = level[:-1] * depth + leaf + level[-1] * depth
        before = number_of_effects(db)
        if leaf == "1" or depth == 100 or fits(db, run, text):
            with db.as_app() as app:
                assert value(app, read, run, text).replace(" ", "") == text
        else:
            with refused("22W02", match="args is nested too deep"), db.as_app() as app:
                value(app, read, run, text)
            assert number_of_effects(db) == before


def fits(db: Rented, run: UUID, text: str) -> bool:
    """Try it in a transaction that is rolled back."""
    try:
        with db.as_app() as app:
            app.execute(
                "select durable.begin_effect(run_uid => %s, attempt => 1, tool => 't', args => %s)", (run, text)
            )
            app.rollback()
    except Error:
        return False
    return True


def test_ten_megabytes_of_arguments_and_result_come_back_equal(db: Rented, run: UUID) -> None:
    assert len(sent(LARGE)) > 10_000_000
    with db.as_app() as app:
        app.execute("set local statement_timeout = '30s'")
        begun = begin(app, run, args=sent(LARGE))
        assert begun["args"] == LARGE
        assert finish(app, begun["effect_uid"], result=sent(LARGE))["result"] == LARGE
        again = begin(app, run, args=sent(LARGE))
    assert (again["outcome"], again["result"], again["args_match"]) == ("recorded", LARGE, True)
