"""Checkpoints of older programs are brought up to date on resume; what can't be understood is refused, not guessed."""

from collections.abc import Iterator
from typing import Any

import pytest

from durable_pg import CheckpointUpgrades, Durable, Identity, checkpoint_upgrade
from durable_pg.errors import ArgumentInvalid, CheckpointNewer, CheckpointUpgradeMissing
from durable_pg.types import Session
from tests.client.leases import the_run
from tests.support.rented import Rented, nothing_written


@pytest.fixture
def me(db: Rented) -> Iterator[Identity]:
    with Durable.from_url(db.url("app"), max_size=3) as durable:
        yield durable.act_as(db.tenant("T1"), "U1")


@pytest.fixture
def session(me: Identity) -> Session:
    return me.open_session("support", "s-1")


def program(*versions: int, version: int = 1) -> CheckpointUpgrades:
    """Return upgrades from each of these versions, which note that they were applied."""
    upgrades = CheckpointUpgrades(version)
    for known in versions:
        upgrades(from_version=known)(lambda state, known=known: {**state, "from": [*state.get("from", []), known]})
    return upgrades


def save(me: Identity, session: Session, state: Any, upgrades: CheckpointUpgrades) -> None:
    """Save a checkpoint as a program with these upgrades does, and be interrupted."""
    with pytest.raises(ZeroDivisionError), me.run(session, "inv-1", upgrades=upgrades) as run:
        run.checkpoint(1, state)
        raise ZeroDivisionError


def test_a_resumed_run_has_the_state_that_was_saved(me: Identity, session: Session) -> None:
    save(me, session, {"n": [1, None, "a\0b"]}, checkpoint_upgrade)
    with me.run(session, "inv-1") as run:
        assert (run.step, run.state, run.resumed) == (1, {"n": [1, None, "a\0b"]}, True)
        saved = me.load_checkpoint(run.outcome)
    assert saved is not None
    assert saved.schema_version == 1


def test_an_older_state_goes_through_every_upgrade_in_order(me: Identity, session: Session) -> None:
    save(me, session, {"n": 1}, program(version=2))
    with me.run(session, "inv-1", upgrades=program(3, 1, 2)) as run:
        assert run.state == {"n": 1, "from": [2, 3]}
        assert (run.checkpoint(2, run.state)).schema_version == 4


def test_a_newer_state_is_refused_and_the_run_given_back(db: Rented, me: Identity, session: Session) -> None:
    save(me, session, {"n": 1}, program(version=3))
    with pytest.raises(CheckpointNewer) as newer, me.run(session, "inv-1", upgrades=program(1)):
        pytest.fail("entered")
    assert (newer.value.schema_version, newer.value.known) == (3, 2)
    assert (the_run(db)["status"], the_run(db)["interrupted_with"]["type"]) == ("interrupted", "CheckpointNewer")
    with me.run(session, "inv-1", upgrades=program(version=3)) as run:
        assert run.state == {"n": 1}


def test_a_gap_in_the_upgrades_is_refused_before_any_is_applied(db: Rented, me: Identity, session: Session) -> None:
    save(me, session, {"n": 1}, program())
    applied: list[Any] = []
    upgrades = program(3)
    upgrades(from_version=1)(applied.append)
    with pytest.raises(CheckpointUpgradeMissing) as missing, me.run(session, "inv-1", upgrades=upgrades):
        pytest.fail("entered")
    assert (missing.value.schema_version, missing.value.from_version, applied) == (1, 2, [])
    assert "from_version=2" in missing.value.hint
    assert the_run(db)["status"] == "interrupted"


def test_an_upgrade_that_raises_gives_the_run_back(db: Rented, me: Identity, session: Session) -> None:
    save(me, session, {"n": 1}, program())
    upgrades = CheckpointUpgrades()
    upgrades(from_version=1)(lambda state: state["missing"])
    with pytest.raises(KeyError), me.run(session, "inv-1", upgrades=upgrades):
        pytest.fail("entered")
    assert (the_run(db)["status"], the_run(db)["interrupted_with"]["type"]) == ("interrupted", "KeyError")


def test_a_program_saves_nothing_that_it_could_not_read_back(db: Rented, me: Identity, session: Session) -> None:
    with me.run(session, "inv-1", upgrades=program(1)) as run:
        with nothing_written(db), pytest.raises(ArgumentInvalid, match="reads versions up to 2"):
            run.checkpoint(1, {}, schema_version=3)
        with nothing_written(db), pytest.raises(ArgumentInvalid):
            run.record_step(1, state={}, schema_version=3)
        assert (run.checkpoint(1, {}, schema_version=1)).schema_version == 1


def test_one_upgrade_leads_on_from_a_version() -> None:
    upgrades = program(1)

    def other(state: Any) -> Any:
        return state

    with pytest.raises(ValueError, match="upgrades from version 1 already"):
        upgrades(from_version=1)(other)
    upgrades(from_version=2)(other)
    upgrades(from_version=2)(other)  # a module that is loaded again
    assert upgrades.version == 3
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="from_version"):
            upgrades(from_version=wrong)
