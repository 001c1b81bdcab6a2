"""A user of a cluster who starts mpigraft on its nodes, and what came of it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mpigraft.core.model import Family
from testbed.cluster import Cluster
from testbed.slurm import Slurm
from tests.homes import make_home
from tests.native.native_world import compile_c

SHORT = ("--benchmark", "latency", "--rounds", "1", "--max", "8", "--ms-per-size", "2")
PATIENCE_S = 200.0
LIBMPI = {Family.MPICH: "lib/libmpi.so.12", Family.INTEL: "lib/libmpi.so.12.0.0",
          Family.OPENMPI: "lib/libmpi.so.40"}  # fmt: skip
Told = dict[str, Any]


@dataclass
class User:
    """Has a home with the real MPIs that all nodes see, and a store."""

    cluster: Cluster
    mpis: Mapping[Family, Path]
    slurm: Slurm | None = None
    python: Sequence[str | Path] = (sys.executable,)
    env: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder = self.cluster.shared / "user"
        self.home, self.store = self.folder / "home", self.folder / "store"
        if not self.home.exists():
            make_home(self.home, self.mpis)

    @property
    def environ(self) -> dict[str, str]:
        own = {"MPIGRAFT_HOME": str(self.home)}
        if self.slurm:
            return {**self.slurm.environ, **own, **self.env}
        return {**self.cluster.environ, **own, **self.env}

    def words(self, *words: object) -> list[str]:
        own = [*self.python, "-m", "mpigraft.cli.main", "--store", self.store]
        return [*map(str, own), *map(str, words)]

    def on(
        self, node: str, *words: object, code: int = 0, timeout: float = PATIENCE_S
    ) -> subprocess.CompletedProcess[str]:
        """mpigraft on a node, by hand."""
        done = self.cluster.run(
            node, self.words(*words), env=self.environ, cwd=self.folder, timeout=timeout
        )
        assert done.returncode == code, done.stderr + done.stdout
        return done

    def nodes(self) -> tuple[object, ...]:
        """Where there is no scheduler: all of them, reached by the stand-in for ssh."""
        return ("--hosts", ",".join(self.cluster.nodes), "--ssh-command", self.cluster.remote)

    def job(self, *words: object, nodes: int = 2, ranks: int = 1, code: int = 0) -> str:
        """mpigraft in a batch job on so many nodes, with room for `ranks` on each."""
        assert self.slurm
        script, said = self.folder / "job.sh", self.folder / "job.out"
        script.write_text(f"#!/bin/sh\nexec {shlex.join(self.words(*words))}\n")
        size = (f"--nodes={nodes}", f"--ntasks-per-node={ranks}")
        done = subprocess.run(
            ["sbatch", "--quiet", "--wait", *size, f"--output={said}", script],
            env=self.environ, cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE_S,
        )  # fmt: skip
        text = said.read_text() if said.exists() else ""
        assert done.returncode == code, done.stderr + text + self.slurm.logs()
        return text

    def shown(self) -> dict[str, Told]:
        """The configurations of the last campaign by their ids."""
        done = subprocess.run(
            [sys.executable, *self.words("results", "show", "--json")[len(self.python) :]],
            env={**os.environ, "MPIGRAFT_HOME": str(self.home)},
            capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        assert done.returncode in {0, 6}, done.stderr  # 6: of nothing is known what ran
        return {c["id"]: c for c in json.loads(done.stdout)["configurations"]}


def compile_enter(user: User, prefix: Path, family: Family) -> Path:
    """A program of that MPI, as tests/native/c/enter.c says."""
    return compile_c(
        "enter.c", user.folder / "enter", "-isystem", prefix / "include",
        prefix / LIBMPI[family], "-Wl,--allow-shlib-undefined",
    )  # fmt: skip


def lanes(told: Told, peer: str) -> dict[str, str]:
    """The lane of each kind that is proven between such peers."""
    return {
        p["kind"]: p["lane"]
        for p in told["proof"]
        if p["peer"] == peer and p["standing"] == "proven"
    }


def standing(told: Told, peer: str) -> set[str]:
    return {p["standing"] for p in told["proof"] if p["peer"] == peer}


def crossed(told: Told, interface: str = "e0") -> Told:
    """What the counters of an interface say."""
    (found,) = (w for w in told["wire"] if w["interface"] == interface)
    return dict(found)


def codes(told: Told) -> set[str]:
    return {f["code"] for f in told["findings"] if f["level"] == "error"}
