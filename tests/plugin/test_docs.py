"""What docs/testing.md shows is run as it stands there."""

import importlib.metadata
import re
from pathlib import Path

import pytest

from durable_pg._wire.address import understand
from durable_pg.pytest_plugin.errors import URL
from durable_pg.pytest_plugin.run import PREFIX
from tests.plugin.projects import Project
from tests.plugin.test_fixtures import AGENT

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
PYTHON = [text for language, text in BLOCKS if language == "python"]
WORKER = """
import my_agent
from durable_pg import Durable

with Durable.from_url() as durable:
    my_agent.handle(durable.act_as("acme", "user-7"), "refund order 7")
"""
ASYNC_AGENT = re.sub(r"\bme\.", "await me.", AGENT).replace("def handle", "async def handle")


def test_nothing_is_shown_that_is_not_run_here() -> None:
    assert [language for language, _ in BLOCKS] == ["python", "python", "python", "yaml"]


@pytest.mark.parametrize("number", range(3), ids=["three lines", "another process", "async"])
def test_a_block_is_a_test_that_passes(project: Project, number: int) -> None:
    project.write("my_agent.py", AGENT)
    project.write("my_worker.py", WORKER)
    project.write("my_async_agent.py", ASYNC_AGENT)
    project.write("test_mine.py", PYTHON[number])
    # As in a project that has configured nothing but what pytest-asyncio asks for.
    done = project.run("-o", "addopts=", "-o", "asyncio_default_fixture_loop_scope=function")
    assert done.counts() == {"passed": 1}, done.shown


def test_the_first_block_fails_for_an_agent_that_records_twice(project: Project) -> None:
    forgetful = AGENT.replace('"inv-1"', "uuid.uuid4().hex").replace('event_id="refund-7"', "event_id=None")
    project.write("my_agent.py", "import uuid\n" + forgetful)
    project.write("test_mine.py", PYTHON[0])
    assert project.run().counts() == {"failed": 1}


def test_the_service_container_is_named_as_the_plugin_reads_it() -> None:
    (url,) = re.findall(rf"^  {URL}: (\S+)$", BLOCKS[-1][1], re.MULTILINE)
    assert understand(url)[1]["user"] == "postgres"


def test_names_and_options_are_those_of_the_plugin() -> None:
    assert f"`{PREFIX}`" in PAGE
    assert "`--durable-pg-url URL`" in PAGE
    assert "testing" in (importlib.metadata.metadata("durable-pg").get_all("Provides-Extra") or [])
