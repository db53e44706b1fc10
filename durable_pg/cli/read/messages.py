"""What a message says, part by part, in the formats that the database reads: ADK and Gemini, OpenAI, Anthropic.

For showing only: which tools were called is what the database found (`LoggedEvent.tool_calls`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from durable_pg.cli.read.events import LoggedEvent

Kind = Literal["text", "thought", "call", "result", "other"]
_CALLS = ("function_call", "functionCall", "tool_call", "toolCall", "executable_code", "executableCode")
_RESULTS = (
    *("function_response", "functionResponse", "tool_response", "toolResponse"),
    *("code_execution_result", "codeExecutionResult"),
)
# Other items of OpenAI Responses are called by their type: web_search_call.
_NAMED_CALLS = ("function_call", "custom_tool_call", "mcp_call", "tool_call", "_call")
_ENVELOPES = ("output", "choices", "candidates")
_BODIES = ("arguments", "args", "input", "output", "response", "result", "content", "action", "code")


@dataclass(frozen=True)
class Piece:
    """A part of a message: a text, a thought, a tool's call with its arguments, a tool's answer, or anything else."""

    kind: Kind
    name: str
    body: str


class _Number(str):
    """A number as it was written."""

    __slots__ = ()


def read_pieces(event: LoggedEvent) -> list[Piece]:
    """Return the parts of what the event says, and a call for each recorded tool that is not among them."""
    pieces = read_content(event.content.text) if event.content is not None else []
    missing = Counter(event.tool_calls) + Counter(event.extra_tool_calls)
    missing -= Counter(piece.name for piece in pieces if piece.kind == "call")
    return pieces + [Piece("call", name, "") for name in missing.elements()]


def read_content(text: str) -> list[Piece]:
    """Return the parts of a message, given as JSON."""
    try:
        # As text, so that no digit is lost and no number is too long.
        content = json.loads(text, parse_float=_Number, parse_int=_Number)
        return list(_message(content))
    except RecursionError:
        return [Piece("other", "", text)]


def compact(value: Any) -> str:
    """Write JSON on one line, as _Number and the rest of what read_content parses."""
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_quoted(key)}: {compact(found)}" for key, found in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(compact, value)) + "]"
    return _quoted(value)


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _message(value: Any) -> Iterator[Piece]:
    if isinstance(value, list):
        for item in value:
            yield from _message(item)
        return
    if not isinstance(value, dict):
        yield from _part(value)
        return
    envelope = next((value[name] for name in _ENVELOPES if isinstance(value.get(name), list)), None)
    if envelope is not None and not value.keys() & {"role", "content", "parts", "type"}:
        yield from _message(envelope)
    elif isinstance(value.get("message"), dict) and not value.keys() & {"role", "parts", "type"}:
        yield from _message(value["message"])
    elif value.get("role") in ("tool", "function"):  # a role may be a list
        yield Piece("result", _name(value, "name", "tool_call_id"), _plain(value.get("content")))
        yield from (piece for piece in _inside(value) if piece.kind == "call")
    elif value.keys() & {"role", "parts", "tool_calls"} or _is_bare_message(value):
        yield from _inside(value)
    else:
        yield from _part(value)


def _is_bare_message(value: dict[str, Any]) -> bool:
    return "content" in value and value.get("type", "message") == "message"


def _inside(message: dict[str, Any]) -> Iterator[Piece]:
    # Beside a role, function_call belongs to an OpenAI chat message.
    fields = {key: found for key, found in message.items() if key != "function_call"}
    kind = message["type"] if isinstance(message.get("type"), str) else ""
    marked = _by_type(message, kind) or _by_key(fields if "role" in message else message)
    if marked is not None:
        yield marked
    in_blocks = []
    for name in ("parts", "content", "refusal", "audio"):
        body = message.get(name)
        if name == "content" and isinstance(body, dict) and "parts" in body:
            body = body["parts"]
        for part in body if isinstance(body, list) else [body]:
            for piece in _part(part):
                in_blocks.append((_first(part, "call_id", "id"), piece.name))
                yield piece
    calls = message.get("tool_calls") or []
    for call in calls if isinstance(calls, list) else [calls]:
        piece = _call(_first(call, "function", "custom", default=call))
        # Some gateways repeat a content block's call here.
        if (_first(call, "id", default=piece), piece.name) not in in_blocks:
            yield piece
    if "role" in message and message.get("function_call") is not None:
        yield _call(message["function_call"])


def _part(part: Any) -> Iterator[Piece]:
    if part is None or part == "":
        return
    if isinstance(part, str) and not isinstance(part, _Number):
        yield Piece("text", "", part)
        return
    if not isinstance(part, dict):
        yield Piece("other", "", compact(part))
        return
    kind = part["type"] if isinstance(part.get("type"), str) else ""
    marked = _by_type(part, kind) or _by_key(part)
    if marked is not None:
        yield marked
    elif not isinstance(part.get("text"), str):
        yield Piece("other", kind, compact({key: found for key, found in part.items() if key != "type"}))
    elif part["text"]:
        yield Piece("thought" if part.get("thought") else "text", "", part["text"])


def _by_type(part: dict[str, Any], kind: str) -> Piece | None:
    """Read a block of Anthropic's or an item of OpenAI Responses."""
    if kind.endswith("tool_use"):
        return _call(part)
    if kind.endswith("_call") or kind == "program":
        hosted = kind not in _NAMED_CALLS and "name" not in part
        name = kind.removesuffix("_call") if hosted else _name(part, "name") or "(unnamed)"
        return Piece("call", name, _body(part))
    if kind.endswith(("tool_result", "_output")):
        return Piece("result", _name(part, "name", "tool_use_id", "call_id"), _body(part))
    return None


def _by_key(part: dict[str, Any]) -> Piece | None:
    """Read a part of ADK's or Gemini's."""
    for key in _CALLS:
        if part.get(key) is not None:
            return Piece("call", "code_execution", _body(part[key])) if "ode" in key else _call(part[key])
    for key in _RESULTS:
        if part.get(key) is not None:
            return Piece("result", _name(part[key], "name", "id"), _body(part[key]))
    return None


def _call(call: Any) -> Piece:
    return Piece("call", _name(call, "name", "tool_type", "toolType") or "(unnamed)", _body(call))


def _body(value: Any) -> str:
    """Return arguments or answer, whatever a format calls them."""
    if isinstance(value, dict) and value.get("output") is not None and value.get("arguments") is not None:
        # An MCP call that carries its own answer.
        return compact({"arguments": value["arguments"], "output": value["output"]})
    body = _first(value, *_BODIES) if isinstance(value, dict) else value
    if body is None and isinstance(value, dict):
        rest = {key: found for key, found in value.items() if key not in {"type", "id", "name", "call_id", "status"}}
        body = rest or None
    return _plain(body)


def _plain(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, list) and all(isinstance(item, dict) and isinstance(item.get("text"), str) for item in value):
        return "\n".join(item["text"] for item in value)
    return compact(value)


def _first(value: Any, *names: str, default: Any = None) -> Any:
    if not isinstance(value, dict):
        return default
    return next((value[name] for name in names if value.get(name) is not None), default)


def _name(value: Any, *names: str) -> str:
    found = _first(value, *names)
    return found if isinstance(found, str) and not isinstance(found, _Number) and found.strip() else ""
