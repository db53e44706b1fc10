"""D04, google/adk-python#453 and aws/bedrock-agentcore-sdk-python#63: events of one second came back shuffled."""

from datetime import datetime, timezone

import pytest

from tests.support.calls import append, events, open_session, said, tool_call, tool_response
from tests.support.rented import Rented

MOMENT = datetime.fromtimestamp(1700000000.0, tz=timezone.utc)
PAIRS = 10


def test_events_of_one_moment_are_read_in_the_order_they_were_appended_in_twenty_sessions(db: Rented) -> None:
    contents = [content for n in range(PAIRS) for content in (tool_call(f"t{n}"), tool_response(f"t{n}"))]
    with db.as_app() as app:
        for number in range(20):
            session = open_session(app, f"s{number}")
            for content in contents:
                append(app, session, "agent", content, invocation_id="inv-1", occurred_at=MOMENT)
            read = events(app, session)
            assert [event["content"] for event in read] == contents
            assert {event["occurred_at"] for event in read} == {MOMENT}
            assert events(app, session) == read
            assert events(app, session, latest=3) == read[-3:]


@pytest.mark.parametrize("newest_first", [True, False])
def test_times_never_decide_the_order(db: Rented, newest_first: bool) -> None:
    times = [MOMENT.replace(minute=minute) for minute in (20, 21, 22)]
    if newest_first:
        times.reverse()
    with db.as_app() as app:
        session = open_session(app)
        for number, occurred_at in enumerate(times):
            append(app, session, "agent", said(str(number)), occurred_at=occurred_at)
        assert [event["occurred_at"] for event in events(app, session)] == times
        assert [event["occurred_at"] for event in events(app, session, latest=1)] == times[-1:]
