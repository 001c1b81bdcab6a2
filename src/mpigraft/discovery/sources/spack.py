"""MPIs in Spack's install trees, by the database that Spack keeps of each."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mpigraft.core import file_dependencies
from mpigraft.core.model import Family
from mpigraft.discovery.sources import files
from mpigraft.discovery.sources.candidate import Candidate, Host, whole_prefix

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


def find(host: Host) -> Iterator[Candidate]:
    for tree in _trees(host):
        try:
            file_dependencies.file(tree / DATABASE)
            database = json.loads((tree / DATABASE).read_bytes())
        except (OSError, ValueError):
            continue
        yield from _candidates(tree, database)


def _trees(host: Host) -> list[Path]:
    """List the install trees of the Spacks that this user can reach, each once."""
    roots = [Path(host.environ["SPACK_ROOT"])] if host.environ.get("SPACK_ROOT") else []
    if tool := shutil.which("spack", path=host.environ.get("PATH", "")):
        roots.append(Path(os.path.realpath(tool)).parent.parent)
    roots += [host.path("/opt/spack"), Path(host.environ.get("HOME", "/")) / "spack"]
    trees = []
    for root in roots:
        trees.append(root / "opt/spack")
        for config in (root / "etc/spack/config.yaml", host.path("/etc/spack/config.yaml")):
            if match := INSTALL_TREE.search(files.text(config)):
                trees.append(Path(match[1].replace("$spack", str(root))))
    return [t for t in dict.fromkeys(trees) if files.is_file(t / DATABASE)]


def _candidates(tree: Path, database: Any) -> Iterator[Candidate]:
    """Yield the installed MPIs of one database; entries of an unknown form are skipped."""
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
        origin, version = f"Spack: {name}/{digest[:7]} in {tree}", str(spec.get("version", ""))
        yield whole_prefix("spack", origin, _inner(Path(path)), family, version)


def _inner(prefix: Path) -> Path:
    """Intel's packages hold the MPI one or two folders deeper: mpi/2021.12."""
    for folder in files.entries(prefix / "mpi"):
        if folder.name[:1].isdigit() and files.is_folder(folder / "lib"):
            return folder
    return prefix
