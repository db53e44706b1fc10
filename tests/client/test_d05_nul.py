r"""D05, aegra/aegra#227: a tool returned \u0000, the insert was refused and the run ended in error."""

from typing import Any

import pytest

from durable_pg import Durable, Identity
from durable_pg.errors import BadInput, IdentifierInvalid
from tests.support.calls import said
from tests.support.rented import Rented, nothing_written

RESPONSE = {"out": "a\0b", "nested": ["\0"], "\0key": 1, r"\u0000": "\\\0"}
CONTENTS: list[Any] = [
    {"role": "user", "parts": [{"function_response": {"id": "c1", "name": "search", "response": RESPONSE}}]},
    said("x\0y"),
    "\0",
]


def test_nul_in_content_and_metadata_reads_back_equal_and_the_next_event_goes_in(
    me: Identity,
) -> None:
    session = me.open_session("support", "s1")
    for content in (*CONTENTS, said("clean")):
        me.append_event(session, "agent", content, metadata=RESPONSE)
    events = me.read_events(session)
    assert [event.content for event in events] == [*CONTENTS, said("clean")]
    assert [event.metadata for event in events] == [RESPONSE] * 4
    assert (me.verify_session(session)).intact


def test_nul_in_state_reads_back_equal(me: Identity) -> None:
    session = me.open_session("support", "s1", {"first\0": ["\0"], "user:a\0": "b\0"})
    me.append_event(session, "agent", state_delta={"k\0": "v", "app:\0": "\0"})
    assert (me.get_state(session=session)).state == {
        "first\0": ["\0"],
        "user:a\0": "b\0",
        "k\0": "v",
        "app:\0": "\0",
    }


def test_nul_in_a_runs_input_result_and_error_reads_back_equal(me: Identity) -> None:
    session = me.open_session("support", "s1")
    run = me.start_run(session, "inv-1", input=RESPONSE)
    settled = me.settle_run(run, "failed", result=RESPONSE, error={"\0": "\0"})
    (listed,) = me.list_runs(session)
    assert (settled.result, settled.error) == (RESPONSE, {"\0": "\0"})
    assert (listed.input, listed.result, listed.error) == (RESPONSE, RESPONSE, {"\0": "\0"})


@pytest.mark.parametrize("field", ["author", "invocation_id", "event_id"])
def test_no_name_can_carry_nul_and_the_session_goes_on(db: Rented, me: Identity, field: str) -> None:
    session = me.open_session("support", "s1")
    event: dict[str, Any] = {"author": "agent", "content": said("x"), field: "s\0"}
    with nothing_written(db), pytest.raises(IdentifierInvalid, match=f"{field} contains a NUL character") as refusal:
        me.append_event(session, **event)
    assert (refusal.value.column, refusal.value.detail) == (field, f"field {field}, character 2 of 2")
    assert (me.append_event(session, "agent", said("clean"))).seq == 1


def test_no_session_no_app_and_no_tool_is_called_by_a_name_with_nul(db: Rented, me: Identity) -> None:
    session = me.open_session("support", "s1")
    with nothing_written(db):
        with pytest.raises(IdentifierInvalid, match="session_id contains a NUL character"):
            me.open_session("support", "s\0")
        with pytest.raises(IdentifierInvalid, match="app_name contains a NUL character"):
            me.open_session("\0", "s1")
        with pytest.raises(BadInput, match=r"extra_tool_calls\[1\] contains a NUL character"):
            me.append_event(session, "agent", extra_tool_calls=["mail", "\0"])
        with pytest.raises(BadInput, match="reason contains a NUL character"):
            me.close_session(session, "\0")


@pytest.mark.parametrize("person", [("T1\0", "U1"), ("T1", "\0U1")])
def test_nobody_is_called_by_a_name_with_nul(durable: Durable, person: tuple[str, str]) -> None:
    with pytest.raises(IdentifierInvalid, match="contains a NUL character"):
        durable.act_as(*person)
