"""make revision: what changed in sql/ is frozen into the next revision, and nothing that was frozen changes."""

import subprocess
from pathlib import Path

import pytest

from durable_pg import migrate
from durable_pg.migrate import catalog
from tests.migrations import support
from tests.support.harness import Database, value
from tools.drop_list import drops, made_by
from tools.frozen_tree import Tree

IDENTITY = "sql/ground/identity.sql"


def change(package: Path, path: str, old: str, new: str) -> str:
    """Replace a text in a file; return what the file was."""
    before = (package / path).read_text()
    assert old in before
    (package / path).write_text(before.replace(old, new, 1))
    return before


def frozen(package: Path, *arguments: str) -> str:
    done = support.freeze(package, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def up(package: Path, name: str) -> str:
    return (package / "migrations" / "versions" / name).read_text()


def test_a_copy_is_as_frozen(package: Path) -> None:
    frozen(package, "--check")
    done = support.freeze(package, "nothing_new")
    assert done.returncode != 0
    assert "nothing to freeze" in done.stderr


def test_a_changed_and_a_new_function_go_up_and_down(package: Path, db: Database) -> None:
    change(package, IDENTITY, "declare", "declare\n    -- Changed.")
    new = (
        "-- A new one.\nset local role durable_engine;\n\n"
        "create or replace function durable.brand_new()\nreturns integer\nlanguage sql stable\nreturn 1;\n"
    )
    (package / "sql" / "brand_new.sql").write_text(new)
    change(package, "sql/manifest.txt", "ground/identity.sql\n", "ground/identity.sql\nbrand_new.sql\n")
    assert support.freeze(package, "--check").returncode == 1
    frozen(package, "add_brand_new")
    frozen(package, "--check")

    paths = [line for line in up(package, "0002_add_brand_new.sql").splitlines() if line.startswith("--! ")]
    assert paths == ["--! sql/schema_open.sql", f"--! {IDENTITY}", "--! sql/brand_new.sql", "--! sql/schema_seal.sql"]

    before = catalog.read(db.url("mig"))
    done = support.durable_pg("upgrade", "--url", db.url("mig"), root=package)
    assert done.returncode == 0, done.stderr
    lines = {str(difference) for difference in catalog.compare(before, catalog.read(db.url("mig")))}
    assert "extra function brand_new()" in lines
    assert len(lines) == 2, lines

    done = support.durable_pg("downgrade", "--to", "0001", "--url", db.url("mig"), root=package)
    assert done.returncode == 0, done.stderr
    assert catalog.read(db.url("mig")) == before


def test_a_changed_table_needs_a_hand_and_says_so_until_it_is_lent(package: Path, db: Database) -> None:
    """D13: the backfill in it runs as the forced owner, and is either whole or refused."""
    for tenant in ("T1", "T2"):
        with db.as_app(tenant) as app:
            app.execute("select durable.open_session(app_name => 'support')")
    change(
        package,
        "sql/tables/user_states.sql",
        "create table durable.user_states (",
        "create table durable.user_states (\n    note text,",
    )
    assert "by hand: by hand: sql/tables/user_states.sql" in frozen(package, "add_note")

    done = support.durable_pg("upgrade", "--url", db.url("mig"), root=package)
    assert done.returncode == 1
    assert "Write what leads to sql/tables/user_states.sql" in done.stderr
    assert migrate.current(db.url("mig")) == "0001"

    by_hand(
        package, "alter table durable.user_states add column note text;\nupdate durable.user_states set note = 'x';\n"
    )
    done = support.durable_pg("upgrade", "--url", db.url("mig"), root=package)
    assert done.returncode == 1, "a backfill under FORCE must not succeed on no rows"
    assert "42501" in done.stderr
    assert migrate.current(db.url("mig")) == "0001"

    by_hand(
        package,
        "alter table durable.user_states add column note text;\n"
        "alter table durable.user_states no force row level security;\n"
        "update durable.user_states set note = 'x';\n"
        "alter table durable.user_states force row level security;\n",
    )
    frozen(package, "--check")
    done = support.durable_pg("upgrade", "--url", db.url("mig"), root=package)
    assert done.returncode == 0, done.stderr
    with db.superuser() as root:
        assert value(root, "select count(*) from durable.user_states where note = 'x'") == 2
        assert value(root, "select relforcerowsecurity from pg_class where oid = 'durable.user_states'::regclass")


def by_hand(package: Path, statements: str) -> None:
    path = package / "migrations" / "versions" / "0002_add_note.sql"
    text = path.read_text()
    start = text.index("\n", text.index("--! by hand")) + 1
    end = text.index("--! sql/schema_seal.sql")
    path.write_text(f"{text[:start]}set local role durable_owner;\n{statements}{text[end:]}")
    frozen(package, "--seal")


def test_changed_parameters_need_a_hand(package: Path) -> None:
    change(
        package,
        IDENTITY,
        "act_as(tenant_id text, user_id text)",
        "act_as(tenant_id text, user_id text, more text default null)",
    )
    assert f"by hand: by hand: {IDENTITY}" in frozen(package, "more_parameters")
    assert "parameters or result of durable.act_as changed" in up(package, "0002_more_parameters.sql")


def test_a_function_that_leaves_its_file_needs_a_hand_and_only_the_drop_is_missing(package: Path, db: Database) -> None:
    """The rest of the file is frozen below the place where the DROP is to stand."""
    added = "create or replace function durable.helper() returns integer language sql stable return 1;\n"
    with_helper = (package / IDENTITY).read_text()
    (package / IDENTITY).write_text(f"{with_helper}\n{added}")
    frozen(package, "add_helper")
    assert support.durable_pg("upgrade", "--url", db.url("mig"), root=package).returncode == 0

    change(package, IDENTITY, f"\n{added}", "")
    assert f"by hand: by hand: {IDENTITY}" in frozen(package, "no_helper")
    path = package / "migrations" / "versions" / "0003_no_helper.sql"
    text = path.read_text()
    assert "durable.helper would stay" in text
    stub = text[text.index("do $by_hand$") : text.index("$by_hand$;\n") + len("$by_hand$;\n")]
    path.write_text(text.replace(stub, "set local role durable_owner;\ndrop function durable.helper;\n"))
    frozen(package, "--seal")
    done = support.durable_pg("upgrade", "--url", db.url("mig"), root=package)
    assert done.returncode == 0, done.stderr
    assert catalog.check(db.url("mig")) == []


def test_a_removed_file_needs_a_hand(package: Path) -> None:
    change(package, "sql/manifest.txt", "ground/identity.sql\n", "")
    frozen(package, "no_act_as")
    assert f"--! dropped: {IDENTITY}" in up(package, "0002_no_act_as.sql")
    assert Tree(package).differences() == {}


def test_an_edited_frozen_file_breaks_the_chain(package: Path) -> None:
    change(package, "migrations/versions/0001_baseline.sql", "--! sql/schema.sql", "-- Edited.\n--! sql/schema.sql")
    done = support.freeze(package, "--check")
    assert done.returncode == 1
    assert "0001_baseline.sql is not what CHAIN recorded" in done.stdout + done.stderr
    change(package, IDENTITY, "declare", "declare\n    -- Changed.")
    assert "CHAIN" in support.freeze(package, "on_top").stderr


def test_the_baseline_is_rebuilt_only_before_others_and_the_first_release(package: Path) -> None:
    change(package, IDENTITY, "declare", "declare\n    -- Changed.")
    frozen(package, "--baseline")
    frozen(package, "--check")

    git = ["git", "-C", str(package), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"], ["tag", "v0.1.0"]):
        subprocess.run([*git, *command], check=True)
    assert "v0.1.0 is tagged" in support.freeze(package, "--baseline").stderr

    change(package, IDENTITY, "declare", "declare\n    -- Again.")
    frozen(package, "again")
    assert "0002_again builds on it" in support.freeze(package, "--baseline").stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("create table durable.t (\n    n integer\n);\n", "drop table durable.t;\n"),
        (
            "create or replace function durable.f(a text, b numeric(3, 1) default 1)\nas $$ create table x $$;\n",
            "drop function durable.f;\n",
        ),
        (
            "create function durable.f(a text);\ncreate table durable.t (n text);\ncreate type durable.y as (n text);",
            "drop type durable.y;\ndrop table durable.t;\ndrop function durable.f;\n",
        ),
        ("create table if not exists durable.alembic_version (n text);\ncreate index i on durable.t (n);\n", ""),
    ],
)
def test_what_a_file_makes_is_dropped_last_first(text: str, expected: str) -> None:
    assert drops([text]) == expected


def test_two_functions_of_one_name_stop_the_freezing() -> None:
    with pytest.raises(SystemExit, match=r"made twice: durable\.f"):
        drops(["create function durable.f(a text);\n", "create function durable.f(a text, b text = '');\n"])


def test_what_it_does_not_know_how_to_drop_stops_the_freezing() -> None:
    with pytest.raises(SystemExit, match="event"):
        made_by("create event trigger durable.x on ddl_command_end execute function f();\n")
