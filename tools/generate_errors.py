"""Write the classes of the SQLSTATEs in durable_pg/errors.py from sql/errcodes.txt. `--check` only compares."""

import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "durable_pg" / "errors.py"
MARK = "# From here on written by tools/generate_errors.py, from sql/errcodes.txt.\n"
BASES = {"22": "BadInput", "23": "Conflict", "42": "AccessRefused", "55": "WrongState"}
# Carries more than a refusal does.
OWN_BASES = {"RunSettled": "SettledRun", "EffectInFlight": "HeldEffect"}
CLASS = '''

class {title}({base}, sqlstate="{sqlstate}", name="{name}", rule="{rule}"):
    """{meaning}"""
'''


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


def module(text: str) -> str:
    """Return the module with its last part as the registry has it."""
    by_hand, mark, _ = text.partition(MARK)
    if not mark:
        raise SystemExit(f"{TARGET.name} has lost the line: {MARK.strip()}")
    return by_hand + MARK + "".join(map(_class, registry()))


def _class(code: ErrorCode) -> str:
    rule = "" if code.rule == "-" else code.rule
    base = OWN_BASES.get(code.title) or BASES[code.sqlstate[:2]]
    return CLASS.format(
        title=code.title, base=base, meaning=code.meaning, sqlstate=code.sqlstate, name=code.name, rule=rule
    )


def main() -> int:
    """Write or compare the module; returns the exit code."""
    before = TARGET.read_text("utf-8")
    now = module(before)
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(now, "utf-8")
    elif before != now:
        sys.stderr.write("out of date: durable_pg/errors.py; run python tools/generate_errors.py\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
