"""How much of a bare INSERT's speed append_event keeps: python bench/append.py SUPERUSER_URL [--workers 1 8]."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from measuring import BODY, ME, Write, bare_inserts, compare, opened


@contextmanager
def append_event(url: str) -> Iterator[Write]:
    """Append an event of a run that is executing, with an event_id, as a worker in any language does."""
    query = (
        f"select * from durable.append_event({ME}, session_uid => %s, author => 'agent', content => %s,"
        " invocation_id => 'inv-1', event_id => %s, attempt => %s)"
    ).encode()
    with opened(url) as (_, session, run), psycopg.connect(url, autocommit=True) as app:
        yield lambda seq: app.execute(query, (session.session_uid, json.dumps(BODY), f"evt-{seq}", run.attempt))


@contextmanager
def client(url: str) -> Iterator[Write]:
    """The same by the client, on a pool of its own."""
    with opened(url) as (me, session, run):
        yield lambda seq: me.append_event(
            session, "agent", BODY, invocation_id="inv-1", event_id=f"evt-{seq}", attempt=run.attempt
        )


if __name__ == "__main__":
    compare({"bare INSERT": bare_inserts, "append_event": append_event, "by the client": client}, __doc__)
