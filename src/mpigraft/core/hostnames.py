"""Names of hosts, compared: the one place that decides whether two names mean one host, and
whether a name means this one.

A host has a short name, its first label, and full names; DNS knows no case (RFC 4343). Two full
names that share their first label are two hosts: `w.1.example` and `w.2.example`.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import socket
from collections import defaultdict
from collections.abc import Iterable, Sequence

ADDRESS = re.compile(r"[0-9.]+|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.%]*")  # IPv4, IPv6


def short_name(host: str) -> str:
    """Return the first label, in lower case; an address as it is."""
    name = _full(host)
    return name if ADDRESS.fullmatch(name) else name.partition(".")[0]


def same_host(one: str, other: str) -> bool:
    """Return whether two names can mean one host: they are equal, or one of them is the other's
    first label."""
    return bool(match_hosts((one,), (other,)))


def match_hosts(names: Iterable[str], hosts: Sequence[str]) -> dict[str, str]:
    """Give for each name the one of `hosts` that it means: the equal one, else the only one of
    which it is the first label, or which is its first label. Names that mean none, or may mean
    several, are left out."""
    equal: dict[str, str] = {}
    alike = defaultdict[str, list[str]](list)
    for host in dict.fromkeys(hosts):
        equal.setdefault(_full(host), host)
        alike[short_name(host)].append(host)
    matches: dict[str, str] = {}
    for name in dict.fromkeys(names):
        full, short = _full(name), short_name(name)
        candidates = [h for h in alike[short] if short in (full, _full(h))]
        if full in equal:
            matches[name] = equal[full]
        elif len(candidates) == 1:
            matches[name] = candidates[0]
    return matches


def distinct_hosts(names: Sequence[str]) -> tuple[str, ...]:
    """Return each host once, this one by its node name, under which launchers know where they run.
    The resolver is used for the first name alone, on which a job of one node depends: a long list
    would wait for each, and what launchers are given for other nodes is not resolved here."""
    own = os.uname().nodename
    hosts: dict[str, str] = {}
    for number, name in enumerate(names):
        host = own if is_this_host(name, resolve=number == 0) else name
        hosts.setdefault(_full(host), host)
    return tuple(hosts.values())


def is_this_host(name: str, *, resolve: bool = False) -> bool:
    """Return whether a name means this host: its node name or the first label of that, `localhost`,
    or an address of its own. `resolve`: or a name that has such addresses alone. The first label
    alone does not do for other full names, which may be another host's."""
    own = os.uname().nodename
    if _full(name) in (_full(own), short_name(own), "localhost"):
        return True
    flags = 0 if resolve else socket.AI_NUMERICHOST
    with contextlib.suppress(OSError, UnicodeError):
        rows = socket.getaddrinfo(name, 9, type=socket.SOCK_DGRAM, flags=flags)
        return all(_is_own(row[0], row[4]) for row in rows)
    return False


def _is_own(family: socket.AddressFamily, address: tuple[object, ...]) -> bool:
    """Return whether the kernel sends from an address what goes to it. To bind it was rejected:
    with net.ipv4.ip_nonlocal_bind the kernel binds any address."""
    text = str(address[0])
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(address)
        own: str = probe.getsockname()[0]
        return own == text or ipaddress.ip_address(text.partition("%")[0]).is_loopback
    return False


def _full(host: str) -> str:
    return host.rstrip(".").lower()
