"""Write durable_pg/errors.py from sql/errcodes.txt. `--check` only compares."""

import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "durable_pg" / "errors.py"
BASES = {"22": "BadInput", "23": "Conflict", "42": "AccessRefused", "55": "WrongState"}
# Carries more than a refusal does.
OWN_BASES = {"RunSettled": "SettledRun", "EffectInFlight": "HeldEffect"}
BY_HAND = (
    *("DurableError", "Refused", "BadInput", "Conflict", "AccessRefused", "WrongState"),
    *("ConnectionFault", "CannotConnect", "PoolExhausted", "PoolNotOpen", "ConnectionLost"),
    *("CallCancelled", "LockTimeout", "ReadOnly", "TryAgain"),
    *("SetupError", "SchemaMissing", "SchemaOlder", "RoleMissing", "JsonNotReadable", "UnexpectedError"),
)
OF_RUNS = (
    *("RunBusy", "RunAwaiting", "PoolNeeded", "CheckpointNewer", "CheckpointUpgradeMissing"),
    *("EffectError", "EffectFailed", "EffectUnverified", "EffectDiverged", "EffectTimedOut"),
)
HEAD = '''"""The errors of the client: one class for each SQLSTATE of durable_pg, and those that have none.

Generated from sql/errcodes.txt by tools/generate_errors.py: change those. What every error carries is in _errors.py,
what runs and effects raise by themselves in _run_errors.py.
"""

from durable_pg._errors import (
{imports})
from durable_pg._run_errors import (
{of_runs})

__all__ = [
{names}]

'''
CLASS = '''
class {title}({base}):
    """{meaning}"""

    sqlstate = "{sqlstate}"
    name = "{name}"
    rule = "{rule}"

'''
FOOT = """
BY_SQLSTATE: dict[str, type[Refused]] = {{
{pairs}}}
"""


class ErrorCode(NamedTuple):
    """One line of sql/errcodes.txt."""

    sqlstate: str
    name: str
    rule: str
    meaning: str

    @property
    def title(self) -> str:
        """The name of its class."""
        return "".join(word.title() for word in self.name.split("_"))


def registry() -> list[ErrorCode]:
    """Read the registry of SQLSTATEs."""
    lines = (ROOT / "sql/errcodes.txt").read_text("utf-8").splitlines()
    return [ErrorCode(*line.split(maxsplit=3)) for line in lines if line and not line.startswith("#")]


def module() -> str:
    """Return the text of the generated module."""
    codes = registry()
    names = sorted([*BY_HAND, *OF_RUNS, "BY_SQLSTATE", *(code.title for code in codes)], key=_isort)
    text = HEAD.format(
        imports=_listed(BY_HAND),
        of_runs=_listed((*OF_RUNS, *OWN_BASES.values())),
        names="".join(f'    "{name}",\n' for name in names),
    )
    text += "".join(_class(code) for code in codes)
    return text + FOOT.format(pairs="".join(f'    "{code.sqlstate}": {code.title},\n' for code in codes))


def _listed(names: tuple[str, ...]) -> str:
    return "".join(f"    {name},\n" for name in sorted(names))


def _isort(name: str) -> tuple[bool, str]:
    """Constants first, as ruff sorts __all__."""
    return not name.isupper(), name


def _class(code: ErrorCode) -> str:
    rule = "" if code.rule == "-" else code.rule
    base = OWN_BASES.get(code.title) or BASES[code.sqlstate[:2]]
    return CLASS.format(
        title=code.title, base=base, meaning=code.meaning, sqlstate=code.sqlstate, name=code.name, rule=rule
    )


def main() -> int:
    """Write or compare the module; returns the exit code."""
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(module(), "utf-8")
    elif TARGET.read_text("utf-8") != module():
        sys.stderr.write("out of date: durable_pg/errors.py; run python tools/generate_errors.py\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
