"""Every trigger, and the attacks that get through without it."""

from tests.guarantees import test_append_only as append_only
from tests.guarantees import test_legal_transitions as legal
from tests.guarantees import test_run_identity_frozen as frozen
from tests.guarantees import test_tools_write_once as write_once
from tests.guarantees._guard import Guard, Test, cases, merged


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
    for table in ("runs", "sessions"):
        rewrites = [
            {"table": table, "column": column, "values": values}
            for of_table, column, values in write_once.REWRITES
            if of_table == table
        ]
        tests = [
            *cases(write_once.test_the_engine_changes_no_stored_value, *rewrites),
            *cases(write_once.test_replication_mode_rewrites_no_value, {"table": table}),
        ]
        found.append(_guard(table, "_200_write_once", tests))
    for table, columns in frozen.FROZEN.items():
        renames = [{"table": table, "column": column} for column in columns]
        tests = cases(frozen.test_a_frozen_column_stays_even_in_replication_mode, *renames)
        found.append(_guard(table, "_300_frozen", tests))
    return found


def _transitions() -> list[Guard]:
    moves = [
        *cases(legal.test_a_running_run_goes_only_where_a_row_leads, {"status": "awaiting"}, {"status": "done"}),
        *cases(legal.test_a_run_is_born_running, {"status": "succeeded"}, {"status": "awaiting"}),
        *cases(legal.test_a_settled_run_never_changes, *({"change": change} for change in legal.REOPENINGS)),
        legal.test_replication_mode_reopens_no_run,
        write_once.test_a_settled_run_with_unknown_tools_stays_unknown,
    ]
    facts = [
        *cases(
            legal.test_only_a_migration_that_lifts_the_guard_adds_a_move,
            *({"statement": statement} for statement in legal.CHANGES),
        ),
        legal.test_replication_mode_adds_no_move,
        legal.test_nobody_copies_moves_in,
    ]
    emptied = cases(legal.test_nobody_empties_the_table, {"mode": "origin"}, {"mode": "replica"})
    return [
        _guard("runs", "_400_legal_transitions", moves),
        _guard("transitions", "_100_read_only", facts),
        _guard("transitions", "_100_read_only_truncate", emptied),
    ]
