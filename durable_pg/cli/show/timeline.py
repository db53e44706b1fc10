"""A run, and a session's log, as lines that a person reads at 3 a.m."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from durable_pg.cli.read import JsonText, LoggedEvent, Piece, SessionOverview, Timeline, View, read_pieces
from durable_pg.cli.show.advice import in_words, lease_in_words, next_steps, tools_in_words
from durable_pg.cli.show.tables import STATUS_STYLES, print_runs, status
from durable_pg.cli.show.terminal import USUAL, Page, ago, brief, counted, fit, lasting, shown, width, wrap

# A silence is shown from here on.
_GAP = timedelta(seconds=30)
# Time between what the caller says and when it was recorded: below this it is the way to the database.
_LATE = timedelta(minutes=1)
# Ours and at the front, so that no text can pass itself off as a tool call.
_SIGNS = {"text": ("» ", ""), "thought": ("~ ", "dim"), "call": ("→ ", "cyan"), "result": ("← ", "green")}
_LABEL = 12
_SHORT_LINES, _ERROR_LINES = 3, 12


@dataclass(frozen=True)
class Entry:
    """A line of the log to be: when, which event, who, and what; without an event it is a mark of ours."""

    at: datetime
    time: str
    event: LoggedEvent | None = None
    mark: str = ""
    note: str = ""


def print_run(page: Page, timeline: Timeline, *, full: bool) -> None:
    """Add the whole story of a run: what it is, what went in, what happened, what came out, what to do."""
    run = timeline.run
    page.line(("run ", "dim"), (str(run.run_uid), "bold"), "  ", (status(run), STATUS_STYLES.get(status(run), "")))
    labelled(page, "tenant", run.tenant_id)
    labelled(page, "user", run.user_id)
    labelled(page, "session", f"{run.app_name}/{run.session_id}")
    labelled(page, "", str(run.session_uid))
    labelled(page, "invocation", f"{run.invocation_id}, generation {run.generation}")
    limit = f" (at most {run.max_attempts})" if run.max_attempts is not None else ""
    labelled(page, "attempt", f"{run.attempt}{limit}, triggered by {run.trigger}")
    if run.settled_at is None:
        labelled(page, "lease", lease_in_words(timeline))
    labelled(page, "started", f"{moment(run.started_at)} ({ago(timeline.read_at - run.started_at)})")
    settled = f"{moment(run.settled_at)}, after {lasting(run.duration)}" if run.settled_at and run.duration else "no"
    labelled(page, "settled", settled)
    labelled(page, "tools", tools_in_words(timeline))
    block(page, "input", run.input, full=full, most=_SHORT_LINES)
    page.line()
    _count(page, timeline)
    print_log(page, list(_entries_of_run(timeline)), full=full)
    if run.result is not None or run.status == "succeeded":
        block(page, "result", run.result, full=full, most=_SHORT_LINES)
    block(page, "error", run.error, full=full, most=_ERROR_LINES, style="red")
    block(page, "interrupted with", run.interrupted_with, full=full, most=_ERROR_LINES, style="red")
    page.line()
    labelled(page, "send again", in_words(timeline.retry_verdict))
    labelled(page, "replay", in_words(timeline.replay_verdict))
    for place, step in enumerate(next_steps(timeline)):
        labelled(page, "" if place else "next", step)


def print_session(page: Page, whole: SessionOverview, view: View, *, full: bool) -> None:
    """Add a session: its state, its runs, and the latest of what was said."""
    session, now = whole.session, whole.read_at
    is_open = session.closed_at is None
    page.line(("session ", "dim"), (str(session.session_uid), "bold"), "  ", "open" if is_open else ("closed", "red"))
    labelled(page, "name", f"{session.app_name}/{session.session_id}")
    labelled(page, "tenant", session.tenant_id)
    labelled(page, "user", session.user_id)
    labelled(page, "opened", f"{moment(session.created_at)} ({ago(now - session.created_at)})")
    labelled(page, "last active", f"{moment(session.updated_at)} ({ago(now - session.updated_at)})")
    if session.closed_at is not None:
        labelled(page, "closed", f"{moment(session.closed_at)}, reason: {session.close_reason or 'none given'}")
    rewinds = f", {session.rewinds} of them rewinds" if session.rewinds else ""
    labelled(page, "revision", f"{session.revision}, {counted(session.last_seq, 'event')}{rewinds}")
    block(page, "state (its own; app: and user: are shared)", session.state, full=full, most=6)
    page.line()
    if whole.runs:
        page.line(("runs, the newest", "dim"))
        print_runs(page, whole.runs, view, now)
    else:
        page.line(("runs: none", "dim"))
    page.line()
    if whole.events:
        page.line((f"events, the latest {len(whole.events)} of {session.last_seq}", "dim"))
        print_log(page, list(_entries_of_session(whole)), full=full)
    else:
        page.line(("events: none is recorded", "dim"))


def print_log(page: Page, entries: Sequence[Entry], *, full: bool) -> None:
    """Add events in order, and the silences between them."""
    columns = page.columns or USUAL
    # A narrow terminal wraps rather than seeing nothing.
    least = 20
    seqs = max((width(str(entry.event.seq)) for entry in entries if entry.event), default=1) + 1
    times = max((width(entry.time) for entry in entries), default=0)
    authors = max((width(shown(entry.event.author)) for entry in entries if entry.event), default=0)
    authors = min(authors, 14 if columns < 100 else 24)
    indent = 2 + seqs + 2 + times + 2 + authors + 2
    before: datetime | None = None
    for entry in entries:
        if before is not None and entry.at - before >= _GAP:
            page.line((" " * (2 + seqs + 2) + f"… {lasting(entry.at - before)} nothing …", "yellow"))
        before = entry.at
        seq = f"#{entry.event.seq}" if entry.event else ""
        who = fit(shown(entry.event.author), authors) if entry.event else ""
        left = f"  {seq:>{seqs}}  {entry.time:>{times}}  {who}{' ' * (authors - width(who))}  "
        for place, (text, style) in enumerate(_texts(entry, None if full else max(columns - indent, least))):
            for line in wrap(text, page.columns and max(page.columns - indent, least)) if full else [text]:
                page.line((left if place == 0 else " " * indent, "dim"), (line, style))
                left = " " * indent


def labelled(page: Page, label: str, text: str) -> None:
    """Add a line of the header, broken where it is too long."""
    columns = page.columns and page.columns - _LABEL - 1
    for line in wrap(shown(text), columns):
        page.line((f"{label:<{_LABEL}} ", "dim"), line)
        label = ""


def block(page: Page, title: str, value: JsonText | None, *, full: bool, most: int, style: str = "") -> None:
    """Add a JSON value under a title, no more than `most` lines of it unless it is to be full."""
    if value is None:
        return
    page.line()
    page.line((title, "dim"))
    columns = (page.columns or USUAL) - 2
    if full:
        lines = list(wrap(shown(value.text, newlines="\n"), page.columns and columns))
    else:
        lines = list(wrap(shown(value.text[: columns * (most + 1)]), columns))
        if len(lines) > most:
            lines = [*lines[: most - 1], fit(lines[most - 1] + "…", columns - 13) + " (see --full)"]
    for line in lines:
        page.line("  ", (line, style))


def moment(at: datetime) -> str:
    """Write a time, in UTC."""
    return f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03} UTC"


def _count(page: Page, timeline: Timeline) -> None:
    shown_, all_ = len(timeline.events), timeline.events_recorded
    if shown_ < all_:
        page.line((f"events, the latest {shown_} of {all_} (--events 0: all)", "dim"))
    else:
        page.line((f"events ({all_})" if all_ else "events: none is recorded", "dim"))


def _entries_of_run(timeline: Timeline) -> Iterator[Entry]:
    run = timeline.run
    marks = [Entry(run.started_at, "+0.0 s", mark="run started")]
    end = run.settled_at or timeline.read_at
    marks.append(Entry(end, _offset(end - run.started_at), mark=f"settled: {run.status}" if run.settled_at else "now"))
    attempt = None
    for event in timeline.events:
        # seq is the only order: a mark goes before the first event that was recorded after it.
        while marks and marks[0].at < event.recorded_at:
            yield marks.pop(0)
        notes = [f"generation {event.generation}"] if event.generation != run.generation else []
        # Who answers for it has changed: the run was taken up.
        if event.attempt is not None and attempt is not None and event.attempt != attempt:
            notes.append(f"attempt {event.attempt}")
        attempt = event.attempt or attempt
        yield Entry(event.recorded_at, _offset(event.recorded_at - run.started_at), event, note=", ".join(notes))
    yield from marks


def _entries_of_session(whole: SessionOverview) -> Iterator[Entry]:
    invocation: str | None = None
    for event in whole.events:
        if event.invocation_id != invocation:
            invocation = event.invocation_id
            yield Entry(
                event.recorded_at, "", mark=f"invocation {shown(invocation)}" if invocation else "no invocation"
            )
        yield Entry(event.recorded_at, f"{event.recorded_at:%m-%d %H:%M:%S}", event)


def _offset(span: timedelta) -> str:
    return ("-" if span <= timedelta(milliseconds=-50) else "+") + lasting(span)


def _texts(entry: Entry, columns: int | None) -> Iterable[tuple[str, str]]:
    """Say what an entry holds, a line a piece; `columns` None: whole."""
    if entry.event is None:
        return [(f"── {entry.mark} ──", "dim")]
    event = entry.event
    notes = ", ".join(_notes(entry, event))
    texts = [_said(piece, columns) for piece in read_pieces(event)]
    if columns is None and event.metadata.text != "{}":
        texts.append((f"metadata {shown(event.metadata.text)}", "dim"))
    if not notes:
        return texts or [("(says nothing)", "dim")]
    if not texts or columns is None or len(notes) > columns // 3:
        return [*((line, "yellow") for line in wrap(f"[{notes}]", columns)), *texts]
    text, style = texts[0]
    return [(fit(f"[{notes}] {text}", columns), style), *texts[1:]]


def _notes(entry: Entry, event: LoggedEvent) -> Iterator[str]:
    if entry.note:
        yield entry.note
    if event.opening:
        yield "opening"
    if event.repeatable:
        yield "repeatable"
    if event.rewind_to is not None:
        yield f"rewinds to before #{event.rewind_to}"
    if event.rewound_by is not None:
        yield f"taken back by #{event.rewound_by}"
    if abs(event.recorded_at - event.occurred_at) >= _LATE:
        yield f"said to be of {moment(event.occurred_at)}"


def _said(piece: Piece, columns: int | None) -> tuple[str, str]:
    sign, style = _SIGNS.get(piece.kind, ("· ", "dim"))
    name = f"{piece.name} " if piece.name else ""
    text = f"{name}{piece.body}"
    if columns is None:
        return sign + shown(text, newlines="\n"), style
    return sign + brief(text, columns - 2), style
