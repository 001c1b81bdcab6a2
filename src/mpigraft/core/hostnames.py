"""Names of hosts, compared: the one place that decides whether two names mean one host.

A host has a short name, its first label, and full names; DNS knows no case (RFC 4343). Two full
names that share their first label are two hosts: `w.1.example` and `w.2.example`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

ADDRESS = re.compile(r"[0-9.]+|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.%]*")  # IPv4, IPv6


def short_name(host: str) -> str:
    """The first label, in lower case; an address as it is."""
    name = _full(host)
    return name if ADDRESS.fullmatch(name) else name.partition(".")[0]


def same_host(one: str, other: str) -> bool:
    """Whether two names can mean one host: they are equal, or one of them is the other's first
    label."""
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


def shared_labels(hosts: Iterable[str]) -> tuple[str, ...]:
    """Full names of different hosts with one first label, in their order."""
    alike = defaultdict[str, dict[str, str]](dict)
    for host in hosts:
        alike[short_name(host)].setdefault(_full(host), host)
    return tuple(host for group in alike.values() if len(group) > 1 for host in group.values())


def _full(host: str) -> str:
    return host.rstrip(".").lower()
