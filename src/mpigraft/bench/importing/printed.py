"""What an output prints beside its tables of where and how it ran: hosts, modules, iterations.

A job's script prints them above: `hostname`, `module list`, each command line with `set -x`.
Sources: outputs of the OSU Micro-Benchmarks in blogs and trackers; Lmod's and Environment Modules'
`module list`; OSU 7.5's README, which has -i for iterations and -x for those that warm up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST = 1 << 16  # characters that are read: a job's head, not a log of 1 GiB
LONGEST = 200  # modules
HOSTS = re.compile(
    r"(?im)^\W{0,4}(?:slurm_(?:job_)?nodelist|node ?list|hosts?(?:names?)?|running on(?: hosts?)?)"
    r"[ \t]*[:=][ \t]*([A-Za-z][\w.,\[\] -]*)$"
)
HOST_LINES = re.compile(
    r"(?im)^[+$# ]*(?:srun .*)?hostname:?[ \t]*\n((?:[A-Za-z][\w.-]*\d[\w.-]*[ \t]*\n)+)"
)
LOADED = re.compile(
    r"(?m)^Currently Loaded Module(?:s|files):[ \t]*\n((?:[ \t]*\n)?(?: *\d+\).*(?:\n|$))+)"
)
MODULE = re.compile(r"\b\d+\)\s+([A-Za-z][\w.+/-]*)")
LOAD = re.compile(r"(?m)^[+$ ]*(?:module|ml) +(?:load|add) +(.+)$")
COMMAND = re.compile(
    r"(?m)^[+$ ]*(?:(?:srun|mpirun|mpiexec\S*|aprun|prun|flux run)(?: .*)?[ /]|\S*/)?"
    r"(?:osu_\w+|IMB-\w+)((?: +[^\s;|&>]+)*) *$"
)
OPTIONS = {
    "iterations": re.compile(r"(?:^| )(?:-i|--iterations|-iter)[ =](\d+)(?= |$)"),
    "iterations that warm up": re.compile(r"(?:^| )(?:-x|--warmup)[ =](\d+)(?= |$)"),
}

Facts = tuple[tuple[str, str], ...]


def printed_facts(data: bytes) -> Facts:
    """Return the hosts, modules (`module NAME`) and iterations that the text names, each once;
    several values of one fact are joined."""
    text = data[:MOST].decode("utf-8", "replace")
    facts: dict[str, dict[str, None]] = {}
    for name, value in (*_hosts(text), *_modules(text), *_options(text)):
        facts.setdefault(name, {})[value] = None
    return tuple((name, ", ".join(values)) for name, values in facts.items())


def _hosts(text: str) -> Iterator[tuple[str, str]]:
    for match in HOSTS.finditer(text):
        yield "hosts", ", ".join(re.split(r"[ ,]+(?![^\[]*\])", match[1].strip()))
    for match in HOST_LINES.finditer(text):
        yield "hosts", ", ".join(dict.fromkeys(match[1].split()))


def _modules(text: str) -> Iterator[tuple[str, str]]:
    lists = [MODULE.findall(match[1]) for match in LOADED.finditer(text)]
    names = [name for found in lists for name in found]
    names += [word for match in LOAD.finditer(text) for word in match[1].split() if word[0] != "-"]
    for word in list(dict.fromkeys(names))[:LONGEST]:
        name, _, version = word.rpartition("/") if "/" in word else (word, "", "default")
        yield f"module {name}", version


def _options(text: str) -> Iterator[tuple[str, str]]:
    for command in COMMAND.finditer(text):
        for name, option in OPTIONS.items():
            if match := option.search(command[1]):
                yield name, match[1]
