"""Effects to look at: one that succeeded, one that failed, one that nobody knows about, and a neighbour's."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tests.support.calls import call, open_session, start
from tests.support.harness import Connection, Database


@dataclass(frozen=True)
class Ledger:
    """Uids of what `record` made; `run` is the one of user U1."""

    run: UUID
    succeeded: UUID
    failed: UUID
    unverified: UUID
    neighbour: UUID


def record(db: Database) -> Ledger:
    """Record the effects of a run of U1 and one of U2."""
    with db.as_app() as app:
        run = start(app, open_session(app))
        succeeded = _begin(app, run, "mail", {"to": "mia", "nul": "a\u0000b"}, intent="mail:mia")
        _finish(app, succeeded, status="succeeded", result={"id": "m-1"})
        failed = _begin(app, run, "book", {"room": 7})
        _finish(app, failed, status="failed", error={"why": "full"})
        unverified = _begin(app, run, "refund", {"order": 7, "cents": 500})
        _finish(app, unverified, status="unverified", error={"type": "ConnectionError", "message": "reset"})
    with db.as_app(user="U2") as app:
        neighbour = _begin(app, start(app, open_session(app)), "refund", {"order": 8})
    return Ledger(run, succeeded, failed, unverified, neighbour)


def _begin(app: Connection, run: UUID, tool: str, args: dict[str, Any], **more: Any) -> UUID:
    begun = call(app, "begin_effect", run_uid=run, attempt=1, tool=tool, args=args, **more)
    assert begun["outcome"] == "execute"
    assert isinstance(begun["effect_uid"], UUID)
    return begun["effect_uid"]


def _finish(app: Connection, effect: UUID, **outcome: Any) -> None:
    call(app, "finish_effect", effect_uid=effect, attempt=1, **outcome)
