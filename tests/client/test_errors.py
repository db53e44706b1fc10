"""One class for each SQLSTATE, which carries what the database said and what the call was about."""

import copy
import pickle
import re
from datetime import datetime, timezone
from pathlib import Path
from uuid import UUID

import pytest

from durable_pg import Identity, errors
from durable_pg.types import BegunEffect, RunOutcome
from tests.support.calls import said, tool_call

REGISTRY = [
    line.split(maxsplit=3)
    for line in (Path(__file__).parents[2] / "sql" / "errcodes.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]
UID = UUID(int=7)
RUN = RunOutcome(UID, 1, "succeeded", "settled", ["refund"], {"text": "done"}, None, None)
NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
EFFECT = BegunEffect(
    UID, UID, "dpg_1", "in_flight", "begun", 1, 0, "refund", {"order": 7}, True, None, None, None, 0, None, NOW
)
BASES = {"22": errors.BadInput, "23": errors.Conflict, "42": errors.AccessRefused, "55": errors.WrongState}


def test_every_code_of_the_registry_has_a_class_and_no_other_has_one() -> None:
    assert list(errors.BY_SQLSTATE) == [code for code, *_ in REGISTRY]


@pytest.mark.parametrize(("code", "name", "rule", "meaning"), REGISTRY)
def test_a_class_says_what_the_registry_says(code: str, name: str, rule: str, meaning: str) -> None:
    kind = errors.BY_SQLSTATE[code]
    assert (kind.sqlstate, kind.name, kind.rule) == (code, name, "" if rule == "-" else rule)
    assert re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower() == name
    assert kind.__doc__ == meaning
    assert issubclass(kind, BASES[code[:2]])
    assert getattr(errors, kind.__name__) is kind


def test_a_refusal_carries_what_the_database_said_and_the_names_of_the_call(me: Identity) -> None:
    session = me.open_session("support", "s-1")
    me.append_event(session, "user", said("refund order 7"), invocation_id="inv-1")
    with pytest.raises(errors.OpeningMessageDiffers) as caught:
        me.append_event(session, "user", said("secret words"), invocation_id="inv-1", metadata={"k": "secret words"})
    error = caught.value
    assert (error.sqlstate, error.call, error.schema, error.table) == ("23W06", "append_event", "durable", "events")
    assert error.constraint == "events_one_opening_message"
    assert error.names == {
        "tenant_id": me.tenant_id,
        "user_id": "U1",
        "session_uid": str(session.session_uid),
        "invocation_id": "inv-1",
    }
    assert "inv-1" in error.message
    assert error.detail
    assert error.hint
    assert error.may_have_taken_effect is False
    assert str(error).splitlines() == [f"{error.message} (23W06)", f"Detail: {error.detail}", f"Hint: {error.hint}"]
    assert "secret words" not in f"{error}{error!r}{error.__cause__}"


def test_what_is_refused_before_it_is_sent_names_the_call_too(me: Identity) -> None:
    session = me.open_session("support", "s-1")
    with pytest.raises(errors.JsonNotStorable) as caught:
        me.append_event(session, "agent", {"parts": [{"text": object()}]})
    error = caught.value
    assert (error.sqlstate, error.call, error.column) == ("22W02", "append_event", "content")
    assert "content.parts[0].text" in error.message
    assert error.names["tenant_id"] == me.tenant_id


def test_a_class_of_refusals_is_caught_by_its_base(me: Identity) -> None:
    session = me.open_session("support", "s-1")
    run = me.start_run(session, "inv-1")
    me.append_event(session, "agent", tool_call("refund"), invocation_id="inv-1", attempt=run.attempt)
    with pytest.raises(errors.Conflict):
        me.settle_run(run, "succeeded", tools_executed=[])
    with pytest.raises(errors.AccessRefused):
        me.read_events("00000000-0000-0000-0000-000000000000")
    me.settle_run(run, "succeeded")
    with pytest.raises(errors.WrongState):
        me.append_event(session, "agent", tool_call("refund"), invocation_id="inv-1")
    with pytest.raises(errors.BadInput):
        me.open_session(" ")


ERRORS = [
    errors.EventDiffers("m", detail="d", hint="h", table="t", call="append_event", names={"event_id": "e"}),
    errors.ConnectionLost("gone", may_have_taken_effect=True),
    errors.UnexpectedError("m", sqlstate="XX000"),
    errors.RunSettled("m", run=RUN),
    errors.RunBusy("m", run=RUN, hint="h"),
    errors.EffectFailed({"code": 7}, hint="h"),
    errors.EffectFailed("declined"),
    errors.EffectTimedOut("no answer within 1 s"),
    errors.EffectInFlight("m", effect=EFFECT),
    errors.EffectUnverified("m", effect=EFFECT, names={"tool": "refund"}),
    errors.EffectDiverged("m", effect=EFFECT),
    errors.CheckpointNewer("m", schema_version=3, known=2),
    errors.CheckpointUpgradeMissing("m", schema_version=1, from_version=2),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_survives_the_way_to_another_process(error: errors.DurableError) -> None:
    error.add_note("kept or not, no reason to fail") if hasattr(error, "add_note") else None
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301  # our own bytes
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        facts = {key: value for key, value in error.__dict__.items() if key != "__notes__"}
        assert {key: value for key, value in twin.__dict__.items() if key != "__notes__"} == facts


def test_an_error_says_so_when_nobody_knows_whether_the_call_took_effect() -> None:
    assert "may have taken effect" in str(errors.ConnectionLost("gone", may_have_taken_effect=True))
    assert "may have taken effect" not in str(errors.ConnectionLost("gone"))
