"""Keep what was read of a host MPI: two hundred libraries that do not change for months.

The answer holds as long as all files that it was read from, or looked for in vain, are as they
were (`reads`). It is kept as rows, which are read ten times faster than values by field.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mpigraft.core import cache, file_dependencies
from mpigraft.core.fingerprint import own_state
from mpigraft.core.model import AbiObject, DataFile, EnvRow, MpiAbi, MpiInstall, Role
from mpigraft.core.serialize import digest, plain, revive

KIND = "abi-1"  # in the cache
FIELDS = (
    "soname", "path", "digest", "role", "machine", "needed", "needs", "defines", "exported",
    "imported", "rpath", "runpath", "opened", "place",
)  # fmt: skip
LISTS = ("needed", "defines", "exported", "imported")
MOST = 32  # MPIs; each takes one or two million bytes
LOADER = ("LD_", "GLIBC_TUNABLES")

# Of this process: what is made of the same values is made once, such as a graft's simulated files.
_READ: dict[str, tuple[dict[str, Any], MpiAbi | None]] = {}


def kept_abi(mpi: MpiInstall, loader: Mapping[str, str]) -> MpiAbi | None:
    """Give what `keep_abi` kept for an MPI under a loader with these variables; None where there is
    nothing, or where something that it was read from is not what it was."""
    key = _key(mpi, loader)
    document, known = _READ.get(key) or (cache.get(KIND, key), None)
    with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError, IndexError):
        if document is None or not file_dependencies.unchanged(noted := document["reads"]):
            return None
        file_dependencies.repeat(noted)
        known = known or MpiAbi(
            mpi=mpi,
            objects=tuple(map(_object, document["objects"])),
            data=tuple(DataFile(*row) for row in document["data"]),
            glibc=document["glibc"],
            environment=revive(tuple[EnvRow, ...], document["environment"]),
            programs=tuple(map(_object, document["programs"])),
        )
        _READ[key] = {"reads": noted}, known
        return replace(known, mpi=mpi)
    return None


def keep_abi(abi: MpiAbi, loader: Mapping[str, str], noted: file_dependencies.Reads) -> None:
    """Keep an answer with what it was read from, unless that is too young to be trusted."""
    if (document := noted.document()) is None:
        return
    rows = [_row(one) for one in abi.objects]
    started = [_row(one) for one in abi.programs]
    data = [[file.path, file.place, file.digest] for file in abi.data]
    what: dict[str, Any] = {"objects": rows, "programs": started, "data": data, "glibc": abi.glibc}
    what |= {"environment": plain(abi.environment), "reads": document}
    cache.put(KIND, _key(abi.mpi, loader), what)
    cache.trim(KIND, MOST)


def _row(one: AbiObject) -> list[Any]:
    return [getattr(one, name) for name in FIELDS]


def _object(row: list[Any]) -> AbiObject:
    values = dict(zip(FIELDS, row, strict=True))
    values |= {name: tuple(values[name]) for name in LISTS}
    values |= {"role": Role(values["role"]), "needs": tuple(map(tuple, values["needs"]))}
    return AbiObject(**values)


def _key(mpi: MpiInstall, loader: Mapping[str, str]) -> str:
    """Return all that decides and is in no file that is noted."""
    variables = {name: value for name, value in loader.items() if name.startswith(LOADER)}
    what = [mpi.libmpi, mpi.family, mpi.abi, mpi.prefix, mpi.environment, variables]
    return digest(plain([own_state(), what]))
