"""Log lines under `durable_pg`, and OpenTelemetry spans where opentelemetry-api is installed.

Neither ever holds content, keys or names that a caller chose: the call, the run's uid, the outcome, the error's class.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from durable_pg._wire.statements import Call
from durable_pg.errors import DurableError

try:
    from opentelemetry import trace
    from opentelemetry.trace import SpanKind, Status, StatusCode
except ImportError:
    trace = None  # type: ignore[assignment]  # an optional module

log = logging.getLogger("durable_pg")


class Observed:
    """A call under way; tell it what came of it."""

    def __init__(self, call: Call[Any], span: Any) -> None:
        self.facts: dict[str, str] = {"call": call.name}
        self._span = span
        if call.parameters.get("run_uid"):
            self.facts["run"] = call.parameters["run_uid"]

    def answered(self, result: object) -> None:
        """Note the run and the outcome of a result that has them."""
        for fact, attribute in (("run", "run_uid"), ("outcome", "outcome")):
            found = getattr(result, attribute, None)
            if found is not None:
                self.facts[fact] = str(found)

    def failed(self, error: BaseException) -> None:
        self.facts["error"] = type(error).__name__
        if isinstance(error, DurableError) and error.sqlstate:
            self.facts["sqlstate"] = error.sqlstate

    def report(self, seconds: float) -> None:
        log.debug("%s (%.1f ms)", " ".join(f"{key}={value}" for key, value in self.facts.items()), seconds * 1000)
        if self._span is not None:
            self._span.set_attributes({_ATTRIBUTES[key]: value for key, value in self.facts.items()})
            if "error" in self.facts:
                self._span.set_status(Status(StatusCode.ERROR, self.facts["error"]))


_ATTRIBUTES = {
    "call": "db.operation.name",
    "run": "durable_pg.run_uid",
    "outcome": "durable_pg.outcome",
    "error": "error.type",
    "sqlstate": "db.response.status_code",
}


@contextmanager
def observed(call: Call[Any]) -> Iterator[Observed]:
    """Time a call, log it at DEBUG and give it a span `durable_pg.<call>`."""
    started = time.perf_counter()
    with _span(call) as span:
        seen = Observed(call, span)
        try:
            yield seen
        except BaseException as error:
            seen.failed(error)
            raise
        finally:
            seen.report(time.perf_counter() - started)


def sent_again(call: Call[Any]) -> None:
    log.warning("the connection was lost in %s, which may be repeated: sending it again, once", call.name)


def _span(call: Call[Any]) -> AbstractContextManager[Any]:
    if trace is None:
        return nullcontext()
    # An exception's text has names in it: neither recorded nor used as the status.
    return trace.get_tracer("durable_pg").start_as_current_span(
        f"durable_pg.{call.name}",
        kind=SpanKind.CLIENT,
        attributes={"db.system.name": "postgresql"},
        record_exception=False,
        set_status_on_exception=False,
    )
