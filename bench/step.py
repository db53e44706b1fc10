"""How much of two bare INSERTs' speed a step with an effect keeps: python bench/step.py SUPERUSER_URL [--workers 1 8].

A step is begin_effect, then record_step with an event, the finished effect and a checkpoint: two statements, as a
worker in any language sends them. Compared with two bare INSERTs, and with the same in four single calls.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
from measuring import BODY, ME, Write, bare_inserts, compare, opened

BEGIN = f"""select effect_uid::text from durable.begin_effect({ME}, run_uid => %s, attempt => %s, step => %s,
    tool => 'mail', args => %s)"""
RECORD = f"""select * from durable.record_step({ME}, run_uid => %s, attempt => %s, step => %s, events => %s,
    finished => %s, state => %s)"""
APPEND = f"""select * from durable.append_event({ME}, session_uid => %s, author => 'agent', content => %s,
    invocation_id => 'inv-1', event_id => %s, attempt => %s)"""
FINISH = f"""select * from durable.finish_effect({ME}, effect_uid => %s, attempt => %s, status => 'succeeded',
    result => %s)"""
SAVE = f"select * from durable.save_checkpoint({ME}, run_uid => %s, attempt => %s, step => %s, state => %s)"


@contextmanager
def two_calls(url: str) -> Iterator[Write]:
    """begin_effect, record_step."""
    with opened(url) as (_, _, run), psycopg.connect(url, autocommit=True) as app:

        def write(seq: int) -> None:
            begun = _asked(app, BEGIN, run.run_uid, run.attempt, seq, json.dumps({"to": seq}))
            events = json.dumps([{"author": "agent", "content": BODY, "event_id": f"evt-{seq}"}])
            finished = json.dumps([{"effect_uid": begun, "status": "succeeded", "result": {"sent": seq}}])
            _asked(app, RECORD, run.run_uid, run.attempt, seq, events, finished, json.dumps({"step": seq}))

        yield write


@contextmanager
def four_calls(url: str) -> Iterator[Write]:
    """begin_effect, append_event, finish_effect, save_checkpoint."""
    with opened(url) as (_, session, run), psycopg.connect(url, autocommit=True) as app:

        def write(seq: int) -> None:
            begun = _asked(app, BEGIN, run.run_uid, run.attempt, seq, json.dumps({"to": seq}))
            _asked(app, APPEND, session.session_uid, json.dumps(BODY), f"evt-{seq}", run.attempt)
            _asked(app, FINISH, begun, run.attempt, json.dumps({"sent": seq}))
            _asked(app, SAVE, run.run_uid, run.attempt, seq, json.dumps({"step": seq}))

        yield write


def _asked(app: psycopg.Connection[Any], query: str, *parameters: Any) -> Any:
    row = app.execute(query.encode(), parameters).fetchone()
    return row and row[0]


if __name__ == "__main__":
    ways = {
        "2 bare INSERTs": partial(bare_inserts, rows=2),
        "step in 2 calls": two_calls,
        "step in 4 calls": four_calls,
    }
    compare(ways, __doc__)
