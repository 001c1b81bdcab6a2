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

from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.hostnames import distinct_hosts, match_hosts
from mpigraft.core.model import Allocation
from mpigraft.core.process import run_command
from mpigraft.launch.schedulers.flux import decimal_id

MAX_HOSTS = 1 << 17  # hosts; a longer list is a mistake
MAX_COMPONENTS = 128  # of a heterogeneous job that are looked through; Slurm's default limit
FLUX_LIMIT_S = 10.0
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")  # no leading "-": launchers take it for a flag
ADDRESS_6 = re.compile(r"[0-9A-Fa-f]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*(%[A-Za-z0-9_.-]+)?")
RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
COUNT = re.compile(r"([0-9]{1,9})(?:\(x([0-9]{1,9})\))?")

THIS_HOST = Allocation((os.uname().nodename,), "this host", here=True)


def find_allocation(
    environ: Mapping[str, str], *, hosts: str = "", hostfile: str = "", ssh_command: str = ""
) -> Allocation:
    """Find the nodes to use: of `hosts` (`n1,n[3-5]`) or `hostfile`, else of the Slurm, PBS or Flux
    allocation that `environ` names, else this host. `ssh_command` is a program to use
    instead of ssh.

    Hosts that a user names out of an allocation keep its scheduler and job. Names of other hosts
    are given to launchers as they are, since each node may resolve a name in its own way.
    Raises UsageError for what cannot be read, MissingError for a program that is not there and a
    Flux that does not answer.
    """
    if hosts and hostfile:
        raise UsageError.of("hosts-given-twice")
    allocation = _slurm(environ) or _pbs(environ) or _flux(environ) or THIS_HOST
    if hosts or hostfile:
        named = _unique(expand(hosts, "--hosts")) if hosts else read_hostfile(Path(hostfile))
        allocation = _named(named, "--hosts" if hosts else hostfile, allocation)
    return _reached_by(allocation, ssh_command, environ) if ssh_command else allocation


def _named(names: tuple[str, ...], source: str, granted: Allocation) -> Allocation:
    hosts = distinct_hosts(names)
    matches = match_hosts(hosts, granted.hosts if granted.scheduler else ())
    if matches.keys() == set(hosts):
        hosts = _unique(matches[host] for host in hosts)
        cpus_of = dict(zip(granted.hosts, granted.cpus, strict=False))
        cpus = tuple(cpus_of[host] for host in hosts if host in cpus_of)
        label = f"{source}, of {granted.source}"
        others = granted.hosts if hosts != granted.hosts else ()
        return replace(granted, hosts=hosts, source=label, cpus=cpus, granted=others)
    if wrong := [host for host in hosts if ":" in host]:
        raise UsageError.of("host-address-unsupported", where=source, address=wrong[0])
    return Allocation(hosts, source, here=hosts == THIS_HOST.hosts)


def _reached_by(allocation: Allocation, program: str, environ: Mapping[str, str]) -> Allocation:
    path = shutil.which(program, path=environ.get("PATH", os.defpath))
    if path is None:
        raise MissingError.of("ssh-command-missing", program=program)
    return replace(allocation, agent=str(Path(path).absolute()), here=False)


# ------------------------------------------------------------------ schedulers


def _slurm(environ: Mapping[str, str]) -> Allocation | None:
    job = environ.get("SLURM_JOB_ID", "")
    if not job:
        return None
    nodelist = environ.get("SLURM_JOB_NODELIST", "") or environ.get("SLURM_NODELIST", "")
    if not nodelist:
        raise _nameless(f"Slurm job {job}", "SLURM_JOB_NODELIST is not set")
    hosts = expand(nodelist, "SLURM_JOB_NODELIST")
    cpus = cpu_counts(environ.get("SLURM_JOB_CPUS_PER_NODE", ""))
    given = cpus if len(cpus) == len(hosts) else ()
    component = _component(environ, hosts)
    return Allocation(hosts, f"Slurm job {job}", "slurm", job, given, component=component)


def _component(environ: Mapping[str, str], hosts: tuple[str, ...]) -> str:
    """Name the component of a heterogeneous job that has these hosts; empty for a step over all of
    them, as for any other job. The names are those of Slurm 20.02 to 22.05, and the older ones."""
    parts = environ.get("SLURM_HET_SIZE", "") or environ.get("SLURM_PACK_SIZE", "")
    if not parts.isdecimal() or int(parts) < 2:
        return ""
    heads = ("SLURM_JOB_NODELIST_HET_GROUP_", "SLURM_JOB_NODELIST_PACK_GROUP_")
    for number in range(min(int(parts), MAX_COMPONENTS)):
        listed = next((text for head in heads if (text := environ.get(f"{head}{number}"))), "")
        if listed and expand(listed) == hosts:
            return f"component {number} of {parts}"
        if listed and set(expand(listed)) < set(hosts):  # of a step over several
            return ""
    return f"one of {parts} components"


def _pbs(environ: Mapping[str, str]) -> Allocation | None:
    job = environ.get("PBS_JOBID", "")
    if not job:
        return None
    nodefile = environ.get("PBS_NODEFILE", "")
    if not nodefile:
        raise _nameless(f"PBS job {job}", "PBS_NODEFILE is not set")
    return Allocation(read_hostfile(Path(nodefile)), f"PBS job {job}", "pbs", job)


def _flux(environ: Mapping[str, str]) -> Allocation | None:
    """Return the nodes of a user's Flux instance, which has FLUX_URI; the system's is found by its
    socket. Programs of `flux batch` and `flux alloc` have the instance for themselves, and their
    job is FLUX_ENCLOSING_ID (flux-environment(7)). FLUX_JOB_ID is a task of `flux run`, whose nodes
    may be fewer than the instance's."""
    if not environ.get("FLUX_URI"):
        return None
    task = environ.get("FLUX_JOB_ID", "")
    job = task or environ.get("FLUX_ENCLOSING_ID", "")
    words = ["jobs", "-n", "--format={nodelist}", task] if task else ["getattr", "hostlist"]
    answer = run_command(["flux", *words], env=environ, limit_s=FLUX_LIMIT_S)
    if not answer.ok:
        raise MissingError.of(
            "flux-fails", word=words[0], answer=answer.text().strip()[:200] or "no answer"
        )
    hosts = _unique(expand(answer.text().strip(), "Flux's hostlist"))
    source = f"Flux job {job}" if job else "Flux instance"
    return Allocation(hosts, source, "flux", decimal_id(job) or job)


def _nameless(job: str, reason: str) -> UsageError:
    return UsageError.of("job-no-nodes", job=job, reason=reason)


# ------------------------------------------------------------------ lists of hosts


def read_hostfile(path: Path) -> tuple[str, ...]:
    """Read the hosts of a file, each once: the first word of each line; `#` begins a comment.
    What may follow a name (` slots=4`, `:4`) is ignored: a layout says how many ranks go where.
    Raises UsageError for a line that names no host, and for a file that cannot be read."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError as error:
        raise UsageError.of("file-unusable", path=path, reason=error.strerror) from error
    hosts: list[str] = []
    for number, line in enumerate(lines, 1):
        if words := line.partition("#")[0].split():
            hosts += expand(re.sub(r"^([^:]*):[0-9]+$", r"\1", words[0]), f"{path}:{number}")
    if not hosts:
        raise UsageError.of("hosts-empty", path=path)
    return _unique(hosts)


def expand(text: str, where: str = "hosts") -> tuple[str, ...]:
    """Expand `n[1-3,07-09]x,login` to n1x n2x n3x n07x n08x n09x login, in the order
    written. Several brackets in a name multiply, the last fastest; a leading zero keeps the width.

    Raises UsageError, which names `where`, for anything else, and for more than MAX_HOSTS hosts.
    """
    hosts: list[str] = []
    for word in re.split(r",(?![^\[\]]*\])", text.strip()):
        pieces = re.split(r"\[([^\[\]]*)\]", word)  # text and the inside of brackets, by turns
        parts = [_numbers(p, where) if n % 2 else (p,) for n, p in enumerate(pieces)]
        if len(hosts) + math.prod(map(len, parts)) > MAX_HOSTS:
            raise UsageError.of("hosts-too-many", where=where, word=word[:80], max_hosts=MAX_HOSTS)
        hosts += map("".join, product(*parts))
    if wrong := [h for h in hosts if not (NAME.fullmatch(h) or ADDRESS_6.fullmatch(h))]:
        raise UsageError.of("host-name-invalid", where=where, name=wrong[0][:80])
    return tuple(hosts)


def _numbers(text: str, where: str) -> tuple[str, ...]:
    """`1-3,07-08` -> 1 2 3 07 08."""
    numbers: list[str] = []
    for word in text.split(","):
        match = RANGE.fullmatch(word)
        first, last = (match[1], match[2] or match[1]) if match else ("1", "0")
        if int(last) < int(first) or int(last) - int(first) >= MAX_HOSTS:
            raise UsageError.of(
                "host-range-invalid", where=where, word=word[:80], max_hosts=MAX_HOSTS
            )
        numbers += (str(n).zfill(len(first)) for n in range(int(first), int(last) + 1))
        if len(numbers) > MAX_HOSTS:
            raise UsageError.of("hosts-too-many", where=where, word=text[:80], max_hosts=MAX_HOSTS)
    return tuple(numbers)


def cpu_counts(text: str) -> tuple[int, ...]:
    """Read `72(x2),36` as 72 72 36; as nothing what is not such a list."""
    cpus: list[int] = []
    for word in text.split(","):
        match = COUNT.fullmatch(word)
        if not match or len(cpus) + int(match[2] or 1) > MAX_HOSTS:
            return ()
        cpus += [int(match[1])] * int(match[2] or 1)
    return tuple(cpus)


def _unique(hosts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(hosts))
