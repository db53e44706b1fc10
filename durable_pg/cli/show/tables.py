"""Lists of runs, sessions, effects and tools: a line each where there is room, else two; uids are never cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from durable_pg.cli.read import EffectDetails, RunSummary, SessionSummary, StoredTool, View
from durable_pg.cli.show.terminal import Page, ago, brief, fit, lasting, share, shown, width

# Below so many columns a row takes two lines.
_ONE_LINE = 130
_BETWEEN = " · "
STATUS_STYLES = {
    "running": "yellow",
    "lease over": "red",
    "interrupted": "red",
    "awaiting": "cyan",
    "succeeded": "green",
    "failed": "red",
    "cancelled": "magenta",
}
_EFFECT_STYLES = {"begun": "yellow", "succeeded": "green", "failed": "red", "unverified": "magenta"}
_ARGS = 60


@dataclass(frozen=True)
class Row:
    """What always fits, and what may be cut."""

    fixed: Sequence[str]
    names: Sequence[str]
    style: str = ""


def print_runs(page: Page, runs: Sequence[RunSummary], view: View, now: datetime) -> None:
    """Add a list of runs."""
    titles = ("SESSION", "USER", "INVOCATION", "TOOLS")
    rows = []
    for run in runs:
        names = (f"{run.app_name}/{run.session_id}", run.user_id, invocation(run), tools(run))
        took = lasting(run.duration) if run.duration is not None else "..."
        fixed = (str(run.run_uid), status(run), ago(now - run.started_at), took)
        rows.append(_row_of(view, run.tenant_id, fixed, names, STATUS_STYLES.get(status(run), "")))
    _print_rows(page, ("RUN", "STATUS", "STARTED", "TOOK"), _titles_for(view, titles), rows)


def print_sessions(page: Page, sessions: Sequence[SessionSummary], view: View, now: datetime) -> None:
    """Add a list of sessions."""
    rows = []
    for session in sessions:
        active = "closed" if session.closed_at else "active"
        when = ago(now - (session.closed_at or session.updated_at))
        fixed = (str(session.session_uid), str(session.last_seq), f"{active} {when}")
        names = (f"{session.app_name}/{session.session_id}", session.user_id, f"since {session.created_at:%Y-%m-%d}")
        rows.append(_row_of(view, session.tenant_id, fixed, names, ""))
    _print_rows(page, ("SESSION", "EVENTS", "LAST"), _titles_for(view, ("NAME", "USER", "OPENED")), rows)


def print_effects(page: Page, effects: Sequence[EffectDetails], view: View, now: datetime) -> None:
    """Add a list of effects."""
    rows = []
    for effect in effects:
        name = effect.intent if effect.intent is not None else f"run {str(effect.run_uid)[:13]} step {effect.step}"
        names = (effect.tool, name, effect.user_id, brief(effect.args.text, _ARGS) if effect.args else "-")
        fixed = (str(effect.effect_uid), effect.status, ago(now - effect.first_begun_at))
        rows.append(_row_of(view, effect.tenant_id, fixed, names, _EFFECT_STYLES.get(effect.status, "")))
    _print_rows(page, ("EFFECT", "STATUS", "BEGUN"), _titles_for(view, ("TOOL", "INTENT", "USER", "ARGS")), rows)


def print_tools(page: Page, tools: Sequence[StoredTool], view: View, now: datetime) -> None:
    """Add a list of tools, with what became of them where they were declared."""
    rows = []
    for tool in tools:
        what = f"{ago(now - tool.updated_at)}" if tool.outcome == "stored" else tool.outcome
        names = (tool.app_name, tool.tool)
        rows.append(_row_of(view, tool.tenant_id, (tool.replay_class, what), names, ""))
    _print_rows(page, ("CLASS", "WRITTEN"), _titles_for(view, ("APP", "TOOL")), rows)


def status(run: RunSummary) -> str:
    """Name where the run stands; a running one that nobody holds any more is not running."""
    return "lease over" if run.lease_over else run.status


def invocation(run: RunSummary) -> str:
    """Name the invocation, with its generation where a rewind made a second one."""
    return f"{run.invocation_id} (generation {run.generation})" if run.generation else run.invocation_id


def tools(run: RunSummary) -> str:
    """Name the tools of a run in few words."""
    if run.tools_executed is None:
        return "unknown" if run.settled_at else "-"
    return ", ".join(run.tools_executed) or "none"


def _titles_for(view: View, titles: Sequence[str]) -> Sequence[str]:
    """Put the tenant first where several are shown."""
    return titles if view.tenant is not None else ("TENANT", *titles)


def _row_of(view: View, tenant: str, fixed: Sequence[str], names: Sequence[str], style: str) -> Row:
    """Make a row, with its tenant where several are shown, of texts that are safe to show."""
    names = names if view.tenant is not None else (tenant, *names)
    return Row(fixed, [shown(name) for name in names], style)


def _print_rows(page: Page, fixed: Sequence[str], names: Sequence[str], rows: Sequence[Row]) -> None:
    """Add rows under their titles: of what always fits, and of what may be cut."""
    widths = [max(map(width, column)) for column in zip(fixed, *(row.fixed for row in rows), strict=True)]
    natural = [max(map(width, column)) for column in zip(names, *(row.names for row in rows), strict=True)]
    one_line = page.columns is None or page.columns >= _ONE_LINE
    if page.columns is not None and one_line:
        natural = share(natural, page.columns - sum(widths) - 2 * (len(widths) + len(natural) - 1))
    for row in (Row(fixed, names, "dim"), *rows):
        left = [_padded(text, room) for text, room in zip(row.fixed, widths, strict=True)]
        is_title = row.fixed is fixed
        if one_line:
            right = [_padded(fit(text, room), room) for text, room in zip(row.names, natural, strict=True)]
            page.line(*_styled(left, row.style, is_title), ("  " + "  ".join(right), "dim" if is_title else ""))
            continue
        page.line(*_styled(left, row.style, is_title))
        room = (page.columns or 0) - 4 - len(_BETWEEN) * (len(row.names) - 1)
        given = share([width(text) for text in row.names], room)
        text = _BETWEEN.join(fit(text, columns) for text, columns in zip(row.names, given, strict=True))
        page.line(("    " + fit(text, (page.columns or 0) - 4), "dim"))


def _styled(left: Sequence[str], style: str, is_title: bool) -> list[tuple[str, str]]:
    """Colour the second column, which tells how it went."""
    if is_title:
        return [("  ".join(left), "dim")]
    return [(left[0] + "  ", "bold"), (left[1], style), ("  " + "  ".join(left[2:]), "")]


def _padded(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))
