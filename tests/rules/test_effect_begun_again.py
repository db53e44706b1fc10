"""Rule effect-once: an effect of which nobody knows is begun again only while its provider still knows the key."""

from typing import Any

import pytest

from tests.rules.rows import effect_row, insert
from tests.rules.test_effect_once import REFUND, begin
from tests.rules.world import World, unchanged
from tests.support.calls import call
from tests.support.harness import Database, refused


def test_what_nobody_knows_is_not_begun_again(db: Database) -> None:
    mine = World.of(db).mine
    with db.as_app() as app:
        effect = begin(app, mine.running, step=2, lease="1 hour")["effect_uid"]
        assert begin(app, mine.running, step=2)["outcome"] == "in_flight"
    with db.superuser() as root:
        root.execute("update durable.effects set lease_expires_at = now() where effect_uid = %s", (effect,))
    with unchanged(db), db.as_app() as app:
        assert begin(app, mine.running, step=2)["outcome"] == "unverified"


@pytest.mark.parametrize(
    ("since", "changes", "outcome"),
    [
        ("30 minutes", {}, "execute"),
        ("61 minutes", {}, "unverified"),
        # Its author has taken the word back, or said less since.
        ("30 minutes", {"provider_dedupes_for": None}, "unverified"),
        ("30 minutes", {"provider_dedupes_for": "29 minutes"}, "unverified"),
        # The word at the first begin counts, and only with the same arguments.
        ("61 minutes", {"provider_dedupes_for": "1 year"}, "unverified"),
        ("30 minutes", {"args": '{"cents": 501}', "args_may_differ": True}, "unverified"),
    ],
)
def test_an_unverified_effect_is_begun_again_while_the_provider_knows_its_key(
    db: Database, since: str, changes: dict[str, Any], outcome: str
) -> None:
    mine = World.of(db).mine
    row = effect_row(mine, scope="user", intent="refund-7", provider_dedupes_for="1 hour")
    with db.superuser() as root:
        root.execute("select durable.act_as('T1', 'U1')")
        digest = root.execute("select durable.args_digest(%s) as d", (REFUND["args"],)).fetchone()
        now = root.execute("select now() - %s::interval as begun", (since,)).fetchone()
        assert digest is not None
        assert now is not None
        times = dict.fromkeys(("first_begun_at", "begun_at", "lease_expires_at"), now["begun"])
        insert(root, "effects", {**row, **times, "args_digest": digest["d"]})
    with db.as_app() as app:
        asked = {"provider_dedupes_for": "1 hour", **changes}
        assert begin(app, mine.running, **asked)["outcome"] == outcome


@pytest.mark.parametrize("begun_at", ["now()", "first_begun_at + provider_dedupes_for", "'infinity'"])
def test_the_engine_begins_nothing_again_once_the_provider_has_forgotten_the_key(db: Database, begun_at: str) -> None:
    mine = World.of(db).mine
    row = effect_row(mine, provider_dedupes_for="1 hour")
    with db.as_engine() as engine:
        insert(engine, "effects", row)
    change = f"update durable.effects set status = 'begun', begun_at = {begun_at} where step = 9"
    constraint = "effects_begun_again_while_provider_dedupes"
    with unchanged(db), refused("23514", constraint=constraint), db.as_engine() as engine:
        engine.execute(change.encode())


def test_the_engine_begins_nothing_again_under_the_time_of_the_first_begin(db: Database) -> None:
    mine = World.of(db).mine
    with db.as_app() as app:
        effect = begin(app, mine.running)["effect_uid"]
        call(app, "finish_effect", effect_uid=effect, attempt=1, status="unverified")
    change = "update durable.effects set status = 'begun', lease_expires_at = now() + interval '1 hour'"
    with unchanged(db), refused("23W04"), db.as_engine() as engine:
        engine.execute(f"{change} where effect_uid = '{effect}'".encode())
