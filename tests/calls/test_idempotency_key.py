"""What a provider is given to know a repeat by."""

from typing import Any
from uuid import UUID

import pytest

from tests.support.calls import begin, finish, open_session, start, take_over
from tests.support.rented import Rented

# Each word has a letter that no hex digit is.
SECRETS = ("tenant-acme", "zoe@example.org", "refund-order-zoe", "support-desk")


def key_of(db: Rented, tenant: str = "T1", user: str = "U1", app_name: str = "support", **more: Any) -> str:
    """Begin an effect in a new session and take it back; return its key."""
    with db.as_app(tenant, user) as app:
        found = begin(app, start(app, open_session(app, "of its own", app_name=app_name)), **more)["idempotency_key"]
        app.rollback()
    assert isinstance(found, str)
    return found


@pytest.mark.parametrize("key", [{}, {"intent": "i"}, {"intent": "i", "scope": "tenant"}])
def test_it_is_short_and_ascii(db: Rented, run: UUID, key: dict[str, Any]) -> None:
    with db.as_app() as app:
        found = begin(app, run, **key)["idempotency_key"]
    assert len(found) < 64
    assert found.isascii()
    assert found.replace("_", "").isalnum()


def test_of_an_intent_it_is_the_same_in_every_run_step_and_with_any_arguments(db: Rented) -> None:
    assert len({key_of(db, intent="i", step=step, args={"n": step}) for step in range(3)}) == 1


@pytest.mark.parametrize("key", [{}, {"intent": "i"}, {"intent": "i", "scope": "tenant"}])
def test_it_is_the_same_after_the_transaction_that_began_the_effect_was_lost(
    db: Rented, run: UUID, key: dict[str, Any]
) -> None:
    keys = []
    for end in ("rollback", "commit"):
        with db.as_app() as app:
            keys.append(begin(app, run, **key)["idempotency_key"])
            app.execute(end.encode())
    assert keys[0] == keys[1]


def test_of_a_run_it_is_the_same_in_its_next_attempt(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        first = begin(app, run)
        finish(app, first["effect_uid"])
        second = begin(app, run, take_over(app, session, run))
    assert second["idempotency_key"] == first["idempotency_key"]


@pytest.mark.parametrize("scope", ["user", "tenant"])
def test_other_tenants_apps_intents_and_scopes_have_other_keys(db: Rented, scope: str) -> None:
    keys = [
        key_of(db, intent="i", scope=scope),
        key_of(db, "T2", intent="i", scope=scope),
        key_of(db, app_name="sales", intent="i", scope=scope),
        key_of(db, intent="j", scope=scope),
        key_of(db, intent="i", scope="user" if scope == "tenant" else "tenant"),
    ]
    assert len(set(keys)) == len(keys)


def test_other_users_have_other_keys_unless_the_intent_is_the_tenants(db: Rented) -> None:
    assert key_of(db, user="U1", intent="i") != key_of(db, user="U2", intent="i")
    assert key_of(db, user="U1", intent="i", scope="tenant") == key_of(db, user="U2", intent="i", scope="tenant")


def test_names_that_glue_to_the_same_text_have_other_keys(db: Rented) -> None:
    assert key_of(db, user="ab", app_name="c", intent="i") != key_of(db, user="a", app_name="bc", intent="i")


def test_each_certain_failure_gives_another_one(db: Rented, run: UUID) -> None:
    keys = set()
    for _ in range(3):
        with db.as_app() as app:
            begun = begin(app, run, intent="i")
            finish(app, begun["effect_uid"], "failed")
            keys.add(begun["idempotency_key"])
    assert len(keys) == 3


def test_every_part_of_a_run_scoped_key_counts(db: Rented, run: UUID, other_run: UUID) -> None:
    with db.as_app() as app:
        keys = [
            begin(app, which, **change)["idempotency_key"]
            for which in (run, other_run)
            for change in ({}, {"step": 1}, {"ordinal": 1}, {"tool": "mail"}, {"args": {"order": 8}})
        ]
    assert len(set(keys)) == len(keys) == 10


def test_it_says_nothing_of_anybody(db: Rented) -> None:
    tenant, user, intent, app_name = SECRETS
    for scope in ("user", "tenant"):
        found = key_of(db, tenant, user, app_name, intent=intent, scope=scope, args={"to": user}).lower()
        assert not any(
            word in found for secret in SECRETS for word in secret.replace("@", "-").split("-") if len(word) > 2
        )
