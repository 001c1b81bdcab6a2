"""Lists of hosts as Slurm writes them: ranges in brackets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

NUMBERED = re.compile(r"([^\[\],]*?)([0-9]{1,9})([^0-9\[\],]*)")  # the last number of a name


def fold_hosts(hosts: Iterable[str], most: int | None = None) -> str:
    """Fold n1x n2x n3x n07x login to `n[1-3]x,n07x,login`, in their order; `allocation.expand`
    reads it back. After `most` such words comes the number of hosts that are left out."""
    runs = list(_runs(hosts))
    words = [word for run in runs[:most] for word in (run if len(run) < 3 else [_range(run)])]
    more = 0 if most is None else sum(map(len, runs[most:]))
    return ",".join(words) + (f" and {more} more" if more else "")


def slurm_hosts(hosts: Sequence[str]) -> str:
    """Fold hosts for Slurm's commands, which read no word with text after its bracket ("Invalid
    hostlist" of 22.05). Unfolded, some ten thousand names are too long for a command line."""
    return fold_hosts(hosts) if all(host[-1:].isdigit() for host in hosts) else ",".join(hosts)


def _runs(hosts: Iterable[str]) -> Iterator[list[str]]:
    """Yield the longest runs of hosts that one range in brackets can name."""
    run: list[str] = []
    for host in hosts:
        if run and host != _after(run[0], len(run)):
            yield run
            run = []
        run.append(host)
    if run:
        yield run


def _after(first: str, steps: int) -> str:
    before, number, behind = _numbered(first)
    return f"{before}{str(int(number) + steps).zfill(len(number))}{behind}" if number else ""


def _range(run: Sequence[str]) -> str:
    before, number, behind = _numbered(run[0])
    last = run[-1][len(before) : len(run[-1]) - len(behind)]
    return f"{before}[{number}-{last}]{behind}"


def _numbered(host: str) -> tuple[str, str, str]:
    """Split a name at its last number: the text before, the number, the text behind."""
    match = NUMBERED.fullmatch(host)
    return (match[1], match[2], match[3]) if match else (host, "", "")
