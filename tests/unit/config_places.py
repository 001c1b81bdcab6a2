"""A prefix and a home of configuration files, and configurations that read them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mpigraft.config_files import Surroundings
from mpigraft.kept_evidence import evidence_key
from mpigraft.model import Configuration, EnvRow, Layout, Scope
from tests.unit.graft_plans import label, plan
from tests.unit.probes import configuration, with_transport

PROGRAMS = cast(Any, SimpleNamespace(digest="d"))
ASKED = {
    "openmpi": ("openmpi@5.0.11", "ob1-sm"),
    "mpich": ("mpich@5.0.2", "ucx"),
    "intel": ("intel@2021.18.1", "shm"),
}


def a_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("home", "cwd", "lib/ucx", "etc", "data"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "data"))
    (tmp_path / "lib/ucx/libucs.so.0").touch()
    return tmp_path


def asked(family: str, place: Path) -> Configuration:
    """An MPI with this folder for its prefix, and variables that name files in it."""
    one = configuration(*ASKED[family])
    assert one.mpi is not None
    assert one.transport is not None
    names = {
        "OMPI_MCA_mca_base_param_files": f"/nowhere,{place}/named.conf",
        "HYDRA_CONFIG_FILE": f"{place}/hydra.conf",
        "I_MPI_TUNING_BIN": f"{place}/tuned.bin",
        "UCX_CONFIG_DIR": f"{place}/ucd",
    }
    rows = tuple(EnvRow(name, value, Scope.RANK, "user") for name, value in names.items())
    mpi = replace(one.mpi, prefix=place, libmpi=None, launcher=None, libfabric=None, ucx=None)
    return replace(with_transport(one, env=(*one.transport.env, *rows)), mpi=mpi)


def key(one: Configuration, place: Path, **changes: Any) -> str:
    around = Surroundings(place / "cwd", (("HOME", str(place / "home")),), **changes)
    return evidence_key(one, Layout(), PROGRAMS, around=around)


def in_guest(place: Path, **changes: Any) -> Configuration:
    one = asked("openmpi", place)
    return replace(one, graft=plan(label(str(place / "image")), "bwrap", **changes))
