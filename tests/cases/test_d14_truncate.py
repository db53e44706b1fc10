"""D14, CopilotKit/OpenBot#138 and deeplethe/utopia#53: TRUNCATE met no row trigger; an owning app switched them off."""

import psycopg
import pytest

from tests.support.calls import call, open_session, say, settle, start
from tests.support.harness import refused
from tests.support.rented import Rented, nothing_written

DATA = ("app_states", "user_states", "sessions", "events", "runs", "effects", "effect_calls", "checkpoints", "tools")
TABLES = (*DATA, "transitions")
APPEND_ONLY = ("events", "effect_calls", "checkpoints")
REFERRED_TO = ("app_states", "user_states", "sessions", "runs", "effects")
ATTACKS = (
    "truncate durable.{0}",
    "truncate durable.{0} cascade",
    "alter table durable.{0} disable trigger all",
    "drop trigger {1} on durable.{0}",
    "alter table durable.{0} disable row level security",
    "alter table durable.{0} no force row level security",
    "create trigger mine before update on durable.{0} for each row execute function tsvector_update_trigger()",
    "create rule mine as on insert to durable.{0} do instead nothing",
    "delete from durable.{0}",
    "drop table durable.{0} cascade",
)


@pytest.fixture
def recorded(db: Rented) -> Rented:
    with db.as_app() as app:
        session = open_session(app, state={"app:a": 1, "user:b": 1, "c": 1})
        say(app, session)
        run = start(app, session)
        call(app, "begin_effect", run_uid=run, attempt=1, tool="refund")
        call(app, "save_checkpoint", run_uid=run, attempt=1, step=1)
        settle(app, run)
    with db.as_operator() as operator:
        call(operator, "declare_tools", app_name="support", tools={"refund": "keyed"})
    return db


@pytest.mark.parametrize("table", TABLES)
def test_the_app_can_neither_empty_a_table_nor_disarm_it(recorded: Rented, table: str) -> None:
    trigger = {"transitions": "_100_read_only", **dict.fromkeys(APPEND_ONLY, "_100_append_only")}.get(
        table, "_100_rows_stay"
    )
    with nothing_written(recorded):
        for attack in ATTACKS:
            with refused("42501"), recorded.as_app() as app:
                app.execute(attack.format(table, trigger).encode())


@pytest.mark.parametrize("table", TABLES)
def test_the_app_can_copy_nothing_into_a_table(recorded: Rented, table: str) -> None:
    copy = f"copy durable.{table} from stdin".encode()
    with nothing_written(recorded), refused("42501"), recorded.as_app() as app, app.cursor().copy(copy) as rows:
        rows.write(b"x\n")


@pytest.mark.parametrize(
    "statement", ["set session_replication_role = replica", "set role mig", "set role durable_owner"]
)
def test_the_app_can_become_nobody_else_and_replicate_nothing(recorded: Rented, statement: str) -> None:
    with refused("42501"), recorded.as_app() as app:
        app.execute(statement.encode())


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("statement", ["truncate durable.{}", "truncate durable.{} cascade"])
def test_the_owner_can_empty_no_table_either(recorded: Rented, statement: str, table: str) -> None:
    # A table that others refer to is refused by Postgres before any trigger is asked.
    referred_to = table in REFERRED_TO and "cascade" not in statement
    with nothing_written(recorded), refused("0A000" if referred_to else "23W01"), recorded.as_owner() as owner:
        owner.execute(statement.format(table).encode())


@pytest.mark.parametrize("statement", ["update durable.{} set tenant_id = tenant_id", "delete from durable.{}"])
@pytest.mark.parametrize("table", DATA)
def test_an_update_by_the_owner_is_loud_and_not_a_change_of_no_rows(
    recorded: Rented, table: str, statement: str
) -> None:
    with nothing_written(recorded), refused("42W03"), recorded.as_owner() as owner:
        owner.execute(statement.format(table).encode())


@pytest.mark.parametrize("table", DATA)
def test_the_migration_login_itself_is_refused_as_well(recorded: Rented, table: str) -> None:
    # Up to 15 a member of durable_owner and the back roles inherits from them all, and meets their guards and policies.
    inherits = recorded.server.major < 16
    update, refusals = f"update durable.{table} set tenant_id = tenant_id", {"42W01", "42W03"}
    if table in {"runs", "effects"}:  # the janitor's policy reaches them all: there the guards refuse
        update, refusals = f"update durable.{table} set user_id = user_id || 'x'", {"23W03", "23503"}
    for statement, met in ((f"truncate durable.{table} cascade", {"23W01"}), (update, refusals)):
        with nothing_written(recorded), pytest.raises(psycopg.Error) as refusal, recorded.connect("mig") as mig:
            mig.execute(statement.encode())
        assert refusal.value.sqlstate in (met if inherits else {"42501"})
