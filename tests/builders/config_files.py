"""Configurations that read the configuration files of a folder, and the keys of their evidence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from mpigraft.core.model import Configuration, EnvRow, Layout, Scope
from mpigraft.evidence.files.config import Surroundings
from mpigraft.evidence.keys import evidence_key
from tests.builders.plans import label, plan
from tests.builders.probes import configuration

PROGRAMS = cast(Any, SimpleNamespace(digest="d"))
ASKED = {
    "openmpi": ("openmpi@5.0.11", "ob1-sm"),
    "mpich": ("mpich@5.0.2", "ucx"),
    "intel": ("intel@2021.18.1", "shm"),
}


def asked(family: str, place: Path) -> Configuration:
    """An MPI with this folder for its prefix, and variables that name files in it."""
    one = configuration(*ASKED[family])
    assert one.mpi is not None
    names = {
        "OMPI_MCA_mca_base_param_files": f"/nowhere,{place}/named.conf",
        "HYDRA_CONFIG_FILE": f"{place}/hydra.conf",
        "I_MPI_TUNING_BIN": f"{place}/tuned.bin",
        "UCX_CONFIG_DIR": f"{place}/ucd",
    }
    rows = tuple(EnvRow(name, value, Scope.RANK, "user") for name, value in names.items())
    mpi = replace(one.mpi, prefix=place, libmpi=None, launcher=None, libfabric=None, ucx=None)
    return replace(one, environment=rows, mpi=mpi)


def key(one: Configuration, place: Path, **changes: Any) -> str:
    around = Surroundings(place / "cwd", (("HOME", str(place / "home")),), **changes)
    return evidence_key(one, Layout(), PROGRAMS, surroundings=around)


def in_guest(place: Path, **changes: Any) -> Configuration:
    one = asked("openmpi", place)
    return replace(one, graft=plan(label(str(place / "image")), "bwrap", **changes))
