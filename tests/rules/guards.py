"""The registry: what a database must have for the rules to hold, how each part is taken away, and what must then fail.

Guards whose absence shows in what happens (triggers, policies, row security, constraints, unique indexes) are listed
one by one with the attacks that they refuse. The others (privileges, owners, defaults, pinned paths, parsed bodies,
trigger modes, NOT NULL) are read from the live catalog in `live.py`; a test of whole catalogs must miss each of them.
"""

from tests.catalog import test_tables as tables
from tests.rules import test_append_only as append_only
from tests.rules import test_audited as audited
from tests.rules import test_effect_begun_again as again
from tests.rules import test_effect_once as once
from tests.rules import test_fenced as fenced
from tests.rules import test_json_policy as json_policy
from tests.rules import test_one_opening_message as opening
from tests.rules import test_run_identity_frozen as frozen
from tests.rules import test_tools_complete as complete
from tests.rules import test_user_isolation as users
from tests.rules.guard import Guard, Test, cases, merged
from tests.rules.guard_policies import policies, row_security
from tests.rules.guard_triggers import triggers

# Indexes that only make an answer faster: without them every test gives the same result.
NOT_GUARDS = {f"index {name}" for name in tables.PLAIN_INDEXES}


def _constraint(table: str, constraint: str, tests: list[Test]) -> Guard:
    # CASCADE: a key goes with the foreign keys that refer to it.
    removal = f"alter table durable.{table} drop constraint {constraint} cascade"
    return Guard(f"constraint {table}.{constraint}", removal, tuple(tests))


def _constraints() -> list[Guard]:
    links = {
        table: cases(users.test_a_row_does_not_link_to_another_user_s_session, {"table": table})
        for table in ("events", "runs")
    }
    found = [
        _constraint("runs", "runs_session_is_the_users", links["runs"]),
        _constraint(
            "runs",
            "runs_attempts_count_from_1",
            cases(fenced.test_attempts_count_from_1, {"change": "first_attempt = 2"}, {"change": "max_attempts = 0"}),
        ),
        _constraint("events", "events_session_is_the_users", links["events"]),
        # Session and user as one key are what the two foreign keys above refer to.
        _constraint("sessions", "sessions_owner_key", [*links["runs"], *links["events"]]),
        _constraint("sessions", "sessions_user_state_exists", [users.test_a_session_needs_the_state_of_its_own_user]),
        _constraint("user_states", "user_states_app_exists", [users.test_a_user_s_state_needs_the_state_of_the_app]),
        _constraint("audit_log", "audit_log_reason_is_given", cases(audited.test_a_reason_is_given, {"reason": " "})),
        _constraint(
            "sessions", "sessions_pkey", cases(frozen.test_a_name_has_one_open_session, {"constraint": "sessions_pkey"})
        ),
    ]
    for constraint in ("runs_pkey", "runs_one_of_an_invocation"):
        found.append(
            _constraint("runs", constraint, cases(complete.test_an_invocation_has_one_run, {"constraint": constraint}))
        )
    for table in ("app_states", "user_states"):
        found.append(
            _constraint(table, f"{table}_pkey", cases(frozen.test_a_state_row_is_there_once, {"table": table}))
        )
    for constraint, sqlstate, changes in opening.TABLE_ATTACKS:
        if constraint != "events_one_opening_message":  # an index, below
            attack = {"constraint": constraint, "sqlstate": sqlstate, "changes": changes}
            found.append(
                _constraint("events", constraint, cases(opening.test_the_table_refuses_it_to_the_engine, attack))
            )
    for constraint, statement in complete.HALF_OUTCOMES:
        half = {"constraint": constraint, "statement": statement}
        found.append(_constraint("runs", constraint, cases(complete.test_the_table_refuses_half_an_outcome, half)))
    for constraint, statement in json_policy.HALF_FACTS:
        half = {"constraint": constraint, "statement": statement}
        tests = cases(json_policy.test_a_session_refuses_to_the_engine_half_a_fact, half)
        found.append(_constraint("sessions", constraint, tests))
    found += [*_of_effects(), *_of_checkpoints(), *_of_tools()]
    # Nobody can choose these keys: the uid is the database's, and migrations alone write the other two tables.
    for table, key in (("audit_log", "_pkey"), ("transitions", "_pkey"), ("alembic_version", "_pkc")):
        found.append(_constraint(table, f"{table}{key}", [tables.test_every_table_has_a_primary_key]))
    return merged(found)


def _of_effects() -> list[Guard]:
    found = [
        _constraint("effects", "effects_pkey", [once.test_an_effect_has_a_uid_of_its_own]),
        _constraint("effects", "effects_holder_is_a_run", [users.test_an_effect_is_held_by_a_run_of_its_tenant]),
        _constraint("effect_calls", "effect_calls_pkey", [append_only.test_an_effect_is_asked_for_once_an_attempt]),
        _constraint(
            "effect_calls", "effect_calls_effect_exists", [append_only.test_a_call_is_of_an_effect_that_is_there]
        ),
    ]
    for constraint, changes in once.UNFIT:
        unfit = {"constraint": constraint, "changes": changes}
        tests = cases(once.test_the_table_refuses_to_the_engine_an_unfit_key_or_time, unfit)
        found.append(_constraint("effects", constraint, tests))
    for role in ("engine", "steward"):
        for constraint, change in once.HALF_OUTCOMES:
            half = {"role": role, "constraint": constraint, "change": change}
            found.append(_constraint("effects", constraint, cases(once.test_the_table_refuses_half_an_outcome, half)))
    for begun_at in ("now()", "'infinity'"):
        late = cases(
            again.test_the_engine_begins_nothing_again_once_the_provider_has_forgotten_the_key, {"begun_at": begun_at}
        )
        found.append(_constraint("effects", "effects_begun_again_while_provider_dedupes", late))
    for table in ("effects", "effect_calls", "checkpoints"):
        name = f"{table}_run_is_the_users"
        tests = cases(users.test_a_row_does_not_link_to_another_user_s_run, {"constraint": name})
        # The key of run and user is what these foreign keys refer to.
        found += [_constraint(table, name, tests), _constraint("runs", "runs_owner_key", tests)]
    return found


def _of_checkpoints() -> list[Guard]:
    attack = append_only.test_the_table_refuses_to_the_engine_a_gap_or_a_second_checkpoint_of_a_step
    return [
        _constraint("checkpoints", constraint, cases(attack, {"constraint": constraint, "changes": changes}))
        for constraint, changes in append_only.UNFIT_CHECKPOINTS
    ]


def _of_tools() -> list[Guard]:
    unknown = cases(frozen.test_a_tool_has_a_class_that_is_known, {"replay_class": ""}, {"replay_class": "safe"})
    return [
        _constraint("tools", "tools_pkey", [frozen.test_a_tool_has_one_class]),
        _constraint("tools", "tools_class_is_known", unknown),
    ]


def _domains() -> list[Guard]:
    found = []
    for constraint, statement in json_policy.UNFIT_VALUES:
        domain = {"counter_is_not_negative": "counter", "digest_has_32_bytes": "digest"}.get(constraint, "json_object")
        unfit = {"domain": constraint, "statement": statement}
        found.append(
            Guard(
                f"constraint {domain}.{constraint}",
                f"alter domain durable.{domain} drop constraint {constraint}",
                tuple(cases(json_policy.test_a_column_refuses_to_the_engine_what_its_domain_is_not, unfit)),
            )
        )
    names = cases(json_policy.test_a_column_refuses_to_the_engine_an_unfit_name, {"name": ""}, {"name": "x\u3000"})
    rule = "identifier_is_1_to_512_unpadded"
    removal = f"alter domain durable.identifier drop constraint {rule}"
    return merged([*found, Guard(f"constraint identifier.{rule}", removal, tuple(names))])


def _unique_indexes() -> list[Guard]:
    opened = {
        "constraint": "events_one_opening_message",
        "sqlstate": "23505",
        "changes": {"invocation_id": "inv-2"},
    }
    name = {"constraint": "sessions_one_open_of_a_name"}
    of_effects = [
        Guard(
            f"index effects_{kind}_{once.INDEX[scope]}",
            f"drop index durable.effects_{kind}_{once.INDEX[scope]}",
            tuple(cases(test, {"scope": scope})),
        )
        for scope in once.KEYS
        for kind, test in (
            ("once", once.test_a_second_row_of_a_key_that_has_not_failed_is_refused),
            ("tries", once.test_a_second_row_of_a_try_is_refused),
        )
    ]
    return [
        *of_effects,
        Guard(
            "index events_one_opening_message",
            "drop index durable.events_one_opening_message",
            tuple(cases(opening.test_the_table_refuses_it_to_the_engine, opened)),
        ),
        Guard(
            "index sessions_one_open_of_a_name",
            "drop index durable.sessions_one_open_of_a_name",
            tuple(cases(frozen.test_a_name_has_one_open_session, name)),
        ),
    ]


GUARDS = [*triggers(), *policies(), *row_security(), *_constraints(), *_domains(), *_unique_indexes()]
