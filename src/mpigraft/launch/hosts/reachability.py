"""Which nodes still answer, after a launch on several of them went wrong.

A node that loses its power sends nothing, and the launcher waits for it in silence. The query goes
to the port of ssh: a refusal is an answer too. Some sites drop packets to it, so a node counts as
lost only if it answered the first query, before any launch that is measured.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
import time
from collections.abc import Iterator, Sequence

from mpigraft.core.model import Finding

SSH = 22
WAIT_S = 3.1  # for one host; a neighbour that is gone is known to be after 3 s (arp(7))
PATIENCE_S = 7.0  # for all hosts together, in two turns: a name server may be gone too
AT_ONCE = 64
REFUSED = (errno.ECONNREFUSED, errno.ECONNRESET)
GONE = (errno.EHOSTUNREACH, errno.EHOSTDOWN, errno.ETIMEDOUT)


class Nodes:
    """Hosts of an allocation."""

    def __init__(self, hosts: Sequence[str], port: int = SSH) -> None:
        self._hosts, self._port = hosts, port
        self._first: _Query | None = None

    def query(self, *, wait: bool) -> None:
        """Query all nodes, once, in the background; `wait` for their answers where what comes next
        is measured."""
        self._first = self._first or _Query(self._hosts, self._port)
        if wait:
            self._first.answers()

    def unreachable(self, hosts: Sequence[str]) -> tuple[Finding, ...]:
        """Report those of `hosts` that do not answer now. Nothing before `query`."""
        if not hosts or self._first is None:
            return ()
        before, now = self._first.answers(), _Query(hosts, self._port).answers()
        silent = [host for host in hosts if now.get(host) is False]
        lost = [host for host in silent if before.get(host)]
        never = [host for host in silent if before.get(host) is False]
        findings = []
        if lost:
            findings.append(Finding.of("node-lost", nodes=_listed(lost), port=self._port))
        if never:
            findings.append(Finding.of("node-silent", nodes=_listed(never), port=self._port))
        return tuple(findings)


def _listed(hosts: Sequence[str], most: int = 8) -> str:
    more = f" and {len(hosts) - most} more nodes" if len(hosts) > most else ""
    return ", ".join(hosts[:most]) + more


class _Query:
    """The answers of hosts, collected in the background. Daemon threads: a name server that does
    not answer must not delay the end of the command. Where no more threads can be started
    (ulimit -u, -v), fewer hosts are queried."""

    def __init__(self, hosts: Sequence[str], port: int) -> None:
        self._answers: dict[str, bool | None] = {}
        remaining = iter(dict.fromkeys(hosts))
        self._until = time.monotonic() + PATIENCE_S
        self._threads: list[threading.Thread] = []
        with contextlib.suppress(RuntimeError, MemoryError):
            for _ in range(min(AT_ONCE, len(hosts))):
                thread = threading.Thread(target=self._query, args=(remaining, port), daemon=True)
                thread.start()
                self._threads.append(thread)

    def _query(self, remaining: Iterator[str], port: int) -> None:
        for host in remaining:
            if time.monotonic() < self._until:
                self._answers[host] = is_reachable(host, port)

    def answers(self) -> dict[str, bool | None]:
        """Return true, False, or None where it is not known; a host that was not queried is left
        out."""
        for thread in self._threads:
            thread.join(max(0.0, self._until - time.monotonic()))
        return dict(self._answers)


def is_reachable(host: str, port: int = SSH, wait_s: float = WAIT_S) -> bool | None:
    """Return whether `host` answers at one of its addresses; None: it has none, or this host may
    not connect."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    each_s = wait_s / max(1, len(addresses))
    states = [_connects(family, address, each_s) for family, _, _, _, address in addresses]
    return True if True in states else False if False in states else None


def _connects(family: int, address: tuple[object, ...], wait_s: float) -> bool | None:
    try:
        with socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as connection:
            connection.settimeout(wait_s)
            connection.connect(address)
    except TimeoutError:
        return False
    except OSError as error:
        return True if error.errno in REFUSED else False if error.errno in GONE else None
    return True
