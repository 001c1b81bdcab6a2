"""Find the scheduler of this machine, and the launchers in PATH."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mpigraft.core.model import Cpu, Finding, LauncherInfo, Scheduler
from mpigraft.core.process import run_command
from mpigraft.discovery.sources import files, pmi, probe
from mpigraft.discovery.sources.candidate import Host

CONTROLLER_LIMIT_S = 10.0  # a busy one is slow; without its answer a login node would be measured
LAUNCHER_LIMIT_S = 5.0  # it prints its version and contacts no daemon
NAMES = ("mpirun", "mpiexec", "prterun", "srun", "flux", "palsrun", "aprun", "jsrun")
COUNTS = re.compile(r"(?:^|,)(\d{1,9})")  # 72(x2),36
VERSION = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+)+[\w.-]*)")


def _which(host: Host, name: str) -> Path | None:
    program = shutil.which(name, path=host.environ.get("PATH", os.defpath))
    return Path(program) if program else None


def _version(tool: Path, host: Host, word: str = "--version") -> tuple[str, str]:
    """Give (version, reason): one of them is empty."""
    output = probe.tool_output([tool, word], host.query_environment(), limit_s=LAUNCHER_LIMIT_S)
    match = VERSION.search(output)
    if match:
        return match[1], ""
    return "", (output.strip().splitlines() or ["it prints no version"])[0]


# ------------------------------------------------------------------ scheduler


def scheduler(host: Host) -> Scheduler | None:
    """Find Slurm, PBS or Flux; None without a scheduler.

    Installed client programs alone are no scheduler: an allocation, a configuration or an answer
    of the controller is.
    """
    return _slurm(host) or _pbs(host) or _flux(host)


def _slurm(host: Host) -> Scheduler | None:
    tool = _which(host, "sinfo")
    job = host.environ.get("SLURM_JOB_ID", "")
    configured = "SLURM_CONF" in host.environ or any(
        files.exists(host.path(f)) for f in ("/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf")
    )
    if tool and not job and not configured:
        configured = run_command(
            [tool, "--noheader"], env=host.environ, limit_s=CONTROLLER_LIMIT_S
        ).ok  # configless: found by DNS
    if not job and not configured:
        return None
    return Scheduler("slurm", _version(tool, host)[0] if tool else "", bool(job), job)


def _pbs(host: Host) -> Scheduler | None:
    job = host.environ.get("PBS_JOBID", "")
    tool = _which(host, "qstat")
    if not job and not (tool and files.exists(host.path("/etc/pbs.conf"))):
        return None
    return Scheduler("pbs", _version(tool, host)[0] if tool else "", bool(job), job)


def _flux(host: Host) -> Scheduler | None:
    # What `flux batch` starts has the second only: the broker takes the first away from it.
    job = host.environ.get("FLUX_JOB_ID", "") or host.environ.get("FLUX_ENCLOSING_ID", "")
    tool = _which(host, "flux")
    uri = host.environ.get("FLUX_URI", "") or str(host.path("/run/flux/local"))
    if not job and not (tool and (uri.startswith("local:") or files.exists(Path(uri)))):
        return None
    return Scheduler("flux", _version(tool, host, "version")[0] if tool else "", bool(job), job)


def step_findings(host: Host, cpu: Cpu) -> tuple[Finding, ...]:
    """Say where a step of Slurm may use fewer CPUs than its job has on a node: where Slurm binds,
    a task gets one core unless more are requested (srun(1), --cpu-bind)."""
    job = host.environ.get("SLURM_JOB_ID", "")
    granted = COUNTS.findall(host.environ.get("SLURM_JOB_CPUS_PER_NODE", ""))
    if not (job and granted and "SLURM_STEP_ID" in host.environ):
        return ()
    # Nodes may differ, and this one's place among them is not known.
    least = min(os.cpu_count() or 1, *map(int, granted))
    if cpu.threads >= least:
        return ()
    return (Finding.of("step-cpus", own=cpu.threads, granted=least, job=job),)


# ------------------------------------------------------------------ launchers


def launchers(host: Host) -> tuple[LauncherInfo, ...]:
    """List the launchers in PATH. Of srun's PMI plugins, only those that can be loaded."""
    paths = [(name, path) for name in NAMES if (path := _which(host, name))]
    with ThreadPoolExecutor(4) as pool:
        return tuple(pool.map(lambda pair: _launcher(host, *pair), paths))


def _launcher(host: Host, name: str, path: Path) -> LauncherInfo:
    version, reason = _version(path, host, "version" if name == "flux" else "--version")
    offered: tuple[str, ...] = ()
    if name == "srun":
        listed = run_command([path, "--mpi=list"], env=host.environ, limit_s=LAUNCHER_LIMIT_S)
        offered = tuple(pmi_plugins(listed.text()))
        if listed.timed_out:
            reason = f"srun --mpi=list: no answer in {LAUNCHER_LIMIT_S:.0f} s"
        elif not offered:
            reason = f"srun --mpi=list names none: {listed.text().strip()[:200]}"
        else:
            offered, reason = pmi.loadable(path, offered, host)
    return LauncherInfo(name, path, version, offered, reason)


def pmi_plugins(text: str) -> Iterator[str]:
    """Parse `srun --mpi=list`: one name an indented line since Slurm 22.05, before that one after
    `srun:`; the specific pmix versions follow on a line of their own."""
    names: set[str] = set()
    for line in text.splitlines():
        head, _, tail = line.partition("available:")
        words = tail.split(",") if tail else [head]
        for word in words:
            name = word.strip().removeprefix("srun: ").strip()
            if re.fullmatch(r"[a-z][a-z0-9_]*", name) and name not in names:
                names.add(name)
                yield name
