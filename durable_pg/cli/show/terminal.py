"""What reaches a terminal: no control character of anybody's, no line wider than it is, no traceback into a pipe."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TypeAlias

import typer
from rich.cells import cell_len, get_character_cell_size
from rich.console import Console
from rich.text import Text

Styled: TypeAlias = tuple[str, str]

NARROWEST = 40
# Where no terminal says how wide it is; lists are then as wide as they must be.
USUAL = 140
_NEWLINE = " ↵ "
# Controls, formats such as bidi overrides, surrogates, private use, unassigned, line and paragraph separators.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"


def shown(text: str, *, newlines: str = _NEWLINE) -> str:
    """Return the text with everything that could steer a terminal, or hide in it, written out as an escape."""
    text = text.replace("\r\n", "\n").replace("\n", newlines).replace("\t", "    ")
    if text.isprintable():
        return text
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    if character in _JOINERS or character == "\n" or unicodedata.category(character) not in _HIDDEN:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def width(text: str) -> int:
    """Return how many columns a text may take: terminals differ about emoji that are put together, so the most."""
    return len(text) if text.isascii() else max(cell_len(text), sum(map(get_character_cell_size, text)))


def fit(text: str, columns: int) -> str:
    """Cut a text to so many columns; an ellipsis says that it was."""
    return text if width(text) <= columns else _head(text, columns - 1) + "…"


def brief(text: str, columns: int) -> str:
    """Show the beginning of a text that may be very long, on one line."""
    beginning = text[: 8 * columns]
    return fit(shown(beginning) + ("…" if len(beginning) < len(text) else ""), columns)


def _head(text: str, columns: int) -> str:
    taken = 0
    for place, character in enumerate(text):
        # The sign U+FE0F makes an emoji, two columns wide, of the character before it.
        taken += 2 if text[place + 1 : place + 2] == "\ufe0f" else get_character_cell_size(character)
        if taken > columns:
            return text[:place]
    return text


def wrap(text: str, columns: int | None) -> Iterator[str]:
    """Break a text into lines of so many columns, between words where there are any; None: only at its newlines."""
    for line in text.split("\n"):
        place = 0
        while columns is not None:
            # No longer than it must be: the rest of the line may be a megabyte.
            window = line[place : place + 4 * columns]
            head = _head(window, columns) or window[:1]
            if place + len(head) == len(line):
                break
            space = head.rfind(" ")
            if space > columns // 2 and line[place + len(head)] != " ":
                head = head[: space + 1]
            yield head.rstrip()
            place += len(head)
            place += len(line[place : place + columns]) - len(line[place : place + columns].lstrip(" "))
        yield line[place:]


def share(widths: Sequence[int], columns: int, least: int = 8) -> list[int]:
    """Make room for columns side by side: the widest give first, none goes below `least` before the others."""
    given = list(widths)
    while sum(given) > columns:
        widest = max(range(len(given)), key=given.__getitem__)
        if given[widest] <= max(least, 1):
            break
        given[widest] -= 1
    return given


class Page:
    """Lines for stdout, in colour on a terminal. `columns` is None where lines may be as long as they like."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, markup=False, emoji=False)
        self.columns = max(self._console.width, NARROWEST) if sys.stdout.isatty() else None
        self._lines: list[Text] = []

    def line(self, *parts: str | Styled) -> None:
        """Add a line. Its texts must have been through `shown`."""
        line = Text.assemble(*parts)
        line.rstrip()
        self._lines.append(line)

    def print(self) -> None:
        """Print the lines and forget them."""
        with self._console.capture() as captured:
            for line in self._lines:
                self._console.print(line, soft_wrap=True)
        self._lines.clear()
        write(captured.get())


def write(text: str) -> None:
    """Write to stdout. Whoever reads it may have gone: then end as quietly as cat does."""
    if sys.stdout.errors == "strict" and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # What is left in the buffer is flushed at exit, into nothing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(141) from None


def speaks_utf8() -> bool:
    """Say whether stdout takes any character."""
    return (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf8")


def counted(number: int, what: str) -> str:
    """Write how many there are of something: 1 event, 2 events."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def lasting(span: timedelta) -> str:
    """Write how long something took: 0.4 s, 2 min 5 s, 3 h 12 min, 2 d 3 h."""
    seconds = abs(span.total_seconds())
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for large, small, unit, smaller in ((86400, 3600, "d", "h"), (3600, 60, "h", "min"), (60, 1, "min", "s")):
        if whole >= large:
            rest = whole % large // small
            return f"{whole // large} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"


def ago(span: timedelta) -> str:
    """Write how long ago something was, in one unit."""
    seconds = int(span.total_seconds())
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return f"{max(seconds, 0)} s ago"
