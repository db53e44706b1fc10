"""Freezes sql/ into migrations/versions.

make revision name=add_leases          the next revision, with the files that are new or changed
python -m tools.freeze --baseline      0001 anew, until the first release is tagged; make generate does it too
python -m tools.freeze --seal          CHAIN anew for the newest revision, after edits by hand
python -m tools.freeze --check         exits 1 when something isn't frozen or CHAIN is off
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from tools.drop_list import drops, made_by, signatures, tables_of, without_bodies
from tools.frozen_tree import FIRST_RELEASE, OPEN, SEAL, Chunk, Tree, digest

ROOT = Path(__file__).resolve().parent.parent

_REVISION = '''\
"""{title}."""

from pathlib import Path

from alembic import op

from durable_pg.migrate import frozen

revision = "{number}"
down_revision = {previous}

HERE = Path(__file__).parent


def upgrade() -> None:
    frozen.run(op.get_context(), HERE, "{stem}.sql")


def downgrade() -> None:
    frozen.run(op.get_context(), HERE, "{stem}.down.sql")
'''

_STUB = """\
do $by_hand$
begin
    raise exception 'migrations/versions/{file}: {task}';
end
$by_hand$;
"""

_ROWS = """\
--! refuse-while-rows-exist
set local role durable_owner;
do $rows$
declare
    v_full text[] := '{{}}';
begin
    if current_setting('durable.drop_data', true) is distinct from 'on' then
        -- A forced owner would see no row, or an error; all this is undone with the refusal, or dropped below.
{lifts}
        select array_agg(t.name order by t.name)
        into v_full
        from (
            values
{values}
        ) as t (name, has_rows)
        where t.has_rows;
    end if;
    if cardinality(v_full) > 0 then
        raise exception using
            errcode = '55W06',
            message = 'tables of durable_pg hold rows that the downgrade would drop',
            detail = array_to_string(v_full, ', '),
            hint = 'Dump them first; then: durable-pg downgrade --drop-data, or set local durable.drop_data = ''on''.',
            schema = 'durable';
    end if;
end
$rows$;
"""

_DROP = """\
--! drop
set local role durable_owner;
{drops}"""

_DEFAULTS = """\
--! default-privileges
set local role durable_engine;
alter default privileges grant execute on functions to public;
set local role durable_steward;
alter default privileges grant execute on functions to public;
set local role durable_janitor;
alter default privileges grant execute on functions to public;
set local role durable_owner;
alter default privileges grant execute on functions to public;
alter default privileges grant usage on types to public;
"""


def main() -> int:
    """Do what the command line asks for; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", help="name of the next revision: lower case, words joined by _")
    parser.add_argument("--baseline", action="store_true")
    parser.add_argument("--seal", action="store_true")
    parser.add_argument("--check", action="store_true")
    chosen = parser.parse_args()
    tree = Tree(ROOT)
    if chosen.check:
        return check(tree)
    if chosen.baseline:
        return rebuild_baseline(tree)
    if chosen.seal:
        return seal(tree)
    if not chosen.name:
        parser.error("give the new revision a name, or one of the options")
    return new_revision(tree, chosen.name)


def check(tree: Tree) -> int:
    """Say what is not frozen; returns the exit code."""
    faults = [f"{path} is {what} and not frozen: make revision name=..." for path, what in tree.differences().items()]
    faults += tree.chain_faults()
    _say("\n".join(faults) or "sql/ is frozen and CHAIN is whole")
    return 1 if faults else 0


def rebuild_baseline(tree: Tree) -> int:
    """Write 0001 anew out of the whole of sql/."""
    if reason := why_the_baseline_stays(tree):
        raise SystemExit(f"the baseline can't be rebuilt: {reason}")
    texts = tree.manifest()
    names = list(texts)
    if names[0] != "sql/schema.sql" or f"sql/{OPEN}" != names[1] or f"sql/{SEAL}" != names[-1]:
        raise SystemExit(f"sql/manifest.txt must begin with schema.sql, {OPEN} and end with {SEAL}")
    up = "".join(f"--! {path}\n{text}" for path, text in texts.items())
    _write(tree, ("0001", "baseline"), None, up, _undo(list(texts.values())) + _DEFAULTS)
    tree.write_chain()
    return 0


def why_the_baseline_stays(tree: Tree) -> str:
    """Why 0001 is not written anew any more; empty while it may be."""
    others = [stem for stem in tree.revisions() if stem != "0001_baseline"]
    if others:
        return f"{others[0]} builds on it"
    return f"{FIRST_RELEASE} is tagged; make revision name=..." if tree.released() else ""


def _undo(texts: list[str]) -> str:
    """Drops what the files make, and refuses while a table of theirs holds rows."""
    tables = [table for table in tables_of(texts) if table != "durable.transitions"]
    lifts = "\n".join(f"        alter table {table} no force row level security;" for table in tables)
    values = ",\n".join(f"                ('{table}', exists (select from {table}))" for table in tables)
    refusal = _ROWS.format(lifts=lifts, values=values) if tables else ""
    return refusal + _DROP.format(drops=drops(texts))


def seal(tree: Tree) -> int:
    """Write CHAIN anew, if only the newest revision differs from it."""
    newest = tree.revisions()[-1]
    for now, recorded in zip(tree.chain(), tree.recorded_chain(), strict=False):
        if now != recorded and not now.startswith(f"{newest}."):
            raise SystemExit(f"{now.split()[0]} is an older revision and was changed: put it back")
    tree.write_chain()
    _say(f"sealed {newest}")
    return 0


def new_revision(tree: Tree, name: str) -> int:
    """Write the revision that leads from the newest one to sql/ as it is."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{2,50}", name):
        raise SystemExit("the name must be lower case words joined by _")
    if faults := tree.chain_faults():
        raise SystemExit("\n".join(faults))
    texts, frozen, differences = tree.manifest(), tree.frozen(), tree.differences()
    if not differences:
        raise SystemExit("nothing to freeze: sql/ is as in the newest revision")
    revisions = tree.revisions()
    number = f"{int(revisions[-1][:4]) + 1:04d}"
    file, down_file = f"{number}_{name}.sql", f"{number}_{name}.down.sql"
    open_path, seal_path = f"sql/{OPEN}", f"sql/{SEAL}"
    up, down = [f"--! {open_path}\n{texts[open_path]}"], [f"--! {open_path}\n{texts[open_path]}"]
    added = []
    for path, what in differences.items():
        if path in (open_path, seal_path):
            continue
        up.append(_forward(path, what, frozen.get(path), texts, file))
        if what == "new":
            added.append(texts[path])
        else:
            down.append(_back(path, frozen[path], up[-1].startswith(f"--! {path}\n"), down_file))
    if added:
        down.append(_undo(added))
    up.append(f"--! {seal_path}\n{texts[seal_path]}")
    down.append(f"--! {seal_path}\n{texts[seal_path]}")
    _write(tree, (number, name), revisions[-1][:4], "".join(up), "".join(down))
    tree.write_chain()
    for text in (*up, *down):
        if "$by_hand$" in text:
            _say(f"by hand: {text.splitlines()[0].removeprefix('--! ')}")
    return 0


def _forward(path: str, what: str, before: Chunk | None, texts: dict[str, str], file: str) -> str:
    if what == "removed":
        task = f"write the DROP of what {path} made, then: python -m tools.freeze --seal"
        return f"--! dropped: {path}\n" + _STUB.format(file=file, task=task)
    text = texts[path]
    reason = by_hand_reason(before.text if before else "", text, texts.values()) if what == "changed" else ""
    if reason:
        task = f"{reason} Write what leads to {path} as it is now, then: python -m tools.freeze --seal"
        # What can be run again is there already: only what goes before it is left to write.
        rest = "" if made_once(text) else text
        return f"--! by hand: {path} sha256:{digest(text)}\n" + _STUB.format(file=file, task=task) + rest
    return f"--! {path}\n{text}"


def _back(path: str, before: Chunk, rerun: bool, file: str) -> str:
    if before.kind == "copy" and rerun:
        return f"--! {path}\n{before.text}"
    task = f"write what brings {path} back to the revision before, then: python -m tools.freeze --seal"
    return f"--! by hand: {path}\n" + _STUB.format(file=file, task=task)


def made_once(text: str) -> str:
    """What the file makes that can't be made again over itself, such as a table; empty when there is nothing."""
    once = re.search(
        r"^create\s+(?!or\s+replace)(?!\w+\s+if\s+not\s+exists)([a-z]+)", without_bodies(text), re.MULTILINE
    )
    return once[1] if once else ""


def by_hand_reason(before: str, now: str, everywhere: Iterable[str]) -> str:
    """Why a changed file can't simply be run again; empty when it can. What moved to another file is not gone."""
    if kind := made_once(now):
        return f"It can''t be run again (create {kind})."
    if not before:
        return "Its last change was written by hand."
    texts = [*everywhere]
    old, new = signatures(before), {name: shape for text in texts for name, shape in signatures(text).items()}
    if changed := sorted(name for name in old if name in new and new[name] != old[name]):
        return f"DROP first: parameters or result of {', '.join(changed)} changed, both versions would stay."
    gone = {made.name for made in made_by(before)} - {made.name for text in texts for made in made_by(text)}
    return f"DROP first: {', '.join(sorted(gone))} would stay." if gone else ""


def _write(tree: Tree, revision: tuple[str, str], previous: str | None, up: str, down: str) -> None:
    number, name = revision
    stem = f"{number}_{name}"
    tree.versions.mkdir(parents=True, exist_ok=True)
    module = _REVISION.format(
        title=name.replace("_", " ").capitalize(),
        number=number,
        previous=f'"{previous}"' if previous else None,
        stem=stem,
    )
    (tree.versions / f"{stem}.py").write_text(module, encoding="utf-8", newline="\n")
    for ending, text in ((".sql", up), (".down.sql", down)):
        (tree.versions / f"{stem}{ending}").write_text(text, encoding="utf-8", newline="\n")
    _say(f"wrote migrations/versions/{stem}.py, .sql and .down.sql")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
