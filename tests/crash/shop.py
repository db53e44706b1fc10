"""How the agent reaches the provider, what it is told, and what may be asked of it afterwards."""

import http.client
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode

Json = dict[str, Any]


class Declined(Exception):
    """The provider said no: it certainly did not act, and never will for this key."""


def lines(path: Path) -> list[Json]:
    """Read a file of JSON lines, such as the provider's log; one that is not there yet has none."""
    return [cast("Json", json.loads(line)) for line in path.read_text().split("\n")[:-1]] if path.exists() else []


@dataclass(frozen=True)
class Shop:
    """The provider on this port; each request is a connection of its own."""

    port: int
    timeout: float = 10.0

    def execute(self, key: str, tool: str, payload: Json) -> Json:
        """Return the receipt. Raises Declined, or what the connection died of: then nobody knows."""
        answer = self._request("POST", "/execute", {"key": key, "tool": tool, "payload": payload})
        if "refused" in answer:
            raise Declined(answer["refused"])
        return cast("Json", answer["receipt"])

    def status(self, key: str) -> Json | None:
        """Return the receipt; None says only that it has not been seen yet: a request may be on its way."""
        return cast("Json | None", self._request("GET", f"/status?{urlencode({'key': key})}")["receipt"])

    def call_off(self, key: str) -> Json | None:
        """Return the receipt; after None it will never be executed."""
        return cast("Json | None", self._request("POST", "/void", {"key": key})["receipt"])

    def read(self, what: str) -> Json:
        """Read something that has no effect."""
        return self._request("GET", f"/read/{what}")

    def calm_down(self) -> None:
        """Let it lose no connection any more, and be on time."""
        self._request("POST", "/calm", {"please": True})

    def ticks(self) -> int:
        """Count what agents have asked so far; asking this does not count."""
        return int(self._request("GET", "/progress")["ticks"])

    def _request(self, method: str, path: str, body: Json | None = None) -> Json:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.timeout)
        try:
            connection.request(method, path, json.dumps(body) if body else None)
            return cast("Json", json.loads(connection.getresponse().read()))
        finally:
            connection.close()
