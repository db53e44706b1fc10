"""Log lines and spans say which call, which run and what came of it; never what was said or how things are called."""

import logging
import subprocess
import sys
from collections.abc import Iterator
from types import MappingProxyType

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from durable_pg import Identity, errors

WORDS = "order-7-of-mia"


@pytest.fixture(scope="module")
def provider() -> TracerProvider:
    """Set one, as an application does at its start; a process can do that once."""
    provider = TracerProvider()
    trace.set_tracer_provider(provider)
    return provider


@pytest.fixture
def spans(provider: TracerProvider) -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    processor = SimpleSpanProcessor(exporter)
    provider.add_span_processor(processor)
    yield exporter
    processor.shutdown()


def told(spans: InMemorySpanExporter) -> ReadableSpan:
    (span,) = spans.get_finished_spans()
    return span


def do_everything(me: Identity) -> None:
    """Make calls full of what nobody may overhear, two of them refused."""
    session = me.open_session(WORDS, WORDS, {WORDS: WORDS})
    run = me.start_run(session, WORDS, trigger=WORDS, input=WORDS)
    me.append_event(
        session, WORDS, {WORDS: WORDS}, invocation_id=WORDS, event_id=WORDS, metadata={"a": WORDS}, attempt=1
    )
    with pytest.raises(errors.EventDiffers):
        me.append_event(session, WORDS, WORDS, invocation_id=WORDS, event_id=WORDS, attempt=1)
    with pytest.raises(errors.JsonNotStorable):
        me.append_event(session, WORDS, {WORDS: {WORDS}})
    me.begin_effect(run, WORDS, {WORDS: WORDS}, intent=WORDS)
    me.settle_run(run, "failed", error=WORDS, tools_executed=[WORDS])


def test_a_span_has_the_call_the_run_and_the_outcome(me: Identity, spans: InMemorySpanExporter) -> None:
    session = me.open_session("support", "s-1")
    spans.clear()
    run = me.start_run(session, "inv-1")
    span = told(spans)
    assert span.name == "durable_pg.start_run"
    assert span.kind == trace.SpanKind.CLIENT
    assert span.status.is_ok or span.status.is_unset
    assert span.attributes == {
        "db.system.name": "postgresql",
        "db.operation.name": "start_run",
        "durable_pg.run_uid": str(run.run_uid),
        "durable_pg.outcome": "started",
    }


def test_a_span_of_a_refused_call_has_its_class_and_sqlstate(me: Identity, spans: InMemorySpanExporter) -> None:
    run_uid = "00000000-0000-0000-0000-000000000000"
    with pytest.raises(errors.RunNotFound):
        me.retry_verdict(run_uid)
    span = told(spans)
    assert (span.status.status_code, span.status.description) == (trace.StatusCode.ERROR, "RunNotFound")
    assert isinstance(span.attributes, MappingProxyType)
    assert span.attributes["error.type"] == "RunNotFound"
    assert span.attributes["db.response.status_code"] == "42W05"
    assert span.attributes["durable_pg.run_uid"] == run_uid
    assert span.events == ()


def test_spans_and_log_lines_hold_no_content_and_no_name(
    me: Identity, spans: InMemorySpanExporter, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        do_everything(me)
    ours = [record for record in caplog.records if record.name.startswith("durable_pg")]
    assert len(ours) == len(spans.get_finished_spans()) == 6
    everything = "".join(span.to_json() for span in spans.get_finished_spans())
    everything += "".join(record.getMessage() + repr(record.__dict__) for record in ours)
    assert WORDS not in everything
    assert me.tenant_id not in everything


def test_a_log_line_says_what_came_of_a_call(me: Identity, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "durable_pg"):
        me.open_session("support", "s-1")
        with pytest.raises(errors.RunNotFound):
            me.retry_verdict("00000000-0000-0000-0000-000000000000")
    opened, refused = (record.getMessage() for record in caplog.records if record.name == "durable_pg")
    assert opened.startswith("call=open_session outcome=created (")
    assert refused.startswith("call=retry_verdict run=00000000-0000-0000-0000-000000000000 error=RunNotFound")
    assert {record.levelno for record in caplog.records if record.name == "durable_pg"} == {logging.DEBUG}


def test_the_client_does_without_opentelemetry() -> None:
    """In a process where it can't be imported."""
    script = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from durable_pg import Durable\nfrom durable_pg._wire import telemetry\n"
        "assert telemetry.trace is None and Durable\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
