"""Row security and every policy: taken away, made true for every row, and kept to one half of its condition."""

from collections.abc import Sequence

from tests.rules import test_acts_audited as acts
from tests.rules import test_audited as audited
from tests.rules import test_identity_required as identity
from tests.rules import test_least_privilege as least
from tests.rules import test_shared_effects as shared
from tests.rules import test_tenant_isolation as tenants
from tests.rules import test_user_isolation as users
from tests.rules.guard import Guard, Test, cases
from tests.rules.roles import DATA, INSERTED, PERSONAL, SHARED, UPDATED

ANY = "true"
BOTH = ("app", "engine")
OWN_OR_SHARED = "(user_id = durable.current_user_id() or scope = 'tenant')"
TENANT = "tenant_id = durable.current_tenant()"
USER = "user_id = durable.current_user_id()"


# Whom a policy for a whole tenant serves, where it is not the operator alone.
READERS = {
    "app_states": ("app", "engine", "operator"),
    "tools": ("app", "steward", "operator"),
    **dict.fromkeys(("sessions", "events", "runs", "effects", "effect_calls"), ("steward", "operator")),
}


def policies() -> list[Guard]:
    return [*_of_the_owner(), *_of_readers(), *_of_the_app(), *_of_writers(), *_of_the_janitor(), *_of_the_log()]


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


def _gone(table: str, policy: str, tests: Sequence[Test]) -> Guard:
    return Guard(f"policy {table}.{policy}", f"drop policy {policy} on durable.{table}", tuple(tests))


def _kept_to(condition: str, table: str, policy: str, tests: Sequence[Test]) -> Guard:
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
        who = [{"role": role, "table": table} for role in READERS.get(table, ("operator",))]
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
        ]
        if table != "effects":
            found.append(_kept_to(USER, table, "select_own", of_tenants))
    visible = cases(shared.test_users_of_the_tenant_see_it_and_others_don_t, {"role": "app"}, {"role": "engine"})
    away = cases(tenants.test_rows_of_another_tenant_are_invisible, *({"role": r, "table": "effects"} for r in BOTH))
    found += [
        _kept_to(OWN_OR_SHARED, "effects", "select_own", [*away, *visible]),
        # Without the part for the tenant nobody but its user would be told of it.
        _kept_to(f"{TENANT} and {USER}", "effects", "select_own", visible),
    ]
    return found


def _of_writers() -> list[Guard]:
    return [*_of_inserts(), *_of_updates()]


def _of_inserts() -> list[Guard]:
    found = []
    for role, table in INSERTED:
        scope = "tenant" if table in SHARED else "own"
        into_tenant = cases(tenants.test_a_row_is_not_written_into_another_tenant, {"role": role, "table": table})
        for_user = cases(users.test_a_row_is_not_written_for_another_user, {"table": table}) if scope == "own" else []
        loud = cases(identity.test_a_row_without_identity_is_not_written, {"role": role, "table": table})
        found += [
            _gone(table, f"insert_{scope}", loud),
            _kept_to(ANY, table, f"insert_{scope}", [*into_tenant, *for_user, *loud]),
        ]
        if scope == "own":
            found += [
                _kept_to(TENANT, table, "insert_own", for_user),
                _kept_to(USER, table, "insert_own", into_tenant),
            ]
    return found


def _of_updates() -> list[Guard]:
    found = []
    for role, table in UPDATED:
        own = role == "engine" and table not in SHARED
        policy = "update_own" if own else "update_tenant"
        reach_tenant = cases(
            tenants.test_an_update_without_a_condition_reaches_one_tenant, {"role": role, "table": table}
        )
        reach_user = cases(users.test_an_update_without_a_condition_reaches_one_user, {"table": table}) if own else []
        found += [
            _gone(table, policy, [*reach_tenant, *reach_user]),
            _kept_to(ANY, table, policy, [*reach_tenant, *reach_user]),
        ]
        if own:
            other = OWN_OR_SHARED if table == "effects" else USER
            found += [
                _kept_to(TENANT, table, policy, reach_user),
                _kept_to(other, table, policy, reach_tenant),
            ]
    again = [shared.test_the_engine_gives_it_to_another_user_s_run]
    found.append(_kept_to(f"{TENANT} and {USER}", "effects", "update_own", again))
    return found


def _of_the_janitor() -> list[Guard]:
    reaped = [acts.test_a_maintainer_who_reaps_a_run_is_logged]
    listed = [least.test_a_maintainer_s_list_has_no_content]
    return [
        _gone("runs", "update_all", reaped),
        _gone("effects", "update_all", reaped),
        *(_gone(table, "select_all", listed) for table in ("runs", "sessions", "effects", "effect_calls")),
    ]


def _of_the_log() -> list[Guard]:
    forged = tenants.test_an_act_is_not_logged_under_another_tenant_or_name
    loud = identity.test_an_act_without_identity_is_not_logged
    by_maintainer = cases(forged, {"role": "janitor"})
    logged = audited.test_an_act_is_logged
    found = []
    for role, policy in (("engine", "insert_own_word"), ("steward", "insert_tenant")):
        by_person, by_role = cases(forged, {"role": role}), cases(loud, {"role": role})
        found += [
            _gone("audit_log", policy, cases(logged, {"role": role})),
            _kept_to(ANY, "audit_log", policy, [*by_person, *by_role]),
            _kept_to(TENANT, "audit_log", policy, by_person),
            _kept_to("acted_by = durable.current_user_id()", "audit_log", policy, by_person),
        ]
    of_whom = f"{TENANT} and acted_by = durable.current_user_id()"
    other_act = [audited.test_the_engine_logs_nothing_but_what_an_app_resolves]
    return [
        *found,
        _kept_to(of_whom, "audit_log", "insert_own_word", other_act),
        _gone("audit_log", "insert_all", cases(logged, {"role": "janitor"})),
        _kept_to(ANY, "audit_log", "insert_all", by_maintainer),
    ]
