"""What of a user's environment a job is given.

A benchmark starts from an allow-list; a job is the user's own, so all of it passes, but for what
would make another MPI or another transport of the one that was chosen. What steers and may stay
goes through the configuration's settings, so that what is proved is what then runs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePosixPath

from mpigraft.core.env import SECRET_NAME
from mpigraft.core.model import EngineContext, EnvRow, GraftPlan, Scope
from mpigraft.graft import same_paths_inside
from mpigraft.knowledge import breaking_variables, transport_rows

ANOTHER_LAUNCH = re.compile(
    r"PMI_|PMI2_|PMIX_(?!MCA_)|OMPI_(?!MCA_|ALLOW_)|OMPI_MCA_(ess|orte|pmix)_|PRTE_(?!MCA_)|HYDI_"
    r"|HYDRA_PROXY|MPI_LOCAL(RANKID|NRANKS)$|MPIR_.*_FD$|I_MPI_HYDRA_(?!IFACE|DEBUG)"
    r"|MPIGRAFT_(WITNESS|TRACE|TRACE_OPTIONS|SPAWN(_\w+)?)$"
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
INSIDE = re.compile(r"^(APPTAINER|SINGULARITY)ENV_")  # sets the variable in a container
OF_ENGINE = re.compile(r"(APPTAINER|SINGULARITY)_")  # APPTAINER_BINDPATH is no search path
STEERING = re.compile(r"OMPI_MCA_|OPAL_MCA_|PMIX_MCA_|MPIR_|MPICH_|I_MPI_|FI_|UCX_")
# Variables that say where things are on this machine, or that belong to a shell or a login here:
# (whose, its names). Names are exact and prefixes end at "_" or are a tool's whole word, so that a
# user's EBEAM, CONDAX, MODULES_N or SPACK_X are the user's.
# Sources: Lmod 8.6, its page of environment variables and src/BaseShell.lua; Environment Modules
# 5.4, module(1), ENVIRONMENT, and 4.x's LM lists and _modshare; EasyBuild 4.8, the module files
# that it writes; Spack 0.23, setup-env.sh, shell.py of environments, spack.user_environment;
# conda 24, activate.py; venv's activate; pyenv(1); bash(1), Shell Variables; pam_systemd(8) and the
# XDG base directories; ssh(1), ENVIRONMENT; Slurm and MPIs' own are sorted out before.
HOSTS_OWN: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (whose, re.compile(names))
    for whose, names in (
        (
            "of the environment modules of this machine",
            r"(__)?LMOD_\w+|_LMFILES_(\d+)?|_ModuleTable(\d+|_Sz)_|__Init_Default_Modules"
            r"|LOADEDMODULES|MODULESHOME|MODULE_VERSION(_STACK)?|MODULERCFILE|__MODULES_\w+"
            r"|MODULES_(CMD|SITECONFIG|RUN_QUARANTINE|LM(ALTNAME|CONFLICT|PREREQ|NOTUASKED))"
            r"|\w+_modshare",
        ),
        ("of EasyBuild's modules", r"EB(ROOT|VERSION|DEVEL|EXTSLIST)[A-Z0-9]\w*|EASYBUILD_\w+"),
        (
            "of Spack",
            r"SPACK_(ROOT|ENV|ENV_VIEW|PYTHON|SHELL|LOADED_HASHES|OLD_PROMPT|OLD_PS1)"
            r"|SPACK_(USER|SYSTEM)_(CONFIG|CACHE)_PATH|SPACK_DISABLE_LOCAL_CONFIG|_sp_\w+",
        ),
        (
            "of a Python environment of this machine",
            r"CONDA_\w+|_CONDA_(ROOT|EXE)|_CE_(M|CONDA)|MAMBA_(EXE|ROOT_PREFIX)"
            r"|VIRTUAL_ENV(_PROMPT)?|PYENV_(ROOT|VERSION|SHELL|DIR|HOOK_PATH)|PYTHONHOME",
        ),
        (
            "of the shell or the login",
            r"BASH|BASHOPTS|SHELLOPTS|BASH_(ENV|LOADABLES_PATH|COMPLETION_VERSINFO)|SHELL|SHLVL|_"
            r"|PWD|OLDPWD|HOSTNAME|PS[0-4]|PROMPT_COMMAND|XDG_\w+|DBUS_\w+|DISPLAY|XAUTHORITY"
            r"|WAYLAND_DISPLAY|SSH_(AUTH_SOCK|AGENT_PID|CLIENT|CONNECTION|TTY|ASKPASS)",
        ),
    )
)
# Never this machine's, bound or not: a container's loader, shell and Python search by them.
NEVER = re.compile(r"PATH|LD_\w+|PYTHONPATH")
SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc", "/var", "/boot")  # not to bind over
BRINGS = "--env NAME=VALUE brings it in"
MOST_BINDS = 4  # that are named
Same = Callable[[str], bool]  # of a path of this machine: ranks see the very same there
LOADER = ("LD_LIBRARY_PATH", "LD_PRELOAD")  # for ranks; a launcher takes its own MPI's


@dataclass(frozen=True, slots=True)
class UserEnvironment:
    """A user's environment, sorted out."""

    environment: tuple[tuple[str, str], ...]  # of the launcher, and so of every rank
    settings: tuple[str, ...]  # NAME=VALUE: what tunes an MPI and decides no lane
    rows: tuple[EnvRow, ...]  # for ranks alone
    dropped: tuple[tuple[str, str], ...]  # (name, why)

    def with_preload(self, settings: Sequence[str]) -> UserEnvironment:
        """Return the same with what `--env` preloads: it decides which libmpi ranks of this machine
        load."""
        values = [word.partition("=")[2] for word in settings if word.startswith("LD_PRELOAD=")]
        if not values:
            return self
        others = (row for row in self.rows if row.name != "LD_PRELOAD")
        return replace(self, rows=(*others, EnvRow("LD_PRELOAD", values[-1], Scope.RANK, "--env")))

    def for_guest(self) -> UserEnvironment:
        """Return the same for ranks in a guest, where paths of this machine lead nowhere."""
        why = f"the guest's own programs search by it; {BRINGS}"
        dropped = tuple((row.name, why) for row in self.rows)
        return replace(self, rows=(), dropped=(*self.dropped, *dropped))

    def into(self, plan: GraftPlan, seat: EngineContext) -> tuple[tuple[str, ...], UserEnvironment]:
        """`reaching` for the guest of a plan, whose engine starts ranks from `seat`, without what
        would break the engine."""
        clean = self._without(breaking_variables(plan.engine))
        if plan.guest.kind.on_host:
            return clean.reaching(plan.passed, (), None)
        image = (name for name, _ in plan.guest.environment)
        return clean.reaching(plan.passed, image, same_paths_inside(plan, seat))

    def _without(self, breaking: Mapping[str, str]) -> UserEnvironment:
        """Return the same without variables that map to why they are dropped."""
        gone = tuple((name, breaking[name]) for name, _ in self.environment if name in breaking)
        left = tuple(pair for pair in self.environment if pair[0] not in breaking)
        return replace(self, environment=left, dropped=(*self.dropped, *gone))

    def why(self) -> list[tuple[str, list[str]]]:
        """(reason, variables that are dropped for it): modules have dozens that share one."""
        reasons: dict[str, list[str]] = {}
        for name, reason in self.dropped:
            reasons.setdefault(reason, []).append(name)
        return list(reasons.items())

    @property
    def absent(self) -> tuple[str, ...]:
        """Paths for which a `...PATH` was dropped and that are not there yet."""
        values = dict(self.environment)
        paths = [
            values[name] for name, _ in self.dropped if name.endswith("PATH") and name in values
        ]
        entries = [entry for value in paths for entry in value.split(":")]
        return tuple(str(Path(e).absolute()) for e in entries if not _there(e))

    def reaching(
        self, always: Iterable[str], image: Iterable[str], same: Same | None
    ) -> tuple[tuple[str, ...], UserEnvironment]:
        """Return names of a user's own variables that a guest is given besides those that match a
        pattern of `always`, and this value with why others are not.

        `image` are the names that the guest's image sets. `same` tells whether ranks see at a path
        the very file or folder that is there on this machine; None: the guest's root is this
        machine's own.
        """
        patterns, own = tuple(always), frozenset(image)
        pairs = [
            (name, value)
            for name, value in self.environment
            if not any(fnmatchcase(name, pattern) for pattern in patterns)
        ]
        why = {name: _why_not_inside(name, value, own, same) for name, value in pairs}
        into = tuple(name for name, reason in why.items() if not reason)
        dropped = tuple((name, reason) for name, reason in why.items() if reason)
        return into, replace(self, dropped=(*self.dropped, *dropped))


def filter_environment(environ: Mapping[str, str]) -> UserEnvironment:
    """`environ` as a job may have it."""
    dropped = {name: why for name in environ if (why := _why_not(name))}
    kept = {n: v for n, v in environ.items() if n not in dropped and n not in LOADER}
    steering = {n: v for n, v in kept.items() if STEERING.match(n) and n.isidentifier()}
    return UserEnvironment(
        environment=tuple(sorted(kept.items())),
        settings=tuple(f"{n}={v}" for n, v in sorted(steering.items()) if not _secret(n)),
        rows=tuple(
            EnvRow(name, environ[name], Scope.RANK, "user") for name in LOADER if environ.get(name)
        ),
        dropped=tuple(sorted(dropped.items())),
    )


def _why_not(name: str) -> str:
    """Return why a variable is dropped; empty: it stays. With Apptainer's prefix it reaches ranks
    too."""
    name = INSIDE.sub("", name)
    if ANOTHER_LAUNCH.match(name):
        return "it belongs to another launch around this one and is never passed on"
    if ANOTHER_PLACE.match(name):
        return "it points to another MPI; choose one with --mpi"
    if LANE.match(name) or name in _of_transports():
        return "it selects a transport: use --transport or --env"
    return ""


def _why_not_inside(name: str, value: str, image: frozenset[str], same: Same | None) -> str:
    """Return why a variable of the user's stays out of a guest, and what brings it in; empty: it
    goes in."""
    if name.startswith("BASH_FUNC_"):
        return "a function that bash exports; define it in a script that runs in the guest"
    if not name.isidentifier():
        return "not every engine takes such a name; give it another one"
    if same is None:
        return ""
    if name in image:
        return f"the image sets it itself; {BRINGS}"
    if NEVER.fullmatch(name):
        return f"the guest's own programs search by it; {BRINGS}"
    for owner, names in HOSTS_OWN:
        if names.fullmatch(name):
            return f"{owner}; {_brings(name)}"
    searched = name.endswith("PATH") and not OF_ENGINE.match(name)
    strange = _strange(value, same) if searched else []
    return f"{_not_there(strange)}; {_bound_or_set(name, strange)}" if strange else ""


def _brings(name: str) -> str:
    return "nothing brings it in: the name looks like a secret's" if _secret(name) else BRINGS


def _strange(value: str, same: Same) -> list[str]:
    """Return entries of a search path that are not the same in the guest. An empty one is the
    working folder, or the program's default."""
    return [entry for entry in dict.fromkeys(value.split(":")) if entry and not same(entry)]


def _not_there(entries: list[str]) -> str:
    more = f" (and {len(entries) - 1} more)" if len(entries) > 1 else ""
    if not _there(entries[0]):
        return f"there is no {entries[0]}{more} on this machine"
    return f"the guest does not have {entries[0]}{more} of this machine"


def _bound_or_set(name: str, entries: list[str]) -> str:
    """Advise how to bring a search path in, but for a system's folder, which would hide the
    guest's."""
    as_it_is = f"--env {name}=... as it is" if not _secret(name) else "a name that is no secret's"
    able = [e for e in entries if e.startswith("/") and not _of_system(e) and _there(e)]
    if able != entries or len(entries) > MOST_BINDS:
        return f"{as_it_is} brings it in"
    binds = " ".join(shlex.join(("--bind", entry)) for entry in entries)
    return f"{binds} brings it in, {as_it_is}"


def _there(path: str) -> bool:
    try:
        return Path(path).exists()
    except OSError:  # a folder above it is closed to this user, or the name is too long
        return False


def _of_system(path: str) -> bool:
    pure = PurePosixPath(path)
    return len(pure.parts) < 2 or any(pure.is_relative_to(folder) for folder in SYSTEM)


@cache
def _of_transports() -> frozenset[str]:
    return frozenset(name for row in transport_rows() for name, _ in (*row.env, *row.launcher))


def _secret(name: str) -> bool:
    return bool(SECRET_NAME.search(name))
