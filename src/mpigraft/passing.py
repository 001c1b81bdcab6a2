"""What of a user's environment a job is given.

A benchmark starts from an allow-list; a job is the user's own, so all of it passes, but for what
would make another MPI or another transport of the one that was chosen. What steers and may stay
goes through the configuration's settings, so that what is proved is what then runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from mpigraft.env import SECRET_NAME
from mpigraft.knowledge.loader import rows
from mpigraft.model import EnvRow, Scope

ANOTHER_LAUNCH = re.compile(
    r"PMI_|PMI2_|PMIX_(?!MCA_)|OMPI_(?!MCA_|ALLOW_)|OMPI_MCA_(ess|orte|pmix)_|PRTE_(?!MCA_)|HYDI_"
    r"|HYDRA_PROXY|MPI_LOCAL(RANKID|NRANKS)$|MPIR_.*_FD$|I_MPI_HYDRA_(?!IFACE|DEBUG)"
    r"|MPIGRAFT_WITNESS$"
)
ANOTHER_PLACE = re.compile(
    r"OPAL_|PMIX_INSTALL_PREFIX$|I_MPI_ROOT$|FI_PROVIDER_PATH$|UCX_MODULE_DIR$"
    r"|OMPI_MCA_mca_(base_)?component_path$"
)
LANE = re.compile(  # beside the names that rows of knowledge set
    r"FI_PROVIDER$|UCX_(TLS|NET_DEVICES)$|I_MPI_(OFI_PROVIDER|OFI_LIBRARY|DEVICE)"
    r"|MPIR_CVAR_(OFI_USE_PROVIDER|CH4_(NETMOD|SHM)|NEMESIS_NETMOD)|OMPI_MCA_(pml|mtl|btl|osc|spml)$"
    r"|MPICH_OFI_(USE_PROVIDER|NIC_POLICY)"
)
STEERS = re.compile(r"OMPI_MCA_|OPAL_MCA_|PMIX_MCA_|MPIR_|MPICH_|I_MPI_|FI_|UCX_")
HOSTS_OWN = re.compile(  # says where things lie on this machine, or belongs to a shell here
    r"\w*PATH$|PYTHONHOME$|LD_|LMOD_|_LMFILES_|LOADEDMODULES$|MODULE|__MODULES|BASH|SPACK_|EB|CONDA"
    r"|VIRTUAL_ENV|HOME$|SHELL$|PWD$|OLDPWD$|SHLVL$|_$|HOSTNAME$|PS[0-9]$|XDG_|DBUS_|SSH_|DISPLAY$"
)
LOADER = ("LD_LIBRARY_PATH", "LD_PRELOAD")  # for ranks; a launcher takes its own MPI's


@dataclass(frozen=True, slots=True)
class Passed:
    """A user's environment, sorted out."""

    environment: tuple[tuple[str, str], ...]  # of the launcher, and so of every rank
    settings: tuple[str, ...]  # NAME=VALUE: what tunes an MPI and decides no lane
    rows: tuple[EnvRow, ...]  # for ranks alone
    dropped: tuple[tuple[str, str], ...]  # (name, why)

    def for_guest(self) -> Passed:
        """The same for ranks in a guest, where paths of this machine lead nowhere."""
        lost = tuple((row.name, "its paths are this machine's") for row in self.rows)
        return replace(self, rows=(), dropped=(*self.dropped, *lost))

    def reaching(self, image: Iterable[str]) -> tuple[str, ...]:
        """Names of a user's own variables that a guest shall see too: not those that `image` sets
        for itself, nor what says where things lie on this machine."""
        own = {n for n, _ in self.environment if n.isidentifier() and not HOSTS_OWN.match(n)}
        return tuple(sorted(own - set(image)))


def sort_out(environ: Mapping[str, str]) -> Passed:
    """`environ` as a job may have it."""
    dropped = {name: why for name in environ if (why := _why_not(name))}
    kept = {n: v for n, v in environ.items() if n not in dropped and n not in LOADER}
    steering = {n: v for n, v in kept.items() if STEERS.match(n) and n.isidentifier()}
    return Passed(
        environment=tuple(sorted(kept.items())),
        settings=tuple(f"{n}={v}" for n, v in sorted(steering.items()) if not _secret(n)),
        rows=tuple(
            EnvRow(name, environ[name], Scope.RANK, "user") for name in LOADER if environ.get(name)
        ),
        dropped=tuple(sorted(dropped.items())),
    )


def _why_not(name: str) -> str:
    """Why a variable is dropped; empty: it stays."""
    if ANOTHER_LAUNCH.match(name):
        return "it belongs to another launch around this one"
    if ANOTHER_PLACE.match(name):
        return "it says where another MPI lies"
    if LANE.match(name) or name in _of_transports():
        return "it selects a transport: ask with --transport, or with --set"
    return ""


def _of_transports() -> frozenset[str]:
    return frozenset(name for row in rows() for name, _ in (*row.env, *row.launcher))


def _secret(name: str) -> bool:
    return bool(SECRET_NAME.search(name))
