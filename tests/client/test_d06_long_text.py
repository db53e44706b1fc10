"""D06, google/adk-python#4993, #2821 and #3351: a long error text overflowed a varchar and the turn was lost."""

from typing import Any

import pytest

from durable_pg import Durable, Identity
from durable_pg.errors import IdentifierInvalid
from tests.support.calls import call
from tests.support.harness import refused
from tests.support.rented import Rented, nothing_written

FIRE = "\N{FIRE}"


@pytest.mark.parametrize("length", [255, 256, 1024, 1025, 1_000_000])
def test_an_error_text_of_any_length_comes_back_whole(me: Identity, length: int) -> None:
    error = {"error_message": FIRE * (length - 1) + "."}
    session = me.open_session("support", "s1")
    run = me.start_run(session, "inv-1", input=error)
    me.append_event(session, "agent", error, metadata=error, state_delta={"kept": True})
    settled = me.settle_run(run, "failed", error=error)
    (event,) = me.read_events(session)
    assert (event.content, event.metadata, settled.error) == (error, error, error)
    assert [listed.input for listed in me.list_runs(session)] == [error]
    assert (me.get_state(session=session)).state == {"kept": True}


@pytest.mark.parametrize("length", [128, 129, 256, 257, 300, 512])
def test_names_up_to_512_characters_come_back_whole(db: Rented, durable: Durable, length: int) -> None:
    name = "x" * (length - 1) + FIRE
    me = durable.act_as(db.tenant("T1"), name)
    session = me.open_session(name, name)
    run = me.start_run(session, name, trigger=name)
    me.append_event(session, name, invocation_id=name, event_id=name, attempt=run.attempt)
    (event,) = me.read_events(session)
    (listed,) = me.list_runs()
    assert (session.app_name, session.user_id, session.session_id) == (name, name, name)
    assert (event.author, event.invocation_id, event.event_id) == (name, name, name)
    assert (listed.user_id, listed.invocation_id, listed.trigger) == (name, name, name)


# By field: the function, and a call of it that could do but for the name.
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "app_name": ("open_session", {"session_id": "s2"}),
    "session_id": ("open_session", {"app_name": "support"}),
    "author": ("append_event", {}),
    "invocation_id": ("start_run", {}),
    "event_id": ("append_event", {"author": "agent"}),
    "trigger": ("start_run", {"invocation_id": "inv-1"}),
}
UNFIT = {"too long": FIRE * 513, "much too long": "x" * 100_000, "blank": " \t", "padded": " x"}


@pytest.mark.parametrize("unfit", UNFIT)
@pytest.mark.parametrize("field", CALLS)
def test_an_unfit_name_is_refused_by_the_client_in_the_words_of_plain_sql(
    db: Rented, me: Identity, field: str, unfit: str
) -> None:
    function, others = CALLS[field]
    session = me.open_session("support", "s1")
    with nothing_written(db), pytest.raises(IdentifierInvalid) as refusal:
        on_session = () if function == "open_session" else (session,)
        getattr(me, function)(*on_session, **{**others, field: UNFIT[unfit]})
    on_uid = {} if function == "open_session" else {"session_uid": session.session_uid}
    with nothing_written(db), refused("22W01") as in_sql, db.as_app() as app:
        call(app, function, **on_uid, **{**others, field: UNFIT[unfit]})
    told = refusal.value
    assert (told.sqlstate, told.column, told.call) == ("22W01", field, function)
    assert told.detail == f"field {field}, limit 512 characters, length {len(UNFIT[unfit])}"
    assert (told.message, told.detail, told.hint) == (
        *(in_sql.diag.message_primary, in_sql.diag.message_detail),
        in_sql.diag.message_hint,
    )


@pytest.mark.parametrize("field", ["tenant_id", "user_id"])
@pytest.mark.parametrize("length", [0, 513])
def test_an_unfit_tenant_or_user_is_refused_by_the_first_call(
    db: Rented, durable: Durable, field: str, length: int
) -> None:
    me = durable.act_as(**{"tenant_id": db.tenant("T1"), "user_id": "U1", field: FIRE * length})
    with nothing_written(db), pytest.raises(IdentifierInvalid) as refusal:
        me.open_session("support", "s1")
    assert refusal.value.detail == f"field {field}, limit 512 characters, length {length}"


def test_an_empty_session_id_is_refused(db: Rented, me: Identity) -> None:
    with nothing_written(db), pytest.raises(IdentifierInvalid, match="session_id is empty") as refusal:
        me.open_session("support", "")
    assert refusal.value.detail == "field session_id, limit 512 characters, length 0"
