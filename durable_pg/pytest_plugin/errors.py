"""Why there is no server for the tests."""

from __future__ import annotations

# The variable that names a server, which whoever has none is told of.
URL = "DURABLE_PG_TEST_URL"


class Unusable(Exception):
    """No server can be had for the tests; the message tells a person why and what to do."""


class Unreachable(Unusable):
    """There was no connection, and so nothing was made."""
