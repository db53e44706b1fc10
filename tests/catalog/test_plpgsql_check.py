"""The extension plpgsql_check, where the server has it, finds no fault in any function body."""

import pytest

from tests.support.harness import Database, value

FOUND = """
select p.proname || ': ' || message
from pg_proc as p
cross join lateral plpgsql_check_function(
    p.oid,
    relid => case when p.prorettype = 'trigger'::regtype then 'durable.runs'::regclass else 0::regclass end,
    other_warnings => true, extra_warnings => true, security_warnings => true
) as message
where p.pronamespace = 'durable'::regnamespace
    and p.prolang = (select oid from pg_language where lanname = 'plpgsql')
    and message ~ '^(error|warning|security)'
"""
EXPECTED = {
    # Only reached on the version that has it.
    "new_uid: error:42883:6:RETURN:function uuidv7() does not exist",
    # Their handlers end in a call of refuse_json or refuse_large_json, which always raise.
    "escape_json: warning extra:2F005:control reached end of function without RETURN",
    "escape_rare_json: warning extra:2F005:control reached end of function without RETURN",
}


def test_no_function_body_has_a_fault(db: Database) -> None:
    with db.superuser() as root:
        available = "select count(*) from pg_available_extensions where name = 'plpgsql_check'"
        if not value(root, available):
            pytest.skip("this server has no plpgsql_check")
        root.execute("create extension plpgsql_check")
        root.execute("set local durable.tenant_id = 'T1'; set local durable.user_id = 'U1'")
        found = {next(iter(row.values())) for row in root.execute(FOUND)}
    assert found - EXPECTED == set()
