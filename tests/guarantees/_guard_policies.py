"""Row security and every policy: taken away, made true for every row, and kept to one half of its condition."""

from tests.guarantees import test_audited as audited
from tests.guarantees import test_identity_required as identity
from tests.guarantees import test_tenant_isolation as tenants
from tests.guarantees import test_user_isolation as users
from tests.guarantees._guard import Guard, Test, cases
from tests.guarantees._roles import DATA, PERSONAL

ANY = "true"
TENANT = "tenant_id = durable.current_tenant()"
USER = "user_id = durable.current_user_id()"


def policies() -> list[Guard]:
    return [*_of_the_owner(), *_of_readers(), *_of_the_app(), *_of_the_engine(), *_of_the_log()]


def row_security() -> list[Guard]:
    found = []
    for table in DATA:
        role = "operator" if table == "audit_log" else "app"
        sees = cases(tenants.test_rows_of_another_tenant_are_invisible, {"role": role, "table": table})
        owner = cases(identity.test_the_owner_reads_and_writes_nothing_loudly, {"table": table})
        alter = f"alter table durable.{table}"
        found += [
            Guard(f"row security {table}", f"{alter} disable row level security", (*sees, *owner)),
            Guard(f"row security forced {table}", f"{alter} no force row level security", tuple(owner)),
        ]
    return found


def _gone(table: str, policy: str, tests: list[Test]) -> Guard:
    return Guard(f"policy {table}.{policy}", f"drop policy {policy} on durable.{table}", tuple(tests))


def _kept_to(condition: str, table: str, policy: str, tests: list[Test]) -> Guard:
    clause = "with check" if policy.startswith("insert") else "using"
    removal = f"alter policy {policy} on durable.{table} {clause} ({condition})"
    return Guard(f"policy {table}.{policy} kept to {condition}", removal, tuple(tests))


def _of_the_owner() -> list[Guard]:
    found = []
    for table in DATA:
        tests = [
            *cases(identity.test_the_owner_reads_and_writes_nothing_loudly, {"table": table}),
            *cases(identity.test_the_owner_is_refused_where_no_row_would_be_met, {"table": table}),
        ]
        per_row = cases(identity.test_the_owner_is_refused_where_no_row_would_be_met, {"table": table})
        found += [
            _gone(table, "refuse_owner", tests),
            _kept_to(ANY, table, "refuse_owner", tests),
            # Without a column to compare with, it is asked of rows that other conditions have let through.
            _kept_to("durable.refuse_owner() is null", table, "refuse_owner", per_row),
        ]
    return found


def _of_readers() -> list[Guard]:
    """Auditors, and operators with the app where a row belongs to a tenant."""
    found = []
    for table in DATA:
        found.append(_gone(table, "select_all", cases(tenants.test_an_auditor_sees_every_tenant, {"table": table})))
        roles = ("app", "engine", "operator") if table == "app_states" else ("operator",)
        who = [{"role": role, "table": table} for role in roles]
        tests = [
            *cases(tenants.test_rows_of_another_tenant_are_invisible, *who),
            *cases(identity.test_a_read_without_identity_is_refused, *who),
        ]
        found += [_gone(table, "select_tenant", tests), _kept_to(ANY, table, "select_tenant", tests)]
    return found


def _of_the_app() -> list[Guard]:
    found = []
    for table in PERSONAL:
        who = [{"role": role, "table": table} for role in ("app", "engine")]
        of_tenants = cases(tenants.test_rows_of_another_tenant_are_invisible, *who)
        of_users = cases(users.test_rows_of_another_user_are_invisible, *who)
        loud = cases(identity.test_a_read_without_identity_is_refused, *who)
        found += [
            _gone(table, "select_own", [*of_tenants, *of_users, *loud]),
            _kept_to(ANY, table, "select_own", [*of_tenants, *of_users, *loud]),
            _kept_to(TENANT, table, "select_own", of_users),
            _kept_to(USER, table, "select_own", of_tenants),
        ]
    return found


def _of_the_engine() -> list[Guard]:
    found = []
    for table in ("app_states", *PERSONAL):
        scope = "tenant" if table == "app_states" else "own"
        one = {"table": table}
        into_tenant = cases(tenants.test_a_row_is_not_written_into_another_tenant, one)
        reach_tenant = cases(tenants.test_an_update_without_a_condition_reaches_one_tenant, one)
        for_user = cases(users.test_a_row_is_not_written_for_another_user, one) if scope == "own" else []
        reach_user: list[Test] = []
        if scope == "own" and table != "events":
            reach_user = cases(users.test_an_update_without_a_condition_reaches_one_user, one)
        loud = cases(identity.test_a_write_without_identity_is_refused, one)
        found += [
            _gone(table, f"insert_{scope}", loud),
            _kept_to(ANY, table, f"insert_{scope}", [*into_tenant, *for_user, *loud]),
        ]
        if table != "events":
            found += [
                _gone(table, f"update_{scope}", [*reach_tenant, *reach_user]),
                _kept_to(ANY, table, f"update_{scope}", [*reach_tenant, *reach_user]),
            ]
        if scope == "own":
            found += [
                _kept_to(TENANT, table, "insert_own", for_user),
                _kept_to(USER, table, "insert_own", into_tenant),
            ]
            if table != "events":
                found += [
                    _kept_to(TENANT, table, "update_own", reach_user),
                    _kept_to(USER, table, "update_own", reach_tenant),
                ]
    return found


def _of_the_log() -> list[Guard]:
    forged = tenants.test_an_operator_s_act_is_not_logged_under_another_tenant_or_name
    by_operator, by_maintainer = cases(forged, {"role": "steward"}), cases(forged, {"role": "janitor"})
    logged = audited.test_an_act_is_logged
    return [
        _gone("audit_log", "insert_tenant", cases(logged, {"role": "steward"})),
        _kept_to(
            ANY, "audit_log", "insert_tenant", [*by_operator, identity.test_an_act_without_identity_is_not_logged]
        ),
        _kept_to(TENANT, "audit_log", "insert_tenant", by_operator),
        _kept_to("acted_by = durable.current_user_id()", "audit_log", "insert_tenant", by_operator),
        _gone("audit_log", "insert_all", cases(logged, {"role": "janitor"})),
        _kept_to(ANY, "audit_log", "insert_all", by_maintainer),
    ]
