"""act_as: one transaction, one tenant and user; nothing of it is left for the next."""

import pytest

from tests.support.calls import call_all, open_session
from tests.support.harness import Connection, one, refused, value
from tests.support.rented import Rented, nothing_written

WHO = "select durable.current_tenant() as tenant, durable.current_user_id() as person"
BLANKS = ("", " ", "\t", "\n", "\N{NO-BREAK SPACE}", "\N{IDEOGRAPHIC SPACE}", "\ufeff", "\N{ZERO WIDTH SPACE}")


def test_it_sets_tenant_and_user(db: Rented) -> None:
    with db.as_app() as app:
        assert one(app, WHO) == {"tenant": db.tenant("T1"), "person": "U1"}


def test_without_it_asking_who_one_is_is_refused(db: Rented) -> None:
    for function in ("current_tenant", "current_user_id"):
        with refused("42W01") as refusal, db.as_app(None, None) as app:
            app.execute(f"select durable.{function}()".encode())
        assert "durable.act_as(tenant_id, user_id)" in str(refusal.diag.message_hint)


@pytest.mark.parametrize("field", ["tenant_id", "user_id"])
@pytest.mark.parametrize(
    "name",
    [
        *BLANKS,
        " a",
        "a ",
        "a\n",
        "\N{EN QUAD}a",
        "a\N{ZERO WIDTH NON-JOINER}",
        "a\N{WORD JOINER}",
        "\x01a",
        None,
        "x" * 513,
    ],
)
def test_a_missing_blank_padded_or_over_long_name_is_refused(db: Rented, field: str, name: str | None) -> None:
    names = {"tenant_id": "T1", "user_id": "U1", field: name}
    with db.connect("app") as app:
        with refused("22W01", match=field) as refusal, app.transaction():
            app.execute("select durable.act_as(%(tenant_id)s, %(user_id)s)", names)
        assert refusal.diag.column_name == field
        with refused("42W01"):
            app.execute(WHO)


@pytest.mark.parametrize(
    "name", ["x", "x" * 512, "a b", "é", "o'brien", '"', "%", "\\", "$1", "a\N{ZERO WIDTH JOINER}b"]
)
def test_any_other_name_is_stored_exactly_as_given(db: Rented, name: str) -> None:
    with db.connect("app") as app:
        app.execute("select durable.act_as(%s, %s)", (name, name))
        assert one(app, WHO) == {"tenant": name, "person": name}


@pytest.mark.parametrize(("tenant", "user"), [("T1", "U2"), ("T2", "U1"), ("T2", "U2"), ("t1", "U1")])
def test_a_second_identity_is_refused_and_the_first_stays(db: Rented, tenant: str, user: str) -> None:
    with db.as_app() as app:
        with refused("42W02", match="acts as somebody else"), app.transaction():
            db.act_as(app, tenant, user)
        assert one(app, WHO) == {"tenant": db.tenant("T1"), "person": "U1"}


def test_the_same_identity_again_is_accepted(db: Rented) -> None:
    with db.as_app() as app:
        db.act_as(app)
        assert one(app, WHO)["person"] == "U1"


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_it_is_gone_with_its_transaction(db: Rented, end: str) -> None:
    with db.connect("app") as app:
        db.act_as(app)
        app.execute(end.encode())
        with refused("42W01"), app.transaction():
            app.execute(WHO)
        db.act_as(app, "T2", "U2")
        assert one(app, WHO) == {"tenant": db.tenant("T2"), "person": "U2"}


def test_it_is_gone_with_the_savepoint_it_was_called_in(db: Rented) -> None:
    with db.connect("app") as app:
        app.execute("begin; savepoint before")
        db.act_as(app)
        app.execute("rollback to savepoint before")
        with refused("42W01"), app.transaction():
            app.execute(WHO)
        db.act_as(app, user="U2")
        assert one(app, WHO)["person"] == "U2"


def test_it_survives_a_savepoint_that_began_later(db: Rented) -> None:
    with db.as_app() as app:
        app.execute("savepoint later; rollback to savepoint later")
        assert one(app, WHO)["person"] == "U1"


def chained(app: Connection) -> None:
    app.execute("commit and chain")


def test_a_chained_transaction_starts_without_an_identity(db: Rented) -> None:
    with db.connect("app") as app:
        db.act_as(app)
        chained(app)
        with refused("42W01"):
            app.execute(WHO)


def test_an_operator_acts_as_somebody_too_and_a_maintainer_as_nobody(db: Rented) -> None:
    with db.as_operator() as operator:
        assert one(operator, WHO)["person"] == "on-call"
    with refused("42501"), db.as_maintainer("T1", "U1"):
        pass
    with refused("42501"), db.as_auditor("T1", "U1"):
        pass


def test_an_operator_sees_the_sessions_of_its_tenant(db: Rented) -> None:
    for user in ("U1", "U2"):
        with db.as_app(user=user) as app:
            open_session(app)
    with db.as_app("T2") as app:
        open_session(app)
    with db.as_operator() as operator:
        assert sorted(row["user_id"] for row in call_all(operator, "list_sessions")) == ["U1", "U2"]
        assert value(operator, "select count(*) from durable.sessions") == 2


def test_an_operator_without_an_identity_sees_nothing_silently(db: Rented) -> None:
    with nothing_written(db), refused("42W01"), db.as_operator(None, None) as operator:
        operator.execute("select from durable.sessions")
