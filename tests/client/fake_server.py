"""Servers that don't let anybody in: one that says why not, and one that says nothing."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread

# A port that only root could listen at, and where hardly anything ever does.
NOBODY = "postgresql://app@127.0.0.1:1/shop"
_SSL_REQUEST = (80877103).to_bytes(4, "big")


@contextmanager
def silent() -> Iterator[str]:
    """Accept connections and leave it at that."""
    with _listener() as listener:
        yield _address(listener)


@contextmanager
def that_says(words: str, sqlstate: str = "28000") -> Iterator[str]:
    """Answer every login with this error, and a wish for TLS with no."""
    with _listener() as listener:
        thread = Thread(target=_refuse_all, args=(listener, words, sqlstate))
        thread.start()
        try:
            yield _address(listener)
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join(timeout=10)


def _listener() -> socket.socket:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    return listener


def _address(listener: socket.socket) -> str:
    return f"postgresql://app@127.0.0.1:{listener.getsockname()[1]}/shop"


def _refuse_all(listener: socket.socket, words: str, sqlstate: str) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            with client, suppress(OSError):
                client.settimeout(10)
                while client.recv(1000)[4:8] == _SSL_REQUEST:
                    client.sendall(b"N")
                client.sendall(report(b"E", "FATAL", sqlstate, words))


def report(kind: bytes, severity: str, sqlstate: str, words: str) -> bytes:
    """Return the message by which a server reports an error (E) or a notice (N)."""
    fields = b"".join(f"{part}\0".encode() for part in (f"S{severity}", f"V{severity}", f"C{sqlstate}", f"M{words}"))
    return kind + (len(fields) + 5).to_bytes(4, "big") + fields + b"\0"
