"""Fixtures of this room: a cluster to spoil, and a copy of the package to add revisions to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.migrations import support
from tests.support.servers import Server


@pytest.fixture(scope="session")
def cluster(server: Server) -> Iterator[Server]:
    with support.own_cluster(server) as own:
        yield own


@pytest.fixture
def empty_server(cluster: Server) -> Server:
    """Our own cluster without any role of ours."""
    support.wipe(cluster)
    return cluster


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return support.copy_of_package(tmp_path / "package")
