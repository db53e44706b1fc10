"""Connections that wait for their next transaction: to make one costs more than most tests do with it.

What comes out is as good as new: DISCARD ALL has taken back settings, roles, temporary tables, locks and plans.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.rows import DictRow, dict_row

_lock = Lock()
_waiting: dict[str, list[psycopg.Connection[DictRow]]] = {}


def _begin_anew() -> None:
    """A forked process must not talk through the connections of its parent."""
    global _lock  # noqa: PLW0603  # it may have been held at that moment
    _lock = Lock()
    _waiting.clear()


os.register_at_fork(after_in_child=_begin_anew)


@contextmanager
def transaction(url: str) -> Iterator[psycopg.Connection[DictRow]]:
    """One transaction: committed at the end of the block, rolled back by an exception."""
    connection = _take(url)
    try:
        yield connection
        connection.commit()
    except Exception:
        # The test's own error counts, whatever becomes of its connection.
        with suppress(psycopg.Error):
            connection.rollback()
        _give_back(url, connection)
        raise
    except BaseException:
        connection.close()
        raise
    _give_back(url, connection)


@contextmanager
def autocommit(url: str) -> Iterator[psycopg.Connection[DictRow]]:
    """A connection on which each statement is a transaction of its own."""
    connection = _take(url)
    connection.autocommit = True
    try:
        yield connection
    finally:
        _give_back(url, connection)


def close(database: str) -> None:
    """End all that wait in a database, before it is copied or dropped."""
    with _lock:
        found = [url for url in _waiting if conninfo_to_dict(url).get("dbname") == database]
        ended = [connection for url in found for connection in _waiting.pop(url)]
    for connection in ended:
        connection.close()


def _take(url: str) -> psycopg.Connection[DictRow]:
    while True:
        with _lock:
            waiting = _waiting.get(url)
            connection = waiting.pop() if waiting else None
        if connection is None:
            # Nothing is prepared: DISCARD would take it away behind psycopg's back.
            return psycopg.connect(url, row_factory=dict_row, prepare_threshold=None)
        if _is_as_new(connection):
            return connection


def _is_as_new(connection: psycopg.Connection[DictRow]) -> bool:
    """Make it so; False for one that the server has ended meanwhile."""
    try:
        connection.autocommit = True
        connection.execute("discard all")
        connection.autocommit = False
    except psycopg.Error:
        connection.close()
        return False
    return True


def _give_back(url: str, connection: psycopg.Connection[DictRow]) -> None:
    if connection.closed or connection.info.transaction_status != TransactionStatus.IDLE:
        connection.close()
        return
    with _lock:
        _waiting.setdefault(url, []).append(connection)
