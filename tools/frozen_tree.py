"""sql/ as it is now, the frozen files as they were released, and the chain of digests over the latter."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import dataclass
from pathlib import Path

from durable_pg.migrate.frozen import Chunk, chunks, digest, read_text

__all__ = ["FIRST_RELEASE", "OPEN", "SEAL", "Chunk", "Tree", "digest"]

FIRST_RELEASE = "v0.1.0"
OPEN, SEAL = "schema_open.sql", "schema_seal.sql"


@dataclass(frozen=True)
class Tree:
    """A checkout, or a copy of one."""

    root: Path

    @property
    def sql(self) -> Path:
        """Where the schema is as it is now."""
        return self.root / "sql"

    @property
    def versions(self) -> Path:
        """Where the frozen files are."""
        return self.root / "migrations" / "versions"

    @property
    def chain_file(self) -> Path:
        """Where their digests are."""
        return self.root / "migrations" / "CHAIN"

    def manifest(self) -> dict[str, str]:
        """Path, as in marker lines, to text; in the order of installation."""
        found: dict[str, str] = {}
        for line in read_text(self.sql / "manifest.txt").splitlines():
            path = line.partition("#")[0].strip()
            if not path:
                continue
            text = read_text(self.sql / path)
            if not text.endswith("\n"):
                raise SystemExit(f"sql/{path} must end with a newline")
            if "\n--! " in text:
                raise SystemExit(f"sql/{path} contains a line that looks like a marker (--! ...)")
            if f"sql/{path}" in found:
                raise SystemExit(f"sql/manifest.txt names {path} twice")
            found[f"sql/{path}"] = text
        return found

    def revisions(self) -> list[str]:
        """The stems of all revisions, such as 0001_baseline, in order."""
        return sorted(path.name.removesuffix(".py") for path in self.versions.glob("[0-9]*.py"))

    def frozen(self) -> dict[str, Chunk]:
        """The latest frozen state of each file that has one; files that were dropped are absent."""
        latest: dict[str, Chunk] = {}
        for stem in self.revisions():
            path = self.versions / f"{stem}.sql"
            for chunk in chunks(read_text(path), path.name):
                if chunk.kind == "dropped":
                    latest.pop(chunk.path, None)
                elif chunk.kind == "copy":
                    latest[chunk.path] = chunk
                else:
                    # The text that was frozen before is of no use any more; only the digest counts.
                    latest[chunk.path] = Chunk("by hand", chunk.path, chunk.digest, "")
        return latest

    def differences(self) -> dict[str, str]:
        """Marker path to "new", "changed" or "removed"."""
        manifest, frozen = self.manifest(), self.frozen()
        found = {}
        for path, text in manifest.items():
            if path not in frozen:
                found[path] = "new"
            elif frozen[path].digest != digest(text):
                found[path] = "changed"
        found.update({path: "removed" for path in frozen if path not in manifest})
        return found

    def sealed_files(self) -> list[Path]:
        """Every file of every revision, in order."""
        found = []
        for stem in self.revisions():
            found += [self.versions / f"{stem}{ending}" for ending in (".py", ".sql", ".down.sql")]
        return [path for path in found if path.is_file()]

    def chain(self) -> list[str]:
        """What CHAIN must hold: a line for each frozen file, its digest taken over the one before it and the bytes."""
        previous, lines = "", []
        for path in self.sealed_files():
            previous = hashlib.sha256(previous.encode() + path.read_bytes()).hexdigest()
            lines.append(f"{path.name} {previous}")
        return lines

    def recorded_chain(self) -> list[str]:
        """What CHAIN holds."""
        return read_text(self.chain_file).splitlines() if self.chain_file.is_file() else []

    def write_chain(self) -> None:
        """Record the chain as it is now."""
        self.chain_file.write_text("".join(f"{line}\n" for line in self.chain()), encoding="utf-8")

    def chain_faults(self) -> list[str]:
        """Where CHAIN and the frozen files disagree."""
        now, recorded = self.chain(), self.recorded_chain()
        faults = [
            f"{new.split()[0]} is not what CHAIN recorded (a frozen file is never edited after its release)"
            for new, old in zip(now, recorded, strict=False)
            if new != old
        ][:1]
        if len(now) != len(recorded):
            faults.append(f"CHAIN records {len(recorded)} files, there are {len(now)}")
        return faults

    def released(self) -> bool:
        """Whether the first release is tagged: from then on frozen files stay as they are."""
        try:
            done = subprocess.run(  # noqa: S603
                ["git", "-C", str(self.root), "tag", "--list", FIRST_RELEASE],  # noqa: S607
                capture_output=True,
                text=True,
                check=False,
            )
        except FileNotFoundError:
            return False
        return done.stdout.strip() == FIRST_RELEASE
