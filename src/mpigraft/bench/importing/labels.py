"""Labels that launchers put before each line of a rank: `srun -l`, `mpirun --tag-output`,
`mpiexec -l` of hydra and of PALS.

Sources: the manual pages of srun 22 to 24 and flux, iof_base_output.c of Open MPI 4.1, prte_iof.h
of PRRTE 3, hydra's -prepend-rank, jobs of Polaris and Aurora (PALS), and what those of them that
are here printed.
"""

from __future__ import annotations

import re

from mpigraft.core.errors import UsageError
from mpigraft.knowledge import ends_run

LABELS = (
    re.compile(rb"\[(?:[\w.-]+@)?\d+,(?P<rank>\d+)\](?:\[[^\]\n]*\])?<std(?:out|err|diag)>:?"),
    re.compile(rb" {0,6}(?P<rank>\d+):"),
    re.compile(rb"\[(?P<rank>\d+)\]"),
    re.compile(rb"[A-Za-z][\w.-]* (?P<rank>\d+):"),
)
TITLE = rb"(?:# (?:OSU |Benchmarking|MPI [\w -]+ Test)|#-{5}|#\s+Intel ?\(R\) MPI|\{\"mpigraft\":)"


def unlabel(data: bytes, path: str) -> tuple[bytes, int]:
    """Take the labels off, one rank's lines after another's, if each line has one; and count the
    ranks that print as the first of their world. Raises UsageError where only some lines have."""
    for label in LABELS:
        titles = {
            match["rank"]: match[0]
            for match in re.finditer(rb"(?m)^" + label.pattern + b" ?" + TITLE, data)
        }
        if titles:
            return _lines(data, label, path), len(titles)
    return data, 1


def _lines(data: bytes, label: re.Pattern[bytes], path: str) -> bytes:
    ranks: dict[int, list[bytes]] = {}
    ends: list[bytes] = []  # of launchers, which label no line of their own
    for number, line in enumerate(data.split(b"\n"), 1):
        match = label.match(line)
        if match:
            ranks.setdefault(int(match["rank"]), []).append(line[match.end() :])
        elif ends_run(line.decode("latin-1")):
            ends.append(line)
        elif line.strip():
            raise UsageError.of("import-labels", path=path, line=number, command=_command(label))
    lines = [line for rank in sorted(ranks) for line in ranks[rank]]
    gap = all(line[:1] in (b" ", b"") for line in lines)  # the label's own, or of the table
    return b"".join(line + b"\n" for line in [*(x[gap:] for x in lines), *ends])


def _command(label: re.Pattern[bytes]) -> str:
    """Make the function that takes the lines of rank 0, without their labels."""
    expression = {
        0: r"^\[[^]]*,0\]\(\[[^]]*\]\)*<std[^>]*>:* \{0,1\}",
        1: r"^ *0*0: \{0,1\}",
        2: r"^\[0\] \{0,1\}",
        3: r"^[A-Za-z][A-Za-z0-9._-]* 0: \{0,1\}",
    }[LABELS.index(label)]
    return f"sed -n 's/{expression}//p'"
