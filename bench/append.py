"""How much of a bare INSERT's speed append_event keeps: python bench/append.py SUPERUSER_URL [--workers 1 8].

All write the same 1 KB message, autocommit, one statement a transaction, one session (or table) a worker, in turns in
the same run. Makes a database of its own on the server and drops it. Give it a server with its settings as in
production: with fsync off the statement itself is all that is left to compare.
"""

from __future__ import annotations

import argparse
import json
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo
from rich.console import Console
from rich.table import Table

from durable_pg import Durable, Identity, migrate
from durable_pg.types import Session

BODY = {"role": "model", "parts": [{"text": "x" * 960}]}
BARE = """
create table public.bare (
    tenant_id text, session_uid uuid, seq integer, content jsonb, recorded_at timestamptz default now(),
    primary key (tenant_id, session_uid, seq)
);
grant insert on public.bare to bench_app
"""


Write = Callable[[int], object]


@contextmanager
def bare_insert(url: str) -> Iterator[Write]:
    """Insert a row with a key and a content, and nothing else."""
    session = uuid.uuid4()
    query = "insert into public.bare (tenant_id, session_uid, seq, content) values ('acme', %s, %s, %s)"
    with psycopg.connect(url, autocommit=True) as app:
        yield lambda seq: app.execute(query, (session, seq, json.dumps(BODY)))


@contextmanager
def append_event(url: str) -> Iterator[Write]:
    """Append an event of a run that is executing, with an event_id, as a worker in any language does."""
    me = "me => durable.act_as('acme', 'user-7')"
    query = (
        f"select * from durable.append_event({me}, session_uid => %s, author => 'agent', content => %s,"
        " invocation_id => 'inv-1', event_id => %s)"
    ).encode()
    with opened(url) as (_, session), psycopg.connect(url, autocommit=True) as app:
        yield lambda seq: app.execute(query, (session.session_uid, json.dumps(BODY), f"evt-{seq}"))


@contextmanager
def client(url: str) -> Iterator[Write]:
    """The same by the client, on a pool of its own."""
    with opened(url) as (me, session):
        yield lambda seq: me.append_event(session, "agent", BODY, invocation_id="inv-1", event_id=f"evt-{seq}")


@contextmanager
def opened(url: str) -> Iterator[tuple[Identity, Session]]:
    """Open a session whose run executes."""
    with Durable.from_url(url) as durable:
        me = durable.act_as("acme", "user-7")
        session = me.open_session("bench")
        me.start_run(session, "inv-1")
        yield me, session


WAYS = {"bare INSERT": bare_insert, "append_event": append_event, "client": client}


def work(url: str, way: str, seconds: float) -> int:
    """Write for so long; return how many were written."""
    with WAYS[way](url) as write:
        done = 0
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            write(done + 1)
            done += 1
    return done


def rate(url: str, way: str, workers: int, seconds: float) -> float:
    """Rows a second over all workers."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        list(pool.map(work, [url] * workers, [way] * workers, [0.5] * workers))  # warm up: imports, caches
        return sum(pool.map(work, [url] * workers, [way] * workers, [seconds] * workers)) / seconds


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
                inside.execute(BARE)
            app_url = make_conninfo(arguments.url, user="bench_app", dbname=database)
            show(app_url, f"Postgres {version}", arguments.workers, arguments.seconds)
        finally:
            root.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(database)))


def show(url: str, title: str, worker_counts: list[int], seconds: float) -> None:
    """One row for each number of workers."""
    table = Table("workers", "bare INSERT /s", "append_event /s", "kept", "by the client /s", "kept", title=title)
    for workers in worker_counts:
        bare, append, client = (rate(url, way, workers, seconds) for way in WAYS)
        kept = [f"{append / bare:.2f}", f"{client / bare:.2f}"]
        table.add_row(str(workers), f"{bare:,.0f}", f"{append:,.0f}", kept[0], f"{client:,.0f}", kept[1])
    Console().print(table)


if __name__ == "__main__":
    main()
