"""How much of a bare INSERT's speed append_event keeps: python bench/append.py SUPERUSER_URL [--workers 1 8].

Both write the same 1 KB message, autocommit, one statement a transaction, one session (or table) a worker, in turns in
the same run. Makes a database of its own on the server and drops it. Give it a server with its settings as in
production: with fsync off the statement itself is all that is left to compare.
"""

from __future__ import annotations

import argparse
import json
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo
from rich.console import Console
from rich.table import Table

from durable_pg import migrate
from durable_pg.demo.recording import one_row

BODY = json.dumps({"role": "model", "parts": [{"text": "x" * 960}]})
BARE = """
create table public.bare (
    tenant_id text, session_uid uuid, seq integer, content jsonb, recorded_at timestamptz default now(),
    primary key (tenant_id, session_uid, seq)
);
grant insert on public.bare to bench_app
"""


def bare_insert(app: psycopg.Connection[Any]) -> Callable[[int], object]:
    """Insert a row with a key and a content, and nothing else."""
    session = uuid.uuid4()
    query = "insert into public.bare (tenant_id, session_uid, seq, content) values ('acme', %s, %s, %s)"
    return lambda seq: app.execute(query, (session, seq, BODY))


def append_event(app: psycopg.Connection[Any]) -> Callable[[int], object]:
    """Append an event of a run that is executing, with an event_id, as a worker does."""
    name = uuid.uuid4().hex
    me = "me => durable.act_as('acme', 'user-7')"
    session = one_row(
        app,
        f"select session_uid from durable.open_session({me}, app_name => 'bench', session_id => %(name)s)",
        {"name": name},
    )
    app.execute(f"select durable.start_run({me}, session_uid => %s, invocation_id => 'inv-1')".encode(), session)
    query = (
        f"select * from durable.append_event({me}, session_uid => %s, author => 'agent', content => %s,"
        " invocation_id => 'inv-1', event_id => %s)"
    ).encode()
    return lambda seq: app.execute(query, (session[0], BODY, f"evt-{seq}"))


WAYS: dict[str, Callable[[psycopg.Connection[Any]], Callable[[int], object]]] = {
    "bare INSERT": bare_insert,
    "append_event": append_event,
}


def work(url: str, way: str, seconds: float) -> int:
    """Write for so long; return how many were written."""
    with psycopg.connect(url, autocommit=True) as app:
        write = WAYS[way](app)
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
    table = Table("workers", "bare INSERT /s", "append_event /s", "kept", title=title)
    for workers in worker_counts:
        bare, append = (rate(url, way, workers, seconds) for way in WAYS)
        table.add_row(str(workers), f"{bare:,.0f}", f"{append:,.0f}", f"{append / bare:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
