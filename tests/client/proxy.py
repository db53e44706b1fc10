"""A proxy between client and server that counts round trips and breaks connections when told to. Without TLS."""

import socket
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from io import BufferedReader
from threading import Condition, Thread
from typing import NamedTuple
from urllib.parse import quote, urlencode

from tests.support.harness import Database
from tests.support.servers import PASSWORD, Server

# Sync and simple Query are answered, and the client waits for it; so it does after Flush, which asyncpg may send.
_ASKS = b"SQH"
# After these nothing more comes that belongs to them: what was kept back can go on.
_ENDS = _ASKS + b"pXFcfd"


class Message(NamedTuple):
    """What a client sent: a statement and the name it was prepared under, where the kind of message has them."""

    kind: str
    name: str
    text: str


@dataclass
class _Order:
    """What is to happen to a request: whether the server gets to see it, and what else before the connection ends."""

    arrives: bool
    meanwhile: Callable[[], object]


@dataclass
class Proxy:
    """Orders concern the next requests, of whatever connection; a request ends with Sync, Flush or Query."""

    db: Database
    messages: list[Message] = field(default_factory=list)
    hides_ends: bool = False  # keep connections open whose server has said farewell and gone
    _orders: deque[_Order] = field(default_factory=deque)
    _links: "list[_Link]" = field(default_factory=list)
    _threads: list[Thread] = field(default_factory=list)
    _listener: socket.socket | None = None
    _port: int = 0
    _heard: Counter[str] = field(default_factory=Counter)
    _changed: Condition = field(default_factory=Condition)

    def url(self, login: str = "app", driver: str = "", **parameters: str) -> str:
        """Return the database's address by way of this proxy; with a driver, as SQLAlchemy spells it."""
        off = {"ssl": "disable"} if driver == "asyncpg" else {"sslmode": "disable", "gssencmode": "disable"}
        query = urlencode({**off, **parameters}, quote_via=quote)
        scheme = f"postgresql+{driver}" if driver else "postgresql"
        return f"{scheme}://{login}:{PASSWORD}@127.0.0.1:{self._port}/{self.db.name}?{query}"

    @property
    def round_trips(self) -> int:
        """How often a client has waited for the server since the last forget(), logging in left aside."""
        return sum(message.kind.encode() in _ASKS for message in self.messages)

    @property
    def statements(self) -> list[str]:
        return [message.text for message in self.messages if message.kind in "PQ"]

    @property
    def prepared(self) -> list[str]:
        """The names that statements were prepared under."""
        return [message.name for message in self.messages if message.kind == "P" and message.name]

    def forget(self) -> None:
        self.messages.clear()

    def lose_requests(self, times: int = 1) -> None:
        """Break the connection instead of handing on what the client asks."""
        self._orders.extend(_Order(arrives=False, meanwhile=lambda: None) for _ in range(times))

    def lose_answers(self, times: int = 1, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Hand on what the client asks, wait until the server has done it, and break the connection.

        `meanwhile` is called once in between.
        """
        self._orders.append(_Order(arrives=True, meanwhile=meanwhile))
        self._orders.extend(_Order(arrives=True, meanwhile=lambda: None) for _ in range(times - 1))

    def cut(self) -> None:
        """Break all connections at once."""
        for link in list(self._links):
            link.cut()

    def refuse(self) -> None:
        """Break all connections and take no new one."""
        listener, self._listener = self._listener, None
        if listener is not None:
            # close() alone would leave accept() waiting.
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.cut()

    def accept(self) -> None:
        """Take connections, at the same port as before."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self._port))
        listener.listen()
        self._listener, self._port = listener, listener.getsockname()[1]
        self.run(lambda: self._welcome(listener))

    def say(self, message: bytes) -> None:
        """Tell every client something as if the server had."""
        for link in list(self._links):
            with suppress(OSError):
                link.client.sendall(message)

    def wait_until_told(self, what: str, times: int = 1) -> None:
        """Wait until clients could know of so many farewells or notifications."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._heard[what] >= times, timeout=10)

    def told(self, kind: bytes, packet: bytes) -> None:
        """Note what has been handed on to a client."""
        what = "notification" if kind == b"A" else "farewell" if kind == b"E" and b"VFATAL\0" in packet else ""
        with self._changed:
            self._heard[what] += 1
            self._changed.notify_all()

    def next_order(self) -> _Order | None:
        return self._orders.popleft() if self._orders else None

    def run(self, task: Callable[[], None]) -> None:
        thread = Thread(target=task, daemon=True)
        self._threads.append(thread)
        thread.start()

    def end(self) -> None:
        self.hides_ends = False
        self.refuse()
        for thread in self._threads:
            thread.join(timeout=10)
            assert not thread.is_alive()

    def _welcome(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                self._links.append(_Link(self, client, _connect(self.db.server)))


class _Link:
    """One client and its connection to the server, with a thread for each direction."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self.proxy, self.client, self.server = proxy, client, server
        self.order: _Order | None = None
        proxy.run(lambda: self._carry(client, self._from_client))
        proxy.run(lambda: self._carry(server, self._from_server))

    def cut(self) -> None:
        for end in (self.client, self.server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _carry(self, source: socket.socket, work: Callable[[BufferedReader], None]) -> None:
        with source, source.makefile("rb") as reader:
            with suppress(OSError):
                work(reader)
            if source is self.client or not self.proxy.hides_ends:
                self.cut()

    def _from_client(self, reader: BufferedReader) -> None:
        # The first packet, a log-in or a request to cancel, has no kind. Without TLS there is none before it.
        self.server.sendall(_packet(reader))
        waiting: list[bytes] = []
        while kind := reader.read(1):
            packet = _packet(reader)
            waiting.append(kind + packet)
            self.proxy.messages.append(_read(kind, packet))
            if kind in _ASKS:
                self.order = self.proxy.next_order()
                if self.order and not self.order.arrives:
                    return
            if kind in _ENDS:
                self.server.sendall(b"".join(waiting))
                waiting.clear()

    def _from_server(self, reader: BufferedReader) -> None:
        while kind := reader.read(1):
            packet = _packet(reader)
            if self.order is None:
                self.client.sendall(kind + packet)
                self.proxy.told(kind, packet)
            # Ready for the next query, with this one committed. CommandComplete comes before that.
            elif kind == b"Z":
                self.order.meanwhile()
                return


@contextmanager
def in_front_of(db: Database) -> Iterator[Proxy]:
    """Start a proxy."""
    with ExitStack() as stack:
        proxy = Proxy(db)
        stack.callback(proxy.end)
        proxy.accept()
        yield proxy


def _connect(server: Server) -> socket.socket:
    if not server.host.startswith("/"):
        return socket.create_connection((server.host, server.port))
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(f"{server.host}/.s.PGSQL.{server.port}")
    return connection


def _packet(reader: BufferedReader) -> bytes:
    """Read a packet's length, which counts itself, and what follows."""
    length = reader.read(4)
    if len(length) < 4:
        raise ConnectionError
    return length + reader.read(int.from_bytes(length, "big") - 4)


def _read(kind: bytes, packet: bytes) -> Message:
    body = packet[4:]
    if kind == b"Q":
        return Message("Q", "", body.rstrip(b"\0").decode())
    if kind == b"P":
        name, text, _ = body.split(b"\0", 2)
        return Message("P", name.decode(), text.decode())
    return Message(kind.decode(), "", "")
