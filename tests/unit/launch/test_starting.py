"""What can start an MPI here, with which PMI, and what two ranks that were started say of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.core.errors import UsageError
from mpigraft.core.model import (
    Finding,
    LaunchedBy,
    LauncherInfo,
    Layout,
    Level,
    Machine,
    MpiInstall,
    RankRecord,
    Scheduler,
)
from mpigraft.core.process.command import Completed
from mpigraft.evidence import wireup
from mpigraft.launch.launch_result import LaunchResult
from mpigraft.launch.launchers import select
from mpigraft.launch.launchers.registry import LAUNCHERS
from mpigraft.launch.launchers.select import launchers_for
from mpigraft.native.programs import Natives
from tests.builders.configuration import a_machine, an_mpi
from tests.builders.messages import matches, shows
from tests.builders.probes import configuration, records

OPENMPI5 = an_mpi("openmpi@5.0.11")
OPENMPI4 = an_mpi("openmpi@4.1.4", components=(("pmix", ("ext3x", "flux", "isolated")),))
INTEL = an_mpi("intel@2021.18.1")
CRAY = an_mpi("cray-mpich@8.1.29", launcher=None)
NATIVES = Natives(Path("/n/bench"), Path("/n/witness.so"), Path("/n/guard"), "digest")


def in_job(
    *offered: str, name: str = "srun", scheduler: str = "slurm", path: str = "", reason: str = ""
) -> Machine:
    """A machine in a job, with one launcher."""
    info = LauncherInfo(name, Path(path or f"/usr/bin/{name}"), "22.05.8", offered, reason)
    return replace(
        a_machine(), launchers=(info,), scheduler=Scheduler(scheduler, "22.05", True, "7")
    )


def mpich(folder: Path, words: bytes) -> MpiInstall:
    """An MPICH whose library is a real file with these words in it."""
    libmpi = folder / "libmpi.so.12"
    libmpi.write_bytes(Path("/bin/sh").read_bytes() + words)
    return an_mpi("mpich@5.0.2", libmpi=libmpi)


def started(mpi: MpiInstall, machine: Machine, name: str = "srun") -> LaunchedBy:
    (by,), left = launchers_for(mpi, machine, (name,))
    assert not left
    assert by is not None
    return by


def refused(mpi: MpiInstall, machine: Machine, name: str = "srun") -> str:
    found, left = launchers_for(mpi, machine, (name,))
    assert found == ()
    ((who, why),) = left
    assert who in (name, "own")
    return why


# ------------------------------------------------------------------ who can


def test_without_a_request_an_mpi_uses_its_own_launcher() -> None:
    assert launchers_for(OPENMPI5, in_job("pmix")) == ((None,), ())
    for name in ("own", "mpirun", "mpiexec"):
        assert launchers_for(OPENMPI5, in_job("pmix"), (name,)) == ((None,), ())
    assert launchers_for(OPENMPI5, in_job("pmix"), ("mpirun", "own")) == ((None,), ())


def test_an_mpi_without_a_launcher_takes_the_schedulers() -> None:
    (by,), left = launchers_for(CRAY, in_job("pmi2", "cray_shasta"))
    assert by == LaunchedBy("srun", Path("/usr/bin/srun"), "22.05.8", "cray_shasta")
    assert left == ()
    found, left = launchers_for(CRAY, a_machine())
    assert found == ()
    assert [name for name, _ in left] == ["srun", "flux", "pals", "aprun"]
    assert matches(refused(CRAY, in_job(), "mpirun"), "launcher-none", mpi="cray-mpich@8.1.29")


def test_several_are_an_axis() -> None:
    found, left = launchers_for(OPENMPI5, in_job("pmix"), ("mpirun", "srun", "flux"))
    assert found[0] is None
    assert found[1] is not None
    assert found[1].pmi == "pmix"
    ((name, why),) = left
    assert name == "flux"
    assert shows(why, "no flux in PATH")


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(UsageError, match="launcher 'jsrun' is unknown"):
        launchers_for(OPENMPI5, a_machine(), ("jsrun",))


def test_all_kinds_are_launchers() -> None:
    assert set(select.OTHERS) <= set(LAUNCHERS)
    assert set(select.SCHEDULERS) == set(select.OTHERS)


# ------------------------------------------------------------------ with which PMI


def test_open_mpi_5_speaks_pmix_and_nothing_else() -> None:
    assert started(OPENMPI5, in_job("none", "pmi2", "pmix")).pmi == "pmix"
    why = refused(OPENMPI5, in_job("none", "pmi2"))
    assert shows(why, "openmpi@5.0.11", "supports pmix", "srun offers", "pmi2", "0 of 1")
    assert shows(why, "own mpirun")


def test_open_mpi_4_speaks_what_it_was_built_with() -> None:
    assert started(OPENMPI4, in_job("pmi2", "pmix")).pmi == "pmix"
    assert shows(refused(OPENMPI4, in_job("pmi2")), "supports pmix", "simple", "srun", "pmi2")
    built = an_mpi("openmpi@4.1.4", components=(("pmix", ("s2", "isolated")),))
    assert started(built, in_job("pmi2", "pmix")).pmi == "pmi2"


def test_mpich_speaks_the_words_of_its_library(tmp_path: Path) -> None:
    both = mpich(tmp_path, b"\0cmd=initack\0cmd=fullinit\0")
    assert select.supported_pmi(both) == ("pmi2", "pmi1")
    assert started(both, in_job("pmix", "pmi2")).pmi == "pmi2"
    old = mpich(tmp_path, b"\0cmd=initack\0")  # Slurm's pmi2 answers PMI-1 too
    assert select.supported_pmi(old) == ("pmi1",)
    assert started(old, in_job("pmix", "pmi2")).pmi == "pmi2"
    assert shows(refused(old, in_job("pmix")), "0 of 1")
    assert select.supported_pmi(mpich(tmp_path, b"")) == ()
    assert shows(refused(mpich(tmp_path, b""), in_job("pmi2")), "no PMI that is known")


def test_intel_takes_what_there_is() -> None:
    assert started(INTEL, in_job("pmix", "pmi2")).pmi == "pmi2"
    assert started(INTEL, in_job("pmix")).pmi == "pmix"


def test_a_plugin_that_cannot_load_is_reported() -> None:
    machine = in_job("none", reason="pmix is listed, but cannot load: no libpmix.so")
    assert shows(refused(OPENMPI5, machine), "pmix", "cannot load", "libpmix.so")


def test_steps_need_a_job_of_that_scheduler() -> None:
    outside = replace(in_job("pmix"), scheduler=Scheduler("slurm", "22.05", False))
    for machine in (outside, replace(outside, scheduler=None), in_job("pmix", scheduler="pbs")):
        assert shows(refused(OPENMPI5, machine), "this is not one")


def test_flux_pals_and_aprun() -> None:
    flux = in_job(name="flux", scheduler="flux")
    assert started(OPENMPI5, flux, "flux").pmi == "pmix"
    assert started(CRAY, flux, "flux").pmi == "cray-pals"
    pals = in_job(name="mpiexec", scheduler="pbs", path="/opt/cray/pals/1.3/bin/mpiexec")
    assert started(OPENMPI5, pals, "pals").pmi == "pmix"
    assert started(CRAY, pals, "pals").pmi == ""
    hydra = in_job(name="mpiexec", scheduler="pbs", path="/opt/mpich/bin/mpiexec")
    assert shows(refused(OPENMPI5, hydra, "pals"), "no pals in PATH")
    alps = in_job(name="aprun", scheduler="pbs")
    assert started(CRAY, alps, "aprun").kind == "aprun"
    assert shows(refused(OPENMPI5, alps, "aprun"), "would not start")


# ------------------------------------------------------------------ what is believed

ASKED = configuration("openmpi@5.0.11", "ob1-sm")
ALONE = tuple(replace(rank, rank=0, size=1) for rank in records(2))


class Started:
    """A start that is counted, and what it gives."""

    def __init__(self, ranks: tuple[RankRecord, ...], code: int = 0, stderr: bytes = b"") -> None:
        self.ended = Completed((), code, b"", stderr, 0.1)
        self.ranks, self.times, self.layouts = ranks, 0, [Layout()]

    def __call__(
        self, _: object, layout: Layout, words: tuple[str, ...], limit_s: float, probe: bool
    ) -> LaunchResult:
        assert words[:2] == ("/n/mpigraft-probe", "--buffers")
        assert not probe
        assert limit_s > 0
        self.times += 1
        self.layouts.append(layout)
        return LaunchResult(self.ended, self.ranks)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "home"))


def test_one_world_of_two_is_believed_once() -> None:
    start = Started(records(2))
    assert wireup.verify_wireup(ASKED, NATIVES, start) == ()
    assert wireup.verify_wireup(ASKED, NATIVES, start) == ()
    assert start.times == 1
    by = LaunchedBy("srun", Path("/usr/bin/srun"), "22.05", "pmix")
    assert wireup.verify_wireup(replace(ASKED, launcher=by), NATIVES, start) == ()
    other = replace(ASKED, launcher=replace(by, pmi="pmi2"))
    assert wireup.verify_wireup(other, NATIVES, start) == ()
    assert start.times == 3


def test_of_nodes_that_may_change_nothing_is_believed_for_long() -> None:
    start = Started(records(2))
    assert wireup.verify_wireup(ASKED, NATIVES, start, keep=False) == ()
    assert wireup.verify_wireup(ASKED, NATIVES, start, keep=False) == ()
    assert wireup.verify_wireup(ASKED, NATIVES, start) == ()
    assert start.times == 3


def test_a_node_that_was_lost_is_reported_first() -> None:
    lost = Finding(Level.ERROR, "node-lost", "n2 answered")
    ended = Completed((), 1, b"", b"connection closed", 0.1)
    found = wireup.verify_wireup(ASKED, NATIVES, lambda *_: LaunchResult(ended, (), nodes=(lost,)))
    assert found[0].code == "node-lost"
    assert "launcher-fails" in [f.code for f in found]


@pytest.mark.parametrize("name", wireup.JOBS)
def test_what_is_believed_of_a_job_is_not_of_the_next(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = Started(records(2))
    for job in ("1", "2", "1"):
        monkeypatch.setenv(name, job)
        assert wireup.verify_wireup(ASKED, NATIVES, start) == ()
    assert start.times == 2


def test_worlds_of_one_are_found_every_time() -> None:
    start = Started(ALONE)
    for times in (1, 2):
        (finding,) = wireup.verify_wireup(ASKED, NATIVES, start)
        assert finding.code == "LCH-01"
        assert start.times == times


def test_two_nodes_are_another_question() -> None:
    start = Started(records(2, hosts=2))
    assert [f.code for f in wireup.verify_wireup(ASKED, NATIVES, start)] == ["hosts"]
    assert wireup.verify_wireup(ASKED, NATIVES, start, Layout(2, 1)) == ()
    assert start.layouts[-1] == Layout(2, 1)


def test_ranks_that_do_not_start_say_why() -> None:
    said = b"noise\nruntime uses unsupported PMI version PMIx\nsrun: error: n1: exited\n"
    by = LaunchedBy("srun", Path("/usr/bin/srun"), "22.05", "pmix")
    asked = replace(ASKED, launcher=by)
    (finding,) = wireup.verify_wireup(asked, NATIVES, Started((), 16, said))
    assert finding.code == "launcher-fails"
    assert shows(finding.message, "under srun", "exit code 16")
    assert "mpirun" in finding.fix
    (finding,) = wireup.verify_wireup(asked, NATIVES, Started((), 1, b"srun: error: gone\n"))
    assert matches(finding, "launcher-fails", output="srun: error: gone")
    (finding,) = wireup.verify_wireup(asked, NATIVES, Started((), 0))
    assert finding.code == "no-witness"


@pytest.mark.parametrize(
    ("offered", "due"),
    [
        (("pmix", "pmix_v4"), "pmix"),
        (("pmix", "pmix_v4", "pmix_v5"), "pmix_v4"),
        (("pmix", "pmix_v5"), ""),
        (("pmix", "pmix_v5", "pmi2"), ""),
    ],
)
def test_open_mpi_4_does_not_meet_pmix_5(offered: tuple[str, ...], due: str) -> None:
    four = an_mpi("openmpi@4.1.8")
    if due:
        assert started(four, in_job(*offered)).pmi == due
    else:
        assert shows(refused(four, in_job(*offered)), "--mpi=pmix_v4 or pmix_v3 would do")
    assert started(OPENMPI5, in_job(*offered)).pmi == "pmix"
