"""The scheduler that rules this machine, and the launchers in PATH."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mpigraft.model import LauncherInfo, Scheduler
from mpigraft.run import run
from mpigraft.sources import look, pmi, probe
from mpigraft.sources.candidate import Here

CONTROLLER_LIMIT_S = 10.0  # a busy one is slow, and without its answer a login node is measured
LAUNCHER_LIMIT_S = 5.0  # it speaks of itself only, and asks nobody
NAMES = ("mpirun", "mpiexec", "prterun", "srun", "flux", "palsrun", "aprun", "jsrun")
VERSION = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+)+[\w.-]*)")


def _which(here: Here, name: str) -> Path | None:
    found = shutil.which(name, path=here.environ.get("PATH", os.defpath))
    return Path(found) if found else None


def _version(tool: Path, here: Here, word: str = "--version") -> tuple[str, str]:
    """(version, reason): one of them is empty."""
    said = probe.tool([tool, word], here.asking(), limit_s=LAUNCHER_LIMIT_S)
    found = VERSION.search(said)
    if found:
        return found[1], ""
    return "", (said.strip().splitlines() or ["it names no version"])[0]


# ------------------------------------------------------------------ scheduler


def scheduler(here: Here) -> Scheduler | None:
    """Slurm, PBS or Flux; None where nobody hands out nodes.

    Installed client programs alone are no scheduler: an allocation, a configuration or an answer
    of the controller is.
    """
    return _slurm(here) or _pbs(here) or _flux(here)


def _slurm(here: Here) -> Scheduler | None:
    tool = _which(here, "sinfo")
    job = here.environ.get("SLURM_JOB_ID", "")
    configured = "SLURM_CONF" in here.environ or any(
        look.exists(here.at(f)) for f in ("/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf")
    )
    if tool and not job and not configured:
        configured = run(
            [tool, "--noheader"], limit_s=CONTROLLER_LIMIT_S
        ).ok  # configless: found by DNS
    if not job and not configured:
        return None
    return Scheduler("slurm", _version(tool, here)[0] if tool else "", bool(job), job)


def _pbs(here: Here) -> Scheduler | None:
    job = here.environ.get("PBS_JOBID", "")
    tool = _which(here, "qstat")
    if not job and not (tool and look.exists(here.at("/etc/pbs.conf"))):
        return None
    return Scheduler("pbs", _version(tool, here)[0] if tool else "", bool(job), job)


def _flux(here: Here) -> Scheduler | None:
    # What `flux batch` starts has the second only: the broker takes the first away from it.
    job = here.environ.get("FLUX_JOB_ID", "") or here.environ.get("FLUX_ENCLOSING_ID", "")
    tool = _which(here, "flux")
    uri = here.environ.get("FLUX_URI", "") or str(here.at("/run/flux/local"))
    if not job and not (tool and (uri.startswith("local:") or look.exists(Path(uri)))):
        return None
    return Scheduler("flux", _version(tool, here, "version")[0] if tool else "", bool(job), job)


# ------------------------------------------------------------------ launchers


def launchers(here: Here) -> tuple[LauncherInfo, ...]:
    """The launchers in PATH. Of what `srun` names, only the plugins that can be loaded."""
    found = [(name, path) for name in NAMES if (path := _which(here, name))]
    with ThreadPoolExecutor(4) as pool:
        return tuple(pool.map(lambda pair: _launcher(here, *pair), found))


def _launcher(here: Here, name: str, path: Path) -> LauncherInfo:
    version, reason = _version(path, here, "version" if name == "flux" else "--version")
    offered: tuple[str, ...] = ()
    if name == "srun":
        listed = run([path, "--mpi=list"], limit_s=LAUNCHER_LIMIT_S)
        offered = tuple(pmi_plugins(listed.text()))
        if listed.timed_out:
            reason = f"srun --mpi=list: no answer in {LAUNCHER_LIMIT_S:.0f} s"
        elif not offered:
            reason = f"srun --mpi=list named none: {listed.text().strip()[:200]}"
        else:
            offered, reason = pmi.loadable(path, offered, here)
    return LauncherInfo(name, path, version, offered, reason)


def pmi_plugins(text: str) -> Iterator[str]:
    """Names in `srun --mpi=list`: one an indented line since Slurm 22.05, before that one after
    `srun:`; the specific pmix versions follow on a line of their own."""
    seen: set[str] = set()
    for line in text.splitlines():
        head, _, tail = line.partition("available:")
        words = tail.split(",") if tail else [head]
        for word in words:
            name = word.strip().removeprefix("srun: ").strip()
            if re.fullmatch(r"[a-z][a-z0-9_]*", name) and name not in seen:
                seen.add(name)
                yield name
