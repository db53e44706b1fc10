"""What a process of its own does with a client of its own."""

import asyncio
from typing import Any
from uuid import UUID

from durable_pg import AsyncDurable, Durable


def append(url: str, tenant: str, session: UUID, **event: Any) -> tuple[str, int]:
    """Append an event as U1, and return outcome and seq."""
    with Durable.from_url(url, max_size=1) as durable:
        appended = durable.act_as(tenant, "U1").append_event(session, **event)
    return appended.outcome, appended.seq


def append_in_a_loop(url: str, tenant: str, session: UUID, **event: Any) -> tuple[str, int]:
    """Do the same with the asynchronous client."""

    async def work() -> tuple[str, int]:
        async with AsyncDurable.from_url(url, max_size=1) as durable:
            appended = await durable.act_as(tenant, "U1").append_event(session, **event)
        return appended.outcome, appended.seq

    return asyncio.run(work())
