"""MPIs in Spack's install trees, by the database that Spack keeps of each."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mpigraft.model import Family
from mpigraft.sources import look
from mpigraft.sources.candidate import Candidate, Here, find_libmpi

PACKAGES = {
    "openmpi": Family.OPENMPI,
    "mpich": Family.MPICH,
    "intel-oneapi-mpi": Family.INTEL,
    "intel-mpi": Family.INTEL,
    "cray-mpich": Family.CRAY_MPICH,
    "mvapich": Family.MVAPICH,
    "mvapich2": Family.MVAPICH,
    "mvapich-plus": Family.MVAPICH,
}
DATABASE = ".spack-db/index.json"
INSTALL_TREE = re.compile(r"^\s*(?:install_tree|root):\s*(/\S+|\$spack/\S+)\s*$", re.MULTILINE)


def find(here: Here) -> Iterator[Candidate]:
    for tree in _trees(here):
        try:
            database = json.loads((tree / DATABASE).read_bytes())
        except (OSError, ValueError):
            continue
        yield from _candidates(tree, database)


def _trees(here: Here) -> list[Path]:
    """Install trees of the Spacks that this user has at hand, each once."""
    roots = [Path(here.environ["SPACK_ROOT"])] if here.environ.get("SPACK_ROOT") else []
    if tool := shutil.which("spack", path=here.environ.get("PATH", "")):
        roots.append(Path(os.path.realpath(tool)).parent.parent)
    roots += [here.at("/opt/spack"), Path(here.environ.get("HOME", "/")) / "spack"]
    trees = []
    for root in roots:
        trees.append(root / "opt/spack")
        for config in (root / "etc/spack/config.yaml", here.at("/etc/spack/config.yaml")):
            named = INSTALL_TREE.search(look.text(config))
            if named:
                trees.append(Path(named[1].replace("$spack", str(root))))
    return [t for t in dict.fromkeys(trees) if look.is_file(t / DATABASE)]


def _candidates(tree: Path, database: Any) -> Iterator[Candidate]:
    """Installed MPIs of one database; entries of an unknown form are passed over."""
    table = database.get("database") if isinstance(database, dict) else None
    installs = table.get("installs") if isinstance(table, dict) else None
    for digest, record in sorted(installs.items()) if isinstance(installs, dict) else ():
        if not isinstance(record, dict) or not record.get("installed", True):
            continue
        spec, path = record.get("spec"), record.get("path")
        if not isinstance(spec, dict) or not isinstance(path, str):
            continue
        name = spec.get("name")
        family = PACKAGES.get(name) if isinstance(name, str) else None
        if family is None:
            continue
        prefix = _inner(Path(path))
        yield Candidate(
            source="spack",
            found=f"Spack: {name}/{digest[:7]} in {tree}",
            prefix=prefix,
            libmpi=find_libmpi(prefix, family),
            bins=(prefix / "bin",),
            family=family,
            version=str(spec.get("version", "")),
        )


def _inner(prefix: Path) -> Path:
    """Intel's packages hold the MPI one or two folders deeper: mpi/2021.12."""
    for folder in look.entries(prefix / "mpi"):
        if folder.name[:1].isdigit() and look.is_folder(folder / "lib"):
            return folder
    return prefix
