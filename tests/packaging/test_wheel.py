"""The built wheel carries all that migrating needs: it is installed elsewhere and migrates from there."""

import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from durable_pg.migrate import catalog
from tests.support.cli import ROOT, environment
from tests.support.harness import Database

pytest.importorskip("hatchling")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("dist")
    code = "import hatchling.build, sys; print(hatchling.build.build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(target)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return target / done.stdout.strip().splitlines()[-1]


def test_it_holds_sql_migrations_and_the_expected_catalog(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        "durable_pg/py.typed",
        "durable_pg/migrate/catalog/catalog.sql",
        "durable_pg/migrate/catalog/expected_catalog.json",
        "durable_pg/sql/roles.sql",
        "durable_pg/sql/manifest.txt",
        "durable_pg/migrations/env.py",
        "durable_pg/migrations/CHAIN",
        "durable_pg/migrations/versions/0001_baseline.sql",
        "durable_pg/migrations/versions/0001_baseline.down.sql",
    }
    assert wanted <= names, wanted - names
    assert not [name for name in names if "__pycache__" in name or name.startswith(("tests/", "sql/", "migrations/"))]


def test_it_holds_nothing_that_only_developers_run(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if name.startswith(("tools/", "bench/", "docs/")) or name.endswith(".mako")]
    tools = {path.name for path in (ROOT / "tools").glob("*.py")}
    assert "freeze.py" in tools
    assert not [name for name in names if Path(name).name in tools]
    migrations = {name for name in names if name.startswith("durable_pg/migrations/")}
    beside = {name for name in migrations if not name.startswith("durable_pg/migrations/versions/")}
    assert beside == {"durable_pg/migrations/env.py", "durable_pg/migrations/CHAIN"}
    endings = {name[name.index(".") :] for name in (path.rpartition("/")[2] for path in migrations - beside)}
    assert endings == {".py", ".sql", ".down.sql"}


def test_the_source_archive_holds_what_developers_run(tmp_path: Path) -> None:
    code = "import hatchling.build, sys; print(hatchling.build.build_sdist(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    with tarfile.open(tmp_path / done.stdout.strip().splitlines()[-1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    here = {str(path.relative_to(ROOT)) for folder in ("tools", "sql") for path in (ROOT / folder).rglob("*.*")}
    wanted = {name for name in here if "__pycache__" not in name} | {"migrations/CHAIN", "Makefile", "CONTRIBUTING.md"}
    assert wanted <= names, wanted - names


def test_installed_from_it_the_command_migrates_and_checks(
    wheel: Path, empty_database: Database, tmp_path: Path
) -> None:
    home = tmp_path / "venv"
    venv.create(home, with_pip=False)
    site = next(home.glob("lib/python*/site-packages"))
    zipfile.ZipFile(wheel).extractall(site)  # noqa: S202  # made by this test, and no tar file
    # Its dependencies are those of this interpreter; the package itself must come from the wheel.
    (site / "dependencies.pth").write_text("\n".join(path for path in sys.path if path.endswith("-packages")))
    kept = {name: text for name, text in environment().items() if name != "PYTHONPATH"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(home / "bin" / "python"), "-m", "durable_pg", *arguments, "--url", empty_database.url("mig")]
        return subprocess.run(command, cwd=tmp_path, env=kept, capture_output=True, text=True, check=False)

    for arguments in (["upgrade"], ["check"], ["downgrade", "--to", "base"], ["upgrade"]):
        done = run(*arguments)
        assert (done.returncode, done.stderr) == (0, ""), (arguments, done.stdout)
    assert catalog.check(empty_database.url("mig")) == []

    place = subprocess.run(
        [str(home / "bin" / "python"), "-c", "from durable_pg.migrate import paths; print(paths.sql_dir())"],
        cwd=tmp_path,
        env=kept,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert place.strip() == str(site / "durable_pg" / "sql")
