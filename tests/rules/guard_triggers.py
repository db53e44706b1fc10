"""Every trigger, and the attacks that get through without it."""

from tests.rules import test_append_only as append_only
from tests.rules import test_effect_once as once
from tests.rules import test_fenced as fenced
from tests.rules import test_legal_transitions as legal
from tests.rules import test_run_identity_frozen as frozen
from tests.rules import test_tools_write_once as write_once
from tests.rules.guard import Guard, Test, cases, merged


def _guard(table: str, trigger: str, tests: list[Test]) -> Guard:
    return Guard(f"trigger {table}.{trigger}", f"drop trigger {trigger} on durable.{table}", tuple(tests))


def triggers() -> list[Guard]:
    return merged([*_rows(), *_columns(), *_transitions()])


def _rows() -> list[Guard]:
    found = []
    for table, statement in append_only.REWRITES:
        rewrite = {"table": table, "statement": statement}
        tests = [
            *cases(append_only.test_a_superuser_is_refused, rewrite),
            *cases(append_only.test_an_owner_who_lifts_force_is_refused, rewrite),
            *cases(append_only.test_replication_mode_switches_no_guard_off, rewrite),
        ]
        found.append(_guard(table, append_only.GUARD[table], tests))
    for table, guard in append_only.GUARD.items():
        tests = [
            *cases(append_only.test_nobody_truncates, {"table": table, "who": "superuser"}),
            *cases(append_only.test_nobody_truncates, {"table": table, "who": "as_owner"}),
            *cases(append_only.test_replication_mode_lets_nobody_truncate, {"table": table}),
        ]
        found.append(_guard(table, f"{guard}_truncate", tests))
    return found


def _columns() -> list[Guard]:
    found = []
    for table in ("runs", "sessions", "effects"):
        rewrites = [
            {"table": table, "column": column, "values": values}
            for of_table, column, values in write_once.REWRITES
            if of_table == table
        ]
        tests = [
            *cases(write_once.test_the_engine_changes_no_stored_value, *rewrites),
            *cases(write_once.test_replication_mode_rewrites_no_value, {"table": table}),
        ]
        if table == "effects":
            # It comes before the moves, which would refuse these too: the SQLSTATE tells which one did.
            ended = [{"ended": "succeeded", "status": "begun"}, {"ended": "failed", "status": "unverified"}]
            tests += cases(legal.test_an_effect_that_has_ended_is_not_opened_again, *ended)
            tests += cases(once.test_a_recorded_result_never_changes, {"result": "null"})
        found.append(_guard(table, "_200_write_once", tests))
    for table, columns in frozen.FROZEN.items():
        renames = [{"table": table, "column": column} for column in columns]
        tests = cases(frozen.test_a_frozen_column_stays_even_in_replication_mode, *renames)
        if table == "effects":
            tests += cases(
                once.test_a_stored_fingerprint_never_changes, *({"column": name} for name in once.FINGERPRINT)
            )
        found.append(_guard(table, "_300_frozen", tests))
    who = [{"who": name} for name in ("engine", "superuser", "replica")]
    found.append(_guard("runs", "_350_growing", cases(fenced.test_an_attempt_never_shrinks, *who)))
    return found


def _sources(*names: str) -> list[dict[str, str]]:
    return [{"source": name} for name in names]


def _transitions() -> list[Guard]:
    back = [{"role": role, "source": source} for role in ("engine", "steward") for source in legal.OPEN]
    moves = [
        *cases(legal.test_an_open_run_goes_only_where_a_row_leads, *back),
        *cases(legal.test_the_janitor_moves_an_open_run_only_where_a_row_leads, *_sources("interrupted", "awaiting")),
        *cases(legal.test_a_run_is_born_running, {"status": "succeeded"}, {"status": "awaiting"}),
        *cases(legal.test_a_settled_run_never_changes, *({"change": change} for change in legal.RUN_REOPENINGS)),
        legal.test_replication_mode_reopens_nothing,
        write_once.test_a_settled_run_with_unknown_tools_stays_unknown,
    ]
    reopenings = [{"change": change} for change in legal.EFFECT_REOPENINGS]
    behind = [
        {"role": role, "source": source}
        for role in ("engine", "steward", "janitor")
        for source in ("begun", "unverified")
    ]
    effects = [
        *cases(legal.test_an_open_effect_goes_only_where_a_row_leads, *behind),
        *cases(legal.test_an_effect_is_born_begun, {"status": "succeeded"}, {"status": "unverified"}),
        *cases(legal.test_an_effect_that_has_failed_never_changes, *reopenings),
        legal.test_replication_mode_reopens_nothing,
    ]
    facts = [
        *cases(
            legal.test_only_a_migration_that_lifts_the_guard_adds_a_move,
            *({"statement": statement} for statement in legal.CHANGES),
        ),
        legal.test_replication_mode_adds_no_move,
        legal.test_nobody_copies_moves_in,
    ]
    again = [
        {"role": "engine", "change": "status = 'begun'"},
        {"role": "engine", "change": "attempt = 2"},
        {"role": "engine", "change": "held_by = run_uid"},
    ]
    emptied = cases(legal.test_nobody_empties_the_table, {"mode": "origin"}, {"mode": "replica"})
    return [
        _guard("runs", "_400_legal_transitions", moves),
        _guard("effects", "_400_legal_transitions", effects),
        _guard(
            "effects",
            "_450_begun_again",
            cases(legal.test_nobody_begins_an_effect_again_without_saying_when, *again),
        ),
        _guard("transitions", "_100_read_only", facts),
        _guard("transitions", "_100_read_only_truncate", emptied),
    ]
