"""tools/lint_sql.py finds no fault in sql/, and each of its checks finds the fault that it is there for."""

from dataclasses import replace

import pytest

from tests.support.cli import ROOT
from tools.lint_sql import FILE_CHECKS, TREE_CHECKS, File, Tree, faults

TREE = Tree.read(ROOT / "sql")
CALL = """\
-- What it promises.
set local role durable_engine;

create or replace function durable.new_call(me text default null)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform durable.check_me(new_call.me);
end
$$;

comment on function durable.new_call is 'What it returns. Raises 42W01.';

revoke all on function durable.new_call from public;
grant execute on function durable.new_call to durable_app;
"""
HELPER = """
-- What it is for.
create or replace function durable.new_helper() returns integer language sql stable return 1;

comment on function durable.new_helper is '1.';

revoke all on function durable.new_helper from public;
"""
RAISE = "raise exception using errcode = '55W01', message = 'no', hint = 'go', schema = 'durable';"


def found(text: str = CALL, name: str = "calls/new_call.sql") -> list[str]:
    """Return what is wrong once this file is added to sql/, before the policies, or takes the place of its like."""
    files = [*(file for file in TREE.files if file.name != name), File(name, text)]
    place = TREE.manifest.index("access/sessions.sql")
    listed = TREE.manifest if name in TREE.manifest else [*TREE.manifest[:place], name, *TREE.manifest[place:]]
    return faults(replace(TREE, files=files, manifest=listed))


def in_body(*statements: str) -> str:
    return CALL.replace("    perform durable.check_me(new_call.me);\n", "".join(f"    {line}\n" for line in statements))


def test_sql_keeps_its_conventions() -> None:
    assert faults(TREE) == []


def test_a_good_file_has_no_fault() -> None:
    assert found() == []
    assert found(CALL + HELPER) == []


BAD_FILES = {
    "header": [
        CALL.replace("-- What it promises.\n", ""),
        "-- More.\n" * 4 + CALL,
    ],
    "length": [
        CALL + "\n" * 290,
        in_body(f"perform durable.check_me({' ' * 200}new_call.me);"),
    ],
    "owner": [
        CALL.replace("set local role durable_engine;\n", ""),
        CALL.replace("durable_engine", "durable_app"),
        CALL.replace("set local role durable_engine;\n", "select 1;\nset local role durable_engine;\n"),
    ],
    "place": [
        CALL.replace("new_call", "other_call"),
        HELPER.replace("\n-- What it is for.\n", "-- What it is for.\nset local role durable_engine;\n\n", 1) + CALL,
        "-- Nothing.\nset local role durable_engine;\n",
        f"{CALL}\ncreate type durable.new_row as (n integer);\n",
    ],
    "apart": [
        f"{CALL}\ncreate type durable.new_row as (n integer);\n",
        f"{CALL}\ncreate domain durable.new_domain as text;\n",
        f"{CALL}\ncreate policy more on durable.runs for select to durable_app using (true);\n",
        f"{CALL}\ncreate unique index more on durable.runs (status);\n",
    ],
    "backslash": [
        in_body(r"perform durable.check_me('\');"),
        in_body(r"perform durable.check_me(U&'\0020');"),
        CALL.replace("'What it returns. Raises 42W01.'", r"'\n'"),
    ],
    "forbidden": [
        in_body("begin null; exception when others then null; end;"),
        in_body("if new_call.me = null then return; end if;"),
        in_body("drop table durable.runs cascade;"),
        in_body("raise notice 'here';"),
        in_body("perform set_config('durable.user_id', '', true);"),
        f"{CALL}\ncreate view durable.new_view as select 1;\n",
        in_body(RAISE.replace("55W01", "P0001")),
    ],
    "raises": [
        in_body(RAISE.replace(" hint = 'go',", "")),
        in_body(RAISE.replace("errcode = '55W01', ", "")),
        in_body(RAISE.replace(", schema = 'durable'", "")),
        in_body(RAISE.replace("message = 'no', ", "")),
    ],
    "arguments": [in_body(RAISE.replace("55W01", "22W03"))],
    "closed": [
        CALL.replace("revoke all on function durable.new_call from public;\n", ""),
        CALL.replace("comment on function durable.new_call is 'What it returns. Raises 42W01.';\n", ""),
        CALL.replace("revoke all on function durable.new_call from", "revoke all on function durable.act_as from"),
        f"{CALL}grant execute on function durable.act_as to durable_auditor;\n",
        CALL.replace("create or replace function", "create function"),
        # Revoked and commented behind the next one, not where it is made.
        (CALL + HELPER)[: (CALL + HELPER).index("comment on function durable.new_helper")]
        + "comment on function durable.new_call is '';\n",
    ],
    "signature": [
        CALL.replace("comment on function durable.new_call is", "comment on function durable.new_call(text) is"),
        CALL.replace("function durable.new_call from public", "function durable.new_call(text) from public"),
        CALL.replace(
            "on function durable.new_call to durable_app", "on function\ndurable.new_call(text)\nto durable_app"
        ),
    ],
    "helpers": [CALL + HELPER.replace("-- What it is for.\n", "")],
    "uses": [
        in_body("perform durable.no_such_function();"),
        in_body("return durable.no_such_table;"),
    ],
    "unique": [
        CALL + HELPER.replace("new_helper", "act_as"),
        CALL + HELPER + HELPER,
    ],
    "sqlstates": [
        in_body(RAISE.replace("55W01", "55W99")),
        CALL.replace("42W01", "42W99"),
        in_body(RAISE.replace("55W01", "55W06")),
    ],
}


@pytest.mark.parametrize(
    ("check", "text"),
    [
        pytest.param(check, text, id=f"{check}-{number}")
        for check, texts in BAD_FILES.items()
        for number, text in enumerate(texts, 1)
    ],
)
def test_a_bad_file_is_found_by_the_check_that_is_there_for_it(check: str, text: str) -> None:
    assert any(fault.startswith(f"{check}: ") for fault in found(text)), found(text)


def test_every_check_is_proved() -> None:
    proved_below = {"manifest"}
    assert BAD_FILES.keys() | proved_below == {check.__name__ for check in [*FILE_CHECKS, *TREE_CHECKS]}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        # The same text, where it does not belong.
        ("tables/new_call.sql", CALL, "table new_call only"),
        ("access/new_call.sql", CALL, "policies only"),
        ("new_call.sql", CALL, "no function"),
        ("cellar/new_call.sql", CALL, "stands on no floor"),
        ("tables/types.sql", f"{CALL}\ncreate type durable.t as (n integer);\n", "types only"),
        ("tables/runs.sql", "-- A table.\nset local role durable_owner;\n\ncreate table durable.other (n integer);\n",
         "table runs only"),
    ],
)  # fmt: skip
def test_a_floor_takes_only_what_it_is_for(name: str, text: str, expected: str) -> None:
    assert any(fault.startswith(f"place: {name} ") and expected in fault for fault in found(text, name)), name


@pytest.mark.parametrize(
    ("name", "used"),
    [
        ("ground/uid.sql", "runs"),
        ("guards/columns.sql", "find_run"),
        ("rules/state.sql", "open_session"),
        # On one floor: begin_effect comes before record_step in the manifest, and a circle would need both ways.
        ("calls/begin_effect.sql", "record_step"),
        ("rules/chain.sql", "blocking_tools"),
    ],
)
def test_a_file_uses_nothing_that_stands_below_it(name: str, used: str) -> None:
    (text,) = (file.text for file in TREE.files if file.name == name)
    found_there = found(
        text.replace("\n$$;", f"\n-- durable.{used} in a comment is no use, nor is 'durable.{used}'.\n$$;"), name
    )
    assert found_there == []
    spoilt = text.replace("\nbegin\n", f"\nbegin\n    perform durable.{used}();\n", 1)
    assert spoilt != text
    assert any(fault.startswith(f"uses: {name} uses durable.{used} of ") for fault in found(spoilt, name))


@pytest.mark.parametrize(
    "listed",
    [
        [name for name in TREE.manifest if name != "tables/runs.sql"],
        [*TREE.manifest[:-1], "tables/runs.sql", TREE.manifest[-1]],
        [*TREE.manifest[:-1], "calls/no_such_call.sql", TREE.manifest[-1]],
        TREE.manifest[1:] + TREE.manifest[:1],
        ["schema.sql", "schema_seal.sql", *TREE.manifest[1:-1]],
        sorted(
            TREE.manifest, key=lambda name: (name.startswith("schema_seal"), "access" not in name, "schema" not in name)
        ),
    ],
)
def test_a_manifest_that_is_not_whole_or_in_order_is_found(listed: list[str]) -> None:
    assert any(fault.startswith("manifest: ") for fault in faults(replace(TREE, manifest=listed)))


@pytest.mark.parametrize("codes", [[*TREE.codes, "55W98"], TREE.codes[1:], [*TREE.codes, TREE.codes[0]]])
def test_a_registry_that_is_not_that_of_the_raises_is_found(codes: list[str]) -> None:
    assert any(fault.startswith("sqlstates: ") for fault in faults(replace(TREE, codes=codes)))
