"""The nodes that launches may use: named by the user, else handed out by a scheduler, else this
host.

Sources: sbatch(1) "OUTPUT ENVIRONMENT VARIABLES" (SLURM_JOB_NODELIST, SLURM_JOB_CPUS_PER_NODE,
SLURM_HET_SIZE); PBS Professional's user guide (PBS_NODEFILE: a line per MPI process); Flux's
broker attribute `hostlist`, written as in its RFC 29, which is Slurm's way without several
brackets in a name; flux-core's src/broker/runat.c for what it takes out of the environment.
"""

from __future__ import annotations

import math
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

from mpigraft.errors import MissingError, UsageError
from mpigraft.launch import HERE
from mpigraft.model import Allocation
from mpigraft.run import run
from mpigraft.schedulers import flux

MOST = 1 << 17  # hosts; a list of more is a mistake, or someone else's joke
FLUX_LIMIT_S = 10.0
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")  # no leading "-": launchers take it for a flag
RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
COUNT = re.compile(r"([0-9]{1,9})(?:\(x([0-9]{1,9})\))?")


def find(
    environ: Mapping[str, str], *, hosts: str = "", hostfile: str = "", agent: str = ""
) -> Allocation:
    """The nodes to use: of `hosts` (`n1,n[3-5]`) or `hostfile`, else of the Slurm, PBS or Flux
    allocation that `environ` tells of, else this host. `agent` is a program to be used like ssh.

    Hosts that a user names out of an allocation keep its scheduler and job. Names are given to
    launchers as they are: nothing is resolved, since what a name means is each node's own affair.
    Raises UsageError for what cannot be read, MissingError for an agent or a file that is not
    there and a Flux that does not answer.
    """
    if hosts and hostfile:
        raise UsageError("--hosts and --hostfile both name nodes", mend="give one of them")
    found = _slurm(environ) or _pbs(environ) or _flux(environ) or HERE
    if hosts or hostfile:
        named = _unique(expand(hosts, "--hosts")) if hosts else read_hostfile(Path(hostfile))
        found = _named(named, "--hosts" if hosts else hostfile, found)
    return _reached_by(found, agent, environ) if agent else found


def _named(hosts: tuple[str, ...], source: str, around: Allocation) -> Allocation:
    if around.scheduler and set(hosts) <= set(around.hosts):
        granted = dict(zip(around.hosts, around.cpus, strict=False))
        cpus = tuple(granted[host] for host in hosts if host in granted)
        told = f"{source}, of {around.source}"
        return replace(around, hosts=hosts, source=told, cpus=cpus)
    own = os.uname().nodename
    here = len(hosts) == 1 and hosts[0] in (own, own.partition(".")[0], "localhost")
    return Allocation(hosts, source, here=here)


def _reached_by(found: Allocation, agent: str, environ: Mapping[str, str]) -> Allocation:
    path = shutil.which(agent, path=environ.get("PATH", os.defpath))
    if path is None:
        raise MissingError(
            f"--agent {agent}: there is no such program",
            mend="name a program that takes `HOST COMMAND ...` as ssh does",
        )
    return replace(found, agent=str(Path(path).absolute()), here=False)


# ------------------------------------------------------------------ schedulers


def _slurm(environ: Mapping[str, str]) -> Allocation | None:
    job = environ.get("SLURM_JOB_ID", "")
    if not job:
        return None
    listed = environ.get("SLURM_JOB_NODELIST", "") or environ.get("SLURM_NODELIST", "")
    if not listed:
        raise _nameless(f"Slurm job {job}", "SLURM_JOB_NODELIST is not set")
    hosts = expand(listed, "SLURM_JOB_NODELIST")
    cpus = counts(environ.get("SLURM_JOB_CPUS_PER_NODE", ""))
    parts = environ.get("SLURM_HET_SIZE", "") or environ.get("SLURM_PACK_SIZE", "")
    source = f"Slurm job {job}"
    if parts.isdecimal() and int(parts) > 1:  # mpirun and srun see one component at a time
        source += f" (heterogeneous: one of its {parts} components is used)"
    return Allocation(hosts, source, "slurm", job, cpus if len(cpus) == len(hosts) else ())


def _pbs(environ: Mapping[str, str]) -> Allocation | None:
    job = environ.get("PBS_JOBID", "")
    if not job:
        return None
    listed = environ.get("PBS_NODEFILE", "")
    if not listed:
        raise _nameless(f"PBS job {job}", "PBS_NODEFILE is not set")
    return Allocation(read_hostfile(Path(listed)), f"PBS job {job}", "pbs", job)


def _flux(environ: Mapping[str, str]) -> Allocation | None:
    """An instance of one's own has FLUX_URI; the system's is found by its socket, without. What
    `flux batch` and `flux alloc` start has the instance for itself; it knows its job as
    FLUX_ENCLOSING_ID, never as FLUX_JOB_ID (flux-environment(7)). That is a task of `flux run`,
    whose nodes may be fewer than the instance's."""
    if not environ.get("FLUX_URI"):
        return None
    task = environ.get("FLUX_JOB_ID", "")
    job = task or environ.get("FLUX_ENCLOSING_ID", "")
    asked = ["jobs", "-n", "--format={nodelist}", task] if task else ["getattr", "hostlist"]
    said = run(["flux", *asked], env=environ, limit_s=FLUX_LIMIT_S)
    if not said.ok:
        raise MissingError(
            f"flux {asked[0]}: {said.text().strip()[:200] or 'no answer'}",
            why="FLUX_URI is set, so the nodes are those of a Flux instance",
            mend="start it inside the instance, or name nodes with --hosts",
        )
    hosts = _unique(expand(said.text().strip(), "Flux's hostlist"))
    source = f"Flux job {job}" if job else "Flux instance"
    return Allocation(hosts, source, "flux", flux.decimal(job) or job)


def _nameless(job: str, seen: str) -> UsageError:
    return UsageError(
        f"{job} does not say which nodes it has: {seen}",
        why="one node would be measured for all of them",
        mend="hand the scheduler's variables on, or name the nodes with --hosts",
    )


# ------------------------------------------------------------------ lists of hosts


def read_hostfile(path: Path) -> tuple[str, ...]:
    """Hosts of a file, each once: the first word of each line; `#` begins a comment. What may
    follow a name (` slots=4`, `:4`) is passed over: a layout says how many ranks go where.
    Raises UsageError for a line that names no host, MissingError for a file that cannot be read.
    """
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError as error:
        raise MissingError(f"{path} cannot be read: {error.strerror}") from error
    hosts: list[str] = []
    for number, line in enumerate(lines, 1):
        if words := line.partition("#")[0].split():
            hosts += expand(re.sub(r":[0-9]+$", "", words[0]), f"{path}:{number}")
    if not hosts:
        raise UsageError(f"{path} names no host")
    return _unique(hosts)


def expand(text: str, where: str = "hosts") -> tuple[str, ...]:
    """`n[1-3,07-09]x,login` -> n1x n2x n3x n07x n08x n09x login, in the order written. Several
    brackets in a name multiply, the last fastest; a leading zero keeps the width.

    Raises UsageError, which names `where`, for anything else, and for more than MOST hosts.
    """
    hosts: list[str] = []
    for word in re.split(r",(?![^\[\]]*\])", text.strip()):
        pieces = re.split(r"\[([^\[\]]*)\]", word)  # text and the inside of brackets, by turns
        parts = [_numbers(p, where) if n % 2 else (p,) for n, p in enumerate(pieces)]
        if len(hosts) + math.prod(map(len, parts)) > MOST:
            raise UsageError(f"{where}: {word[:80]!r} is more than {MOST} hosts")
        hosts += map("".join, product(*parts))
    if wrong := [host for host in hosts if not NAME.fullmatch(host)]:
        raise UsageError(
            f"{where}: {wrong[0][:80]!r} is no host name",
            mend="write names with commas between them, ranges as n[1-4,07-09]",
        )
    return tuple(hosts)


def _numbers(text: str, where: str) -> tuple[str, ...]:
    """`1-3,07-08` -> 1 2 3 07 08."""
    found: list[str] = []
    for word in text.split(","):
        match = RANGE.fullmatch(word)
        first, last = (match[1], match[2] or match[1]) if match else ("1", "0")
        if int(last) < int(first) or int(last) - int(first) >= MOST:
            raise UsageError(f"{where}: {word[:80]!r} is no range of up to {MOST} numbers")
        found += (str(n).zfill(len(first)) for n in range(int(first), int(last) + 1))
        if len(found) > MOST:
            raise UsageError(f"{where}: {text[:80]!r} is more than {MOST} hosts")
    return tuple(found)


def counts(text: str) -> tuple[int, ...]:
    """`72(x2),36` -> 72 72 36; nothing for a text that is no such list."""
    found: list[int] = []
    for word in text.split(","):
        match = COUNT.fullmatch(word)
        if not match or len(found) + int(match[2] or 1) > MOST:
            return ()
        found += [int(match[1])] * int(match[2] or 1)
    return tuple(found)


def _unique(hosts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(hosts))
