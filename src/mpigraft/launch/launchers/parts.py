"""What several launchers write in one way."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from mpigraft.core.errors import UsageError
from mpigraft.core.hostlist import slurm_hosts
from mpigraft.core.model import Command, EnvRow, Order, Scope
from mpigraft.knowledge import version_numbers
from mpigraft.launch.schedulers.slurm import STEP_OPTIONS

WORD = 32 * 4096  # bytes of one word that a program is started with (execve(2), MAX_ARG_STRLEN)
Segment = tuple[str, int, tuple[str, ...]]  # host, ranks, and the words that they run


def nodes(order: Order) -> tuple[str, ...]:
    """Return the hosts of this launch: always the first ones, so all configurations have the same.
    Raises UsageError where the allocation has fewer."""
    allocation, needed = order.allocation, order.layout.nodes
    if needed > len(allocation.hosts):
        raise UsageError.of(
            "layout-needs-nodes",
            key=order.layout.key,
            needed=needed,
            source=allocation.source,
            count=len(allocation.hosts),
        )
    return allocation.hosts[:needed]


def is_part(order: Order) -> bool:
    """Return whether these are not all hosts of the allocation, or not in its order."""
    return bool(order.allocation.granted) or order.layout.nodes < len(order.allocation.hosts)


def named_hosts(order: Order, *, job_too: bool = False) -> tuple[str, ...]:
    """Return the hosts that the command line names: none on this host alone, and none where the
    launcher reads the whole allocation from the scheduler itself. `job_too`: these as well, as far
    as a command line takes them. Raises UsageError for a list that no command line takes: files of
    hosts were rejected, since Open MPI's count slots otherwise."""
    named = nodes(order)
    whole = bool(order.allocation.scheduler) and not is_part(order)
    if order.allocation.here or (whole and not job_too):
        return ()
    size = sum(len(host) + len(f":{order.layout.ranks_per_node},") for host in named)
    if size < WORD:
        return named
    if whole:
        return ()
    raise UsageError.of("hosts-too-long", count=len(named), size=size, limit=WORD)


def hosts(order: Order) -> tuple[str, ...]:
    """`--host n1:4,n2:4`, as Open MPI's launchers write it: K ranks on each of the named hosts."""
    ranks = order.layout.ranks_per_node
    named = ",".join(f"{host}:{ranks}" for host in named_hosts(order))
    return ("--host", named) if named else ()


def bound(order: Order) -> bool:
    """Return whether ranks get CPUs of their own. Raises UsageError for a binding without masks
    that launchers have no common option for."""
    if order.crowded or order.layout.bind == "none":
        return False
    if not order.masks and (order.layout.bind != "core" or order.layout.map_by not in PACKED):
        raise UsageError.of("layout-needs-cpus", key=order.layout.key)
    if order.masks and len(order.masks) != order.layout.ranks_per_node:
        raise UsageError.of(
            "layout-masks",
            key=order.layout.key,
            count=len(order.masks),
            ranks_per_node=order.layout.ranks_per_node,
        )
    return True


PACKED = ("core", "node")  # mappings that every launcher has of its own: one core after the other


def masked(order: Order) -> bool:
    """Return whether the command line names the CPUs of each rank."""
    return bound(order) and bool(order.masks)


def segments(order: Order) -> tuple[Segment, ...]:
    """Return the programs in the order of their ranks. Several programs are listed once for every
    node: launchers fill one node after the other, and each has to get all of them. A single program
    needs no host."""
    if len(order.groups) == 1:
        return (("", order.layout.ranks, order.groups[0].words),)
    return tuple(
        (host, group.ranks_per_node, group.words) for host in nodes(order) for group in order.groups
    )


def one_program(order: Order, name: str) -> tuple[str, ...]:
    """Return the words of the only program. Raises UsageError where there are several."""
    if len(order.groups) > 1:
        raise UsageError.of("launcher-one-program", name=name, count=len(order.groups))
    return order.groups[0].words


def joined(order: Order, words: tuple[str, ...], option: str, flag: str = "") -> Command:
    """Return the programs, each behind its `-n N`, with a colon between them; only the first has
    `words`, since Open MPI's mpirun and hydra refuse them a second time. With `flag` each of
    several programs names its host.

    On several nodes they are in a file, which `option` names: environment and engine of each
    program would be in the command line once for every node."""
    parts = segments(order)
    host_options = [(flag, f"{host}:{count}") if flag and host else () for host, count, _ in parts]
    if len(order.groups) > 1 and order.layout.nodes > 1 and order.reads:
        return _by_file(order, words, option, host_options)
    command: list[str] = []
    for where, (_, count, program) in zip(host_options, parts, strict=True):
        command += [*where, "-n", str(count), *words, *program, ":"]
        words = ()
    return Command(tuple(command[:-1]))


def _by_file(
    order: Order, words: tuple[str, ...], option: str, host_options: Sequence[tuple[str, ...]]
) -> Command:
    """`--host n1:2 -n 2 /bin/sh FILE`, a line for each program of each node: the launchers that
    read such a file split its lines at blanks and know no quotes."""
    scripts = program_scripts(order)
    lines = [
        " ".join((*where, "-n", str(count), "/bin/sh", path_in(order, path.name)))
        for where, (_, count, _), (path, _) in zip(
            host_options, segments(order), scripts * order.layout.nodes, strict=True
        )
    ]
    listed = (order.folder / PROGRAMS, "".join(f"{line}\n" for line in lines))
    return Command((*words, option, path_in(order, PROGRAMS)), (listed, *scripts))


PROGRAMS = "programs"


def program_scripts(order: Order) -> tuple[tuple[Path, str], ...]:
    """Return a shell's script for each program, with its words: lists of programs cannot hold
    them."""
    return tuple(
        (order.folder / f"program{number}", f"exec {shlex.join(group.words)}\n")
        for number, group in enumerate(order.groups)
    )


def hexadecimal(cpus: Iterable[int]) -> str:
    """`0x10f`: the same as one number, a bit for each CPU."""
    return hex(sum(1 << cpu for cpu in set(cpus)))


def refuse_lost_files(order: Order, name: str) -> None:
    """Raise UsageError where a rank's PMI is an open file, and an engine closes it."""
    if order.pmi in ("pmi2", "pmi1", "simple") and not order.keeps:
        raise UsageError.of("launcher-open-file", name=name, pmi=order.pmi)


NODE_LISTS = ("SLURM_JOB_NODELIST", "SLURM_NODELIST")
SEVERAL_NUMBERS = re.compile(r"[0-9][^0-9]+[0-9]")


def slurm_rows(order: Order) -> tuple[EnvRow, ...]:
    """For launchers that start daemons by srun, and read the hosts of the job themselves.

    Open MPI's launchers and hydra of MPICH 5.0.2 and of Intel cannot read a list with two brackets
    in a word, `rack[0-1]node[01-02]`: of hosts with several numbers they get one that has one.

    Inside of another step, an interactive one, the daemons would wait for it to end (LCH-07).
    SLURM_OVERLAP reaches every such srun; the settings of the launchers differ, and PRRTE 3.0.13
    ignores its own `plm_slurm_args`. `--exact` beside it, as some advise, leaves a daemon, and so
    all ranks of its node, the one core that the daemon asks for."""
    if order.allocation.scheduler != "slurm":
        return ()
    rows = {"SLURM_OVERLAP": "1"}
    hosts_of_job = order.allocation.granted or order.allocation.hosts
    if any(map(SEVERAL_NUMBERS.search, hosts_of_job)):
        rows |= dict.fromkeys(NODE_LISTS, slurm_hosts(hosts_of_job))
    own = (EnvRow(name, value, Scope.LAUNCHER, "launcher") for name, value in rows.items())
    return (*own, *without_step_options())


def without_step_options() -> Iterator[EnvRow]:
    """Remove what would change a step besides its command line."""
    return (EnvRow(name, None, Scope.LAUNCHER, "launcher") for name in STEP_OPTIONS)


def older_than(order: Order, release: str) -> bool:
    """Return whether the launcher is known to be older than that version."""
    return bool(order.version) and version_numbers(order.version) < version_numbers(release)


def path_in(order: Order, name: str) -> str:
    """Return the path of a file of the launcher's, for an option. Raises UsageError for a path with
    a comma, a colon or a blank, which none of these launchers can quote."""
    path = os.fspath(order.folder / name)
    if any(c in ",:;%# \t\n\"'\\" for c in path):
        raise UsageError.of("launcher-file-path", path=path)
    return path
