"""What the benchmarks share: a database of their own, a session whose run executes, workers, and one table.

All ways write the same 1 KB message, autocommit, one statement a transaction, one session (or table) a worker, in turns
in the same run. Give them a server with its settings as in production: with fsync off the statement itself is all that
is left to compare.
"""

from __future__ import annotations

import argparse
import json
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from multiprocessing import get_context

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo
from rich.console import Console
from rich.table import Table

from durable_pg import Durable, Identity, migrate
from durable_pg.types import RunOutcome, Session

BODY = {"role": "model", "parts": [{"text": "x" * 960}]}
ME = "me => durable.act_as('acme', 'user-7')"
_BARE = """
create table public.bare (
    tenant_id text, session_uid uuid, seq integer, content jsonb, recorded_at timestamptz default now(),
    primary key (tenant_id, session_uid, seq)
);
grant insert on public.bare to bench_app
"""

Write = Callable[[int], object]
Way = Callable[[str], AbstractContextManager[Write]]


@contextmanager
def bare_inserts(url: str, rows: int = 1) -> Iterator[Write]:
    """Insert so many rows with a key and a content, and nothing else, each in a transaction of its own."""
    session = uuid.uuid4()
    query = "insert into public.bare (tenant_id, session_uid, seq, content) values ('acme', %s, %s, %s)"
    with psycopg.connect(url, autocommit=True) as app:

        def write(seq: int) -> None:
            for row in range(rows):
                app.execute(query, (session, rows * seq + row, json.dumps(BODY)))

        yield write


@contextmanager
def opened(url: str) -> Iterator[tuple[Identity, Session, RunOutcome]]:
    """Open a session whose run executes."""
    with Durable.from_url(url) as durable:
        me = durable.act_as("acme", "user-7")
        session = me.open_session("bench")
        yield me, session, me.start_run(session, "inv-1", lease=timedelta(hours=1))


def work(url: str, way: Way, seconds: float) -> int:
    """Write for so long; return how many were written."""
    with way(url) as write:
        done = 0
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            write(done + 1)
            done += 1
    return done


def rate(url: str, way: Way, workers: int, seconds: float) -> float:
    """How many a second over all workers."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        list(pool.map(work, [url] * workers, [way] * workers, [0.5] * workers))  # warm up: imports, caches
        return sum(pool.map(work, [url] * workers, [way] * workers, [seconds] * workers)) / seconds


def compare(ways: dict[str, Way], what: str | None) -> None:
    """Measure the ways and print one table: each beside the part that it keeps of the first one's speed."""
    parser = argparse.ArgumentParser(description=what, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="of a superuser, on a server to throw away")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--seconds", type=float, default=5.0)
    arguments = parser.parse_args()
    database = f"durable_bench_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(arguments.url, autocommit=True) as root:
        version = root.info.parameter_status("server_version")
        present = {row[0] for row in root.execute("select rolname from pg_roles")}
        for login in {"bench_mig", "bench_app"} - present:
            root.execute(sql.SQL("create role {} login createrole").format(sql.Identifier(login)))
        root.execute("alter role bench_app nocreaterole")
        root.execute(sql.SQL("create database {} owner bench_mig").format(sql.Identifier(database)))
        try:
            if "durable_owner" in present:
                root.execute("grant durable_owner, durable_engine, durable_steward, durable_janitor to bench_mig")
                root.execute("grant durable_app to bench_app")
            migrate.upgrade(make_conninfo(arguments.url, user="bench_mig", dbname=database))
            root.execute("grant durable_app to bench_app")
            with psycopg.connect(make_conninfo(arguments.url, dbname=database), autocommit=True) as inside:
                inside.execute(_BARE)
            app_url = make_conninfo(arguments.url, user="bench_app", dbname=database)
            _show(app_url, ways, f"Postgres {version}", arguments.workers, arguments.seconds)
        finally:
            root.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(database)))


def _show(url: str, ways: dict[str, Way], title: str, worker_counts: list[int], seconds: float) -> None:
    first, *others = ways
    table = Table("workers", f"{first} /s", title=title)
    for name in others:
        table.add_column(f"{name} /s")
        table.add_column("kept")
    for workers in worker_counts:
        bare, *rates = (rate(url, way, workers, seconds) for way in ways.values())
        cells = [text for found in rates for text in (f"{found:,.0f}", f"{found / bare:.2f}")]
        table.add_row(str(workers), f"{bare:,.0f}", *cells)
    Console().print(table)
