"""The directory of a server that stays: whose it is, who works in it, and what is kept beside the data."""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from durable_pg._embedded.cluster import free_port
from durable_pg._embedded.errors import ServerError
from durable_pg._embedded.places import FORBIDDEN
from durable_pg._embedded.programs import SYSTEM_USER, run_as, server_user

# Its presence says that durable-pg made the directory. Readable by its owner only: it holds the passwords.
KEPT, LOCK, DATA = "durable-pg.json", "durable-pg.lock", "data"
MADE_BY = "durable-pg up"


@dataclass(frozen=True)
class Kept:
    """What stays the same from one start to the next."""

    port: int
    passwords: dict[str, str]


class Removed(ServerError):
    """Another process has removed the directory."""


class Home:
    """A directory for one server. ServerError for one that durable-pg did not make, and nothing in it is touched."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.resolve()
        self.data = self.directory / DATA
        if FORBIDDEN.intersection(str(self.directory)):
            raise _unfit(f"{self.directory}: the name holds one of {' '.join(sorted(FORBIDDEN - {chr(10)}))}")
        self._require_ours()

    @property
    def exists(self) -> bool:
        """Whether up() made this directory."""
        return self._read() is not None

    @contextmanager
    def locked(self, tell: Callable[[str], None], *, make: bool = False) -> Iterator[int]:
        """Work in the directory alone; a second process waits. Yields the lock's file descriptor.

        `make`: make the directory if it is not there.
        """
        descriptor = self._lock(tell, make=make)
        try:
            self._require_ours()
            yield descriptor
        finally:
            # Closed and not unlocked: an initdb that outlives a killed up() holds it until it ends.
            os.close(descriptor)

    def _lock(self, tell: Callable[[str], None], *, make: bool) -> int:
        file = self.directory / LOCK
        while True:
            if make:
                self._make()
            try:
                descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            except FileNotFoundError:
                if make:
                    continue
                raise Removed(f"{self.directory} was removed meanwhile") from None
            try:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    tell("Waiting for another durable-pg that is at work here")
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
                # Whoever held it may have removed it, and a third process made a new one.
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(descriptor), file.stat()):
                        return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)

    def kept(self) -> Kept | None:
        """Read what is kept; None where nothing was made."""
        facts = self._read()
        return Kept(int(facts["port"]), dict(facts["passwords"])) if facts else None

    def _read(self) -> dict[str, Any] | None:
        try:
            facts = json.loads((self.directory / KEPT).read_text(encoding="utf-8"))
            return facts if facts["made_by"] == MADE_BY else None
        except (FileNotFoundError, NotADirectoryError, ValueError, LookupError, TypeError):
            return None

    def keep(self, port: int | None, logins: Sequence[str]) -> Kept:
        """Return what is kept, after adding what is missing: a port, and a password for each login."""
        before = self.kept()
        chosen = port or (before.port if before else free_port())
        known = before.passwords if before else {}
        kept = Kept(chosen, {login: known.get(login) or secrets.token_urlsafe(24) for login in logins})
        if kept != before:
            self._write({"made_by": MADE_BY, **asdict(kept)})
        return kept

    def remove(self) -> None:
        """Remove what is beside the data, and the directory if nothing else is in it."""
        for name in (f"{KEPT}.new", KEPT, LOCK):
            (self.directory / name).unlink(missing_ok=True)
        with suppress(OSError):
            self.directory.rmdir()

    def _write(self, facts: dict[str, object]) -> None:
        new = self.directory / f"{KEPT}.new"
        new.unlink(missing_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(facts, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        new.rename(self.directory / KEPT)

    def _make(self) -> None:
        """Make the directory and those above it; never change one that was there, but for its own when root's server
        could not enter it.
        """
        missing = [path for path in (self.directory, *self.directory.parents) if not path.exists()]
        existing = self.directory.parent if not missing else missing[-1].parent
        self._require_enterable(existing)
        user = server_user()
        for path in reversed(missing):
            path.mkdir(mode=0o700 if path == self.directory else 0o777, exist_ok=True)
        for path in (*missing, self.directory) if user else ():
            path.chmod(path.stat().st_mode | 0o111)

    def _require_enterable(self, path: Path) -> None:
        user = server_user()
        if user and run_as(user, ["/bin/sh", "-c", 'cd -- "$1"', "sh", str(path)]).returncode:
            raise _unfit(
                f"root runs the server as the system user {SYSTEM_USER}, who can't enter {path}",
                hint="Choose a directory outside of it, such as /var/lib/durable-pg.",
            )

    def _require_ours(self) -> None:
        if not self.directory.exists():
            return
        if not self.directory.is_dir():
            raise _unfit(f"{self.directory} is no directory")
        owner = self.directory.stat().st_uid
        if owner != os.geteuid():
            raise _unfit(f"{self.directory} belongs to {_name(owner)}", hint="Run this as that user, or --directory.")
        if self.exists:
            return
        if others := {path.name for path in self.directory.iterdir()} - {LOCK, f"{KEPT}.new"}:
            raise _unfit(
                f"{self.directory} was not made by durable-pg up and is not empty: {', '.join(sorted(others)[:3])}",
                hint="It is left as it is. Give --directory a new one, or an empty one.",
            )


def _unfit(message: str, hint: str = "Give another --directory.") -> ServerError:
    return ServerError(message, hint=hint, exit_code=2)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
