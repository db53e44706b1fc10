"""A payment, mail and booking provider, as a process: it counts what it executes, by key and by what it was for.

Run with its settings as JSON: `python -m tests.crash.provider '{"mode": "forgets", "log": "/tmp/log", "seed": 1}'`.
It prints its port, and ends with its standard input.
"""

import hashlib
import json
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Settings:
    """How it behaves. The rest are shares of all requests, chosen by what was asked and how often it was."""

    mode: str  # `dedupes`: the same key again is answered, not executed; `forgets`: it is executed again
    log: str  # one line an execution
    seed: int = 0
    drops_before: float = 0.0  # the connection, without having executed
    drops_after: float = 0.0  # the connection, having executed
    late: float = 0.0  # with its answer, having executed
    late_seconds: float = 0.4
    refuses_first: float = 0.0  # of all intents: the first request, for certain
    refuses_always: float = 0.0

    def draws(self, what: str, share: float) -> bool:
        """Decide by a seeded hash, so that the same request meets the same fate in every run."""
        digest = hashlib.sha256(f"{self.seed} {what}".encode()).digest()
        return int.from_bytes(digest[:4], "big") < share * 2**32


@dataclass
class Ledger:
    """What it has done, and what it has said that it will never do."""

    settings: Settings
    log: TextIO
    receipts: dict[str, dict[str, Any]] = field(default_factory=dict)
    void: set[str] = field(default_factory=set)
    asked: Counter[str] = field(default_factory=Counter)
    executed: int = 0
    ticks: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def execute(self, key: str, tool: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Execute, or answer from the receipts, or refuse."""
        with self.lock:
            self.asked[payload["intent"]] += 1
            if key in self.receipts and self.settings.mode == "dedupes":
                return {"receipt": self.receipts[key], "repeated": True}
            if key in self.void:
                return {"refused": "this key was called off"}
            if self._refuses(payload["intent"]):
                return {"refused": "declined"}
            self.executed += 1
            receipt = {"number": self.executed, "tool": tool, "intent": payload["intent"]}
            self.log.write(json.dumps({"key": key, "payload": payload, **receipt}) + "\n")
            self.log.flush()
            self.receipts[key] = receipt
            return {"receipt": receipt}

    def call_off(self, key: str) -> dict[str, Any]:
        """Answer with the receipt, or promise that this key will never be executed: then nobody needs to guess."""
        with self.lock:
            if key not in self.receipts:
                self.void.add(key)
            return {"receipt": self.receipts.get(key)}

    def _refuses(self, intent: str) -> bool:
        if self.settings.draws(f"always {intent}", self.settings.refuses_always):
            return True
        first = self.asked[intent] == 1
        return first and self.settings.draws(f"first {intent}", self.settings.refuses_first)


class Handler(BaseHTTPRequestHandler):
    """One request a connection."""

    ledger: Ledger

    def do_GET(self) -> None:
        where = urlsplit(self.path)
        if where.path == "/status":
            key = parse_qs(where.query)["key"][0]
            with self.ledger.lock:
                self._answer({"receipt": self.ledger.receipts.get(key)})
        elif where.path == "/progress":
            self._answer({"ticks": self.ledger.ticks, "executed": self.ledger.executed})
        else:  # something that an agent reads
            self._tick()
            self._answer({"about": where.path, "at": self.ledger.ticks})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self._tick()
        if self.path == "/calm":
            self.ledger.settings = replace(self.ledger.settings, drops_before=0.0, drops_after=0.0, late=0.0)
            self._answer({})
        elif self.path == "/void":
            self._answer(self.ledger.call_off(asked["key"]))
        else:
            self._execute(**asked)

    def _execute(self, key: str, tool: str, payload: dict[str, Any]) -> None:
        settings, intent = self.ledger.settings, payload["intent"]
        fate = f"{intent} {self.ledger.asked[intent]}"
        if settings.draws(f"before {fate}", settings.drops_before):
            self.ledger.asked[intent] += 1
            return
        answer = self.ledger.execute(key, tool, payload)
        if settings.draws(f"late {fate}", settings.late):
            time.sleep(settings.late_seconds)
        if not settings.draws(f"after {fate}", settings.drops_after):
            self._answer(answer)

    def _answer(self, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _tick(self) -> None:
        with self.ledger.lock:
            self.ledger.ticks += 1

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class calls it so
        """Say nothing: the log is that of executions."""


class Provider(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Pass over callers that were killed while they were being answered."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, json.JSONDecodeError)):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def serve(settings: Settings) -> None:
    with Path(settings.log).open("a") as log:
        handler = type("Handling", (Handler,), {"ledger": Ledger(settings, log)})
        with Provider(("127.0.0.1", 0), handler) as provider:
            threading.Thread(target=provider.serve_forever, daemon=True).start()
            print(provider.server_address[1], flush=True)  # noqa: T201  # whoever started it reads the port
            sys.stdin.read()
            provider.shutdown()


if __name__ == "__main__":
    serve(Settings(**json.loads(sys.argv[1])))
