"""Tests of this room run pytest on a user's project."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugin.projects import CONFIGURATION, NOTING, Project
from tests.support import servers
from tests.support.servers import Server


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory that the embedded server's own user can enter when the tests run as root, unlike tmp_path."""
    made = Path(tempfile.mkdtemp(prefix="dpg-")).resolve()
    made.chmod(0o711)
    (made / "pytest.ini").write_text(CONFIGURATION)
    (made / "noting.py").write_text(NOTING)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def project(directory: Path, server: Server) -> Project:
    """A project whose server is the suite's."""
    return Project(directory, os.environ[servers.URL])


@pytest.fixture
def plain_project(directory: Path) -> Project:
    """A project that names no server."""
    return Project(directory, None)
