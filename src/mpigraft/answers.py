"""Which nodes still answer, asked when a launch on several of them went wrong.

A node that loses its power says nothing, and neither does the launcher that waits for it. Asked is
the port of ssh: a refusal is an answer too. Some sites drop what comes there, so a node is called
lost only if it answered when the nodes were first asked, before any launch that is measured.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
import time
from collections.abc import Iterator, Sequence

from mpigraft.model import Finding, Level

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
        self._first: _Asked | None = None

    def ask(self, *, wait: bool) -> None:
        """Ask for the first time, once, beside what comes next; that waits for the answers where
        it is to be measured."""
        self._first = self._first or _Asked(self._hosts, self._port)
        if wait:
            self._first.answers()

    def trouble(self, hosts: Sequence[str]) -> tuple[Finding, ...]:
        """What is to be said of those of `hosts` that do not answer now. Nothing before `ask`."""
        if not hosts or self._first is None:
            return ()
        before, now = self._first.answers(), _Asked(hosts, self._port).answers()
        silent = [host for host in hosts if now.get(host) is False]
        lost = [host for host in silent if before.get(host)]
        never = [host for host in silent if before.get(host) is False]
        found = []
        if lost:
            seen = f"{_listed(lost)} answered when this began, and not any more (TCP {self._port})"
            why = "a launch cannot end well without its nodes"
            found.append(Finding(Level.ERROR, "node-lost", seen, why, "leave such a node out"))
        if never:
            seen = f"{_listed(never)} did not answer, now or when this began (TCP {self._port})"
            why = "such a node is down, or a firewall drops what comes to that port"
            found.append(Finding(Level.WARNING, "node-silent", seen, why))
        return tuple(found)


def _listed(hosts: Sequence[str], most: int = 8) -> str:
    more = f" and {len(hosts) - most} more nodes" if len(hosts) > most else ""
    return ", ".join(hosts[:most]) + more


class _Asked:
    """The answers of hosts, which come in beside what else is done. Daemon threads: a name server
    that does not answer must not hold up the end of the command. Where no more of them can be
    had (ulimit -u, -v), fewer hosts are asked."""

    def __init__(self, hosts: Sequence[str], port: int) -> None:
        self._found: dict[str, bool | None] = {}
        left = iter(dict.fromkeys(hosts))
        self._until = time.monotonic() + PATIENCE_S
        self._threads: list[threading.Thread] = []
        with contextlib.suppress(RuntimeError, MemoryError):
            for _ in range(min(AT_ONCE, len(hosts))):
                thread = threading.Thread(target=self._ask, args=(left, port), daemon=True)
                thread.start()
                self._threads.append(thread)

    def _ask(self, left: Iterator[str], port: int) -> None:
        for host in left:
            if time.monotonic() < self._until:
                self._found[host] = answers(host, port)

    def answers(self) -> dict[str, bool | None]:
        """True, False, or None where it could not be told; a host that was not asked is not in."""
        for thread in self._threads:
            thread.join(max(0.0, self._until - time.monotonic()))
        return dict(self._found)


def answers(host: str, port: int = SSH, wait_s: float = WAIT_S) -> bool | None:
    """Whether `host` answers at one of its addresses; None: it has none here, or this host may not
    ask."""
    try:
        places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    each_s = wait_s / max(1, len(places))
    told = [_at(family, address, each_s) for family, _, _, _, address in places]
    return True if True in told else False if False in told else None


def _at(family: int, address: tuple[object, ...], wait_s: float) -> bool | None:
    try:
        with socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as asking:
            asking.settimeout(wait_s)
            asking.connect(address)
    except TimeoutError:
        return False
    except OSError as error:
        return True if error.errno in REFUSED else False if error.errno in GONE else None
    return True
