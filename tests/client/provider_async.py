"""What tools call outside: a provider that notes what it was asked, and answers or raises as it is told."""

from typing import Any

import pytest

from durable_pg import AsyncIdentity
from durable_pg.types import Session

LOOK = {"channel": "API", "seen": "refund re_7"}


class Declined(Exception):
    """What a provider's library raises when it is certain that nothing was booked."""


class AsyncProvider:
    """Gives its answers one after the other, and the last one again and again."""

    def __init__(self, *answers: Any) -> None:
        self.keys: list[str] = []
        self._answers = list(answers or ["done"])

    async def __call__(self, key: str) -> Any:
        self.keys.append(key)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer


async def leave_unverified_async(me: AsyncIdentity, session: Session, **effect: Any) -> None:
    """Let an attempt at inv-1 end with an effect of which nobody knows."""
    with pytest.raises(ConnectionError):
        async with me.run(session, "inv-1") as run:
            await run.effect("refund", **effect, call=AsyncProvider(ConnectionError("reset")))
