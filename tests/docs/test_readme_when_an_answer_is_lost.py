"""The README's turn, with the answer of one call lost on the way: the refund is asked for once, and never left out."""

from typing import Any

import pytest

from durable_pg import Identity
from tests.client import proxy
from tests.docs.test_readme import _block
from tests.support.harness import Database, rows


@pytest.mark.parametrize("call", ["open_session", "append_event", "finish_effect", "settle_run"])
def test_a_turn_whose_answer_is_lost_refunds_once(
    db: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], call: str
) -> None:
    monkeypatch.delenv("DURABLE_PG_URL", raising=False)
    method = getattr(Identity, call)
    lost: list[str] = []
    with proxy.in_front_of(db) as way:

        def losing(self: Identity, *arguments: Any, **named: Any) -> Any:
            # Of append_event, the one that records the tool call.
            if call not in lost and (call != "append_event" or named.get("event_id")):
                lost.append(call)
                way.lose_answers()
            return method(self, *arguments, **named)

        monkeypatch.setenv("DATABASE_URL", way.url())
        monkeypatch.setattr(Identity, call, losing)
        for _ in range(2):
            exec(_block("python"), {})  # noqa: S102  # the README's own
    assert lost == [call]
    assert capsys.readouterr().out.count("the provider refunds") == 1
    (run,) = rows(db, "runs")
    assert (run["status"], run["tools_executed"]) == ("succeeded", ["refund"])
    assert len(rows(db, "events")) == 2
