"""Where the files of a server may be. Needs nothing but the standard library."""

from __future__ import annotations

import tempfile
from pathlib import Path

# pg_ctl and initdb put these paths between double quotes into a shell's command line.
FORBIDDEN = frozenset('"$`\\\n')
# The path of a server's socket has to fit in 100 characters.
LONGEST_BASE = 55


def temporary_base() -> Path:
    """The directory for temporary servers: the system's, or /tmp where that one can't hold a socket."""
    base = tempfile.gettempdir()
    unfit = len(base) > LONGEST_BASE or FORBIDDEN.intersection(base)
    return Path("/tmp" if unfit else base)  # noqa: S108  # what is made in it has a random name
