"""Environments as data: an allow-list to start from, rows on top, and what may be shown.

A launcher's environment starts from BASE, never from everything that the user has: a stray
OMPI_MCA_* or FI_* would make two configurations that look alike differ, and a token would end
in a result. Rows of scope RANK go through the innermost `env K=V -u K program` (`rank_argv`),
so that no launcher or container mangles or leaks them.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from functools import lru_cache

from mpigraft.core.errors import UsageError
from mpigraft.core.model import EnvRow, Scope

BASE = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TERM", "TMPDIR",
    "HOSTNAME", "XDG_RUNTIME_DIR", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
)  # fmt: skip
# No PMI: a launcher makes its own. podman finds its settings by CONTAINERS_*.
BASE_PREFIXES = ("SLURM_", "PBS_", "FLUX_", "PALS_", "CONTAINERS_")

# What selects a scheduler's configuration. Without it, its commands cannot print their version.
SCHEDULER_CONFIGURATION = ("SLURM_CONF", "PBS_CONF_FILE", "PBS_EXEC", "PBS_SERVER")

SHOWN_PREFIXES = (
    "OMPI_", "OPAL_", "PRTE_", "PMIX_MCA_", "MPIR_", "MPICH_", "MPIEXEC_", "I_MPI_", "FI_",
    "UCX_", "HYDRA_", "CRAY_", "MPIGRAFT_",
)  # fmt: skip
SHOWN = ("LD_LIBRARY_PATH", "LD_PRELOAD", "PATH", "CUDA_VISIBLE_DEVICES")
SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASS(WORD|WD|PHRASE)?|CREDENTIAL|COOKIE|AUTH(?!OR)|PRIVATE|JWT|BEARER|"
    r"(API|ACCESS|SIGNING|SSH|DEPLOY)_?KEY|_(PAT|PWD|KEY)$",
    re.IGNORECASE,
)
STRUCK = "[struck out]"
# A secret inside of another value: `token=...` in a provider's options, `--token ...`, a password
# in an address.
INNER = re.compile(
    r"((?:(?:token|secret|passw(?:or)?d|passphrase|credentials?|api[_-]?key)=|\bbearer\s+"
    r"|--(?:token|secret|passw(?:or)?d|passphrase|credentials?|api[_-]?key)\s+)[\"']?)"
    r"(?!\[struck)[^\s,;&\"']{6,}|(?<=//)[^\s/@:\"']+:[^\s/@\"']+(?=@)",
    re.IGNORECASE,
)
# By its path: a wrapper of that name earlier in PATH could change what no key knows of.
ENV = shutil.which("env", path="/usr/bin:/bin") or "/usr/bin/env"
GUEST_PATH = (
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # of an image that sets none
)


def base(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the part of this process's environment that a launch may see."""
    source = os.environ if environ is None else environ
    return {
        k: v
        for k, v in sorted(source.items())
        if (k in BASE or k.startswith(BASE_PREFIXES)) and not SECRET_NAME.search(k)
    }


def apply(environment: Mapping[str, str], rows: Iterable[EnvRow], *scopes: Scope) -> dict[str, str]:
    """`environment` with the rows of the given scopes applied in order."""
    changed = dict(environment)
    for row in rows:
        if row.scope not in scopes:
            continue
        if row.value is None:
            changed.pop(row.name, None)
        else:
            changed[row.name] = row.value
    return changed


def rank_argv(rows: Iterable[EnvRow], program: tuple[str, ...], tool: str = ENV) -> tuple[str, ...]:
    """`program` inside an `env` that applies the rows of scope RANK; the last of a name wins.
    `tool` is that env, by its path where the program runs.

    Raises UsageError for what `env` would take for something else: a variable's name with "="
    or a leading "-", a program with "=" in its path.
    """
    last = {row.name: row for row in rows if row.scope is Scope.RANK}
    if not last:
        return program
    if wrong := [name for name in last if not name or name.startswith("-") or "=" in name]:
        raise UsageError.of("variable-name-invalid", name=wrong[0])
    if program and "=" in program[0]:
        raise UsageError.of("program-path-equals", path=program[0])
    drops = [word for name, row in last.items() if row.value is None for word in ("-u", name)]
    sets = [f"{name}={row.value}" for name, row in last.items() if row.value is not None]
    return (tool, *drops, *sets, *program)


def shown(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what may be stored or printed of an environment: an allow-list, secrets struck out,
    also where another variable contains the value of one."""
    return {
        name: STRUCK if SECRET_NAME.search(name) else redact(redact(value), environment)
        for name, value in sorted(environment.items())
        if name in SHOWN or name.startswith(SHOWN_PREFIXES)
    }


def redact(text: str, environ: Mapping[str, str] | None = None) -> str:
    """Foreign output with the values of secret-looking variables struck out of it, and what
    itself says that it is a secret.

    Values of fewer than six characters stay: as a rule they are settings (AUTH=none), and text
    would lose every "none". Of values with several lines, keys for instance, each line counts.
    """
    source = os.environ if environ is None else environ
    secret = [source[name] for name in source if _is_secret(name)]
    values = {part for v in secret for part in (v, *v.splitlines()) if len(part.strip()) >= 6}
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, STRUCK)
    return INNER.sub(lambda found: f"{found[1] or ''}{STRUCK}", text)


def secrets() -> dict[str, str]:
    """Return the secret-looking variables of this process."""
    return {name: os.environ[name] for name in os.environ if _is_secret(name)}


@lru_cache(maxsize=4096)  # text is redacted cell by cell, under the same names each time
def _is_secret(name: str) -> bool:
    return bool(SECRET_NAME.search(name))


def refuse_secrets(*texts: str) -> None:
    """Raise UsageError if a text that names results holds the value of a secret variable: names
    are stored and shown as they are, since striking words out of them would break them."""
    for text in texts:
        if redact(text) != text:
            raise UsageError.of("name-secret", name=redact(text))
