"""Lists of effects and tools."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from durable_pg.cli._lists import print_rows, row_of, titles_for
from durable_pg.cli._terminal import Page, ago, brief
from durable_pg.inspection import Effect, Tool, View

_STYLES = {"begun": "yellow", "succeeded": "green", "failed": "red", "unverified": "magenta"}
_ARGS = 60


def print_effects(page: Page, effects: Sequence[Effect], view: View, now: datetime) -> None:
    """Add a list of effects."""
    rows = []
    for effect in effects:
        name = effect.intent if effect.intent is not None else f"run {str(effect.run_uid)[:13]} step {effect.step}"
        names = (effect.tool, name, effect.user_id, brief(effect.args.text, _ARGS) if effect.args else "-")
        fixed = (str(effect.effect_uid), effect.status, ago(now - effect.first_begun_at))
        rows.append(row_of(view, effect.tenant_id, fixed, names, _STYLES.get(effect.status, "")))
    print_rows(page, ("EFFECT", "STATUS", "BEGUN"), titles_for(view, ("TOOL", "INTENT", "USER", "ARGS")), rows)


def print_tools(page: Page, tools: Sequence[Tool], view: View, now: datetime) -> None:
    """Add a list of tools, with what became of them where they were declared."""
    rows = []
    for tool in tools:
        what = f"{ago(now - tool.updated_at)}" if tool.outcome == "stored" else tool.outcome
        names = (tool.app_name, tool.tool)
        rows.append(row_of(view, tool.tenant_id, (tool.replay_class, what), names, ""))
    print_rows(page, ("CLASS", "WRITTEN"), titles_for(view, ("APP", "TOOL")), rows)
