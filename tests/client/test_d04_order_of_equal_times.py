"""D04, google/adk-python#453 and aws/bedrock-agentcore-sdk-python#63: events of one second came back shuffled."""

from datetime import datetime, timedelta, timezone

import pytest

from durable_pg import Identity
from tests.support.calls import tool_call, tool_response

MOMENT = datetime.fromtimestamp(1700000000.0, tz=timezone.utc)
CONTENTS = [content for number in range(10) for content in (tool_call(f"t{number}"), tool_response(f"t{number}"))]


def test_events_of_one_moment_are_read_in_the_order_they_were_appended_in(me: Identity) -> None:
    for number in range(20):
        session = me.open_session("support", f"s{number}")
        for content in CONTENTS:
            me.append_event(session, "agent", content, invocation_id=f"inv-{number}", occurred_at=MOMENT)
        events = me.read_events(session)
        assert [event.content for event in events] == CONTENTS
        assert {event.occurred_at for event in events} == {MOMENT}
        assert me.read_events(session) == events
        assert me.read_events(session, latest=3) == events[-3:]


@pytest.mark.parametrize("step", [timedelta(minutes=1), timedelta(minutes=-1)])
def test_times_never_decide_the_order(me: Identity, step: timedelta) -> None:
    session = me.open_session("support", "s1")
    for number in range(3):
        me.append_event(session, "agent", number, occurred_at=MOMENT + number * step)
    assert [event.content for event in me.read_events(session)] == [0, 1, 2]
    assert [event.content for event in me.read_events(session, latest=1)] == [2]
