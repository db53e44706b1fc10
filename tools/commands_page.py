"""The page of the command line, out of the commands themselves. Used by generate_pages.py."""

import re
from typing import Any

import typer

from durable_pg.cli import app


def commands_page() -> str:
    """Describe every command with its arguments and options."""
    root: Any = typer.main.get_command(app)
    page = [
        "# The command line",
        "",
        "Generated from the commands' own help by `tools/generate_pages.py`; `durable-pg COMMAND --help` says the",
        "same.",
        "",
        *_paragraphs(root.help),
    ]
    for name, command in root.commands.items():
        page += _described(f"durable-pg {name}", command)
    return "\n".join(page).rstrip() + "\n"


def _described(name: str, command: Any) -> list[str]:
    page = ["", f"## {name}", "", *_paragraphs(command.help)]
    for subname, sub in getattr(command, "commands", {}).items():
        page += _described(f"{name} {subname}", sub)
    parameters = [parameter for parameter in command.params if parameter.name != "help"]
    if parameters:
        page += ["", "| | |", "|---|---|"]
        page += [f"| `{_signature(parameter)}` | {_help(parameter)} |" for parameter in parameters]
    return page


def _paragraphs(text: str | None) -> list[str]:
    paragraphs = re.split(r"\n\s*\n", (text or "").strip())
    lines: list[str] = []
    for paragraph in paragraphs:
        # A paragraph that begins with \b stands as it is: an example.
        if paragraph.startswith("\b"):
            lines += ["```sh", *(line.strip() for line in paragraph.splitlines()[1:]), "```", ""]
        else:
            lines += [" ".join(paragraph.split()), ""]
    return lines[:-1]


def _signature(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    return names if parameter.is_flag else f"{names} {parameter.metavar or 'VALUE'}"


def _help(parameter: Any) -> str:
    text = " ".join((parameter.help or "").split()).replace("|", "\\|")
    if parameter.envvar:
        text += f" [{parameter.envvar}]"
    default = getattr(parameter.default, "value", parameter.default)
    if isinstance(default, (int, float, str)) and not isinstance(default, bool) and default != "":
        text += f" Default: {default:g}." if isinstance(default, (int, float)) else f" Default: {default}."
    return text.strip()
