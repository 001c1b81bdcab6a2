"""Real applications under grafts print what they print without: LAMMPS, and mpi4py's own tests.

Without means that the whole job, launcher and all, runs inside the image, on its own MPI or on a
wheel that is bound there by hand: nothing of mpigraft takes part.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from testbed import applications, rootfs
from testbed.applications import DEBIANS, DEBIANS_PYTHON, LMP, VENVS_PYTHON, WHEEL, physics
from testbed.engines import Bind, Engines, Inside
from testbed.images import Images
from tests.testbed.conftest import Need

pytestmark = [pytest.mark.long, pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]

PATTERNS = ("test_cco_[onv]*.py", "test_p2p*.py", "test_comm*.py", "test_rma.py")
LIMIT_S = 60.0
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# Without a graft: more ranks than cores, one thread each, as `run` has it, and a note less where
# ranks may not read each other.
ALONE = {
    **ROOT,
    "OMP_NUM_THREADS": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
}
DEBIANS_HOST = {"openmpi@4.1.4": "bookworm", "mpich@4.0.2": "bookworm", "openmpi@5.0.7": "trixie"}


class Site:
    """A user with images, engines and MPIs, in a folder of their own."""

    def __init__(self, folder: Path, images: Images, engines: Engines, environ: Mapping[str, str]):
        self.folder, self.images, self.engines = folder, images, engines
        self.environ = {**environ, **ROOT}
        self.kept: dict[tuple[object, ...], str] = {}
        (folder / "in.melt").write_text(applications.MELT, encoding="utf-8")
        self.suite = folder / "suite.py"
        shutil.copyfile(rootfs.HERE / "mpi4py_suite.py", self.suite)

    def graft(
        self, image: str, engine: str, host: str, n: int, *program: object, file: str = ""
    ) -> str:
        """What `mpigraft run` prints; `file` is its standard input."""
        if (suite := DEBIANS_HOST.get(host)) and suite != rootfs.own_suite():
            pytest.skip(f"{host} is of Debian {suite}")
        words = ("--image", self.images.folder(image), "--engine", engine, "--mpi", host, "-n", n)
        argv = [sys.executable, "-m", "mpigraft.cli.main", "run", *words, "--", *program]
        with (self.folder / file if file else Path("/dev/null")).open("rb") as stdin:
            done = subprocess.run(
                [str(word) for word in argv], env=self.environ, cwd=self.folder, stdin=stdin,
                capture_output=True, text=True, timeout=LIMIT_S, check=False,
            )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def alone(self, image: str, mpi: str, n: int, *program: object) -> str:
        """What the program prints without mpigraft, on `mpi`: once for each command."""
        key = (image, mpi, n, *program)
        if key not in self.kept:
            binds, env, launcher = self._without(mpi)
            inside = Inside(self.images.folder(image), binds, tuple({**ALONE, **env}.items()))
            job = shlex.join([launcher, "-n", str(n), *map(str, program)])
            line = f"cd {shlex.quote(str(self.folder))} && exec {job}"
            done = self.engines.run(
                self.engines.words("bwrap", inside, "sh", "-c", line), limit_s=LIMIT_S
            )  # fmt: skip
            assert done.ok, done.text()
            self.kept[key] = done.stdout.decode()
        return self.kept[key]

    def _without(self, mpi: str) -> tuple[tuple[Bind, ...], Mapping[str, str], str]:
        """(binds, environment, launcher) that put a wheel at /mnt, or leave the image its own."""
        prefixes = sorted((Path(self.environ["MPIGRAFT_HOME"]) / "mpi").glob(mpi.replace("@", "-")))
        if not prefixes:
            return (), {}, "mpiexec"
        env = {"LD_LIBRARY_PATH": "/mnt/lib", "OPAL_PREFIX": "/mnt", "I_MPI_ROOT": "/mnt",
               "FI_PROVIDER_PATH": "/mnt/lib"}  # fmt: skip
        family = mpi.partition("@")[0]
        del env["OPAL_PREFIX" if family != "openmpi" else "I_MPI_ROOT"]
        if family != "intel":
            del env["FI_PROVIDER_PATH"]
        return (Bind(prefixes[0].resolve(), "/mnt"),), env, "/mnt/bin/mpiexec"


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, images: Images, engines: Engines,
    outside: Mapping[str, str],
) -> Site:  # fmt: skip
    return Site(tmp_path_factory.mktemp("applications"), images, engines, outside)


# ------------------------------------------------------------------ LAMMPS

LAMMPS = (
    ("bookworm-apps", "bwrap", "openmpi@5.0.11", 2),
    ("bookworm-apps", "bwrap", "openmpi@4.1.8", 4),
    ("bookworm-apps", "bwrap", "openmpi@4.1.4", 2),
    ("bookworm-apps", "apptainer", "openmpi@5.0.11", 4),
    ("bookworm-apps", "apptainer", "openmpi@4.1.8", 2),
    ("trixie-apps", "bwrap", "openmpi@5.0.11", 2),
)


@pytest.mark.parametrize(
    ("image", "engine", "host", "n"),
    [pytest.param(*LAMMPS[0], marks=pytest.mark.covering), *LAMMPS[1:]],
)
def test_lammps_computes_what_it_computes_without_a_graft(
    image: str, engine: str, host: str, n: int, site: Site, need: Need
) -> None:
    need(engine)
    due = melted(site, image, host, n)
    assert physics(site.graft(image, engine, host, n, "lmp", "-in", "in.melt")) == due


@pytest.mark.parametrize(("image", "engine", "host", "n"), LAMMPS[:5])
def test_lammps_reads_standard_input(
    image: str, engine: str, host: str, n: int, site: Site, need: Need
) -> None:
    """As its manual has it: `lmp < in.melt`."""
    need(engine)
    due = melted(site, image, host, n)
    assert physics(site.graft(image, engine, host, n, "lmp", file="in.melt")) == due


def melted(site: Site, image: str, host: str, n: int) -> list[str]:
    """What LAMMPS prints without a graft, on as many ranks."""
    due = physics(site.alone(image, host, n, LMP, "-in", "in.melt"))
    assert any(line.split()[:1] == ["200"] for line in due), due
    assert f"  1 by {n // 2} by 2 MPI processor grid" in due
    return due


# ------------------------------------------------------------------ mpi4py

DEBIANS_3 = (DEBIANS_PYTHON, f"/opt/mpi4py-{DEBIANS['3.11']}/test")
DEBIANS_4 = (DEBIANS_PYTHON, f"/opt/mpi4py-{DEBIANS['3.13']}/test")
PYPIS = (VENVS_PYTHON, f"/opt/mpi4py-{WHEEL}/test")
MPI4PY = (
    ("bookworm-apps", "bwrap", "openmpi@5.0.11", DEBIANS_3),
    ("bookworm-apps", "bwrap", "openmpi@4.1.8", DEBIANS_3),
    ("bookworm-apps", "apptainer", "openmpi@4.1.4", DEBIANS_3),
    ("trixie-apps", "apptainer", "openmpi@5.0.11", DEBIANS_4),
    ("bookworm-apps", "bwrap", "openmpi@5.0.11", PYPIS),
    ("bookworm-apps-mpich", "bwrap", "mpich@5.0.2", PYPIS),
    ("bookworm-apps-mpich", "apptainer", "intel@2021.18.1", PYPIS),
    # The wheel chooses by the libmpi that it meets: the image's own MPI is of another family.
    ("bookworm-apps", "bwrap", "mpich@5.0.2", PYPIS),
)


def outcome(text: str) -> list[dict[str, Any]]:
    """What each rank reports of its tests: the last line."""
    ranks: list[dict[str, Any]] = json.loads(text.splitlines()[-1])
    return ranks


@pytest.mark.parametrize(("image", "engine", "host", "program"), MPI4PY)
def test_mpi4pys_own_tests_end_as_without_a_graft(
    image: str, engine: str, host: str, program: tuple[str, str], site: Site, need: Need
) -> None:
    need(engine)
    python, tests = program
    command = (python, site.suite, tests, *PATTERNS)
    due = outcome(site.alone(image, host, 2, *command))
    assert len(due) == 2
    assert min(rank["ran"] for rank in due) > 500
    assert outcome(site.graft(image, engine, host, 2, *command)) == due
