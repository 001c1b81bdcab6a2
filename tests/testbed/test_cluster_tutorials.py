"""The tutorials that need a cluster or a software stack, typed on those of the test bed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from testbed.slurm import Slurm
from testbed.stacks import Stack
from tests.builders.code_blocks import ROOT, blocks, commands_for, shortened, typed
from tests.testbed.test_jobs import Site

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root, pytest.mark.long]

CAMPAIGN, STACK = "docs/tutorials/first-campaign.md", "docs/tutorials/software-stack.md"
Done = subprocess.CompletedProcess[str]


def answered(done: Done, *words: str, code: int = 0) -> None:
    assert done.returncode == code, done.stdout + done.stderr
    for word in words:
        assert word in done.stdout + done.stderr


def test_a_site_s_first_campaign(slurm: Slurm, fresh_home: Path, store_folder: Path) -> None:
    """Three jobs on two nodes, one round each, of what this machine has in place of Cray's."""
    site = Site(slurm, fresh_home, store_folder)
    folder = slurm.cluster.shared
    (file,) = [b.text[7:-3] for b in blocks(ROOT / CAMPAIGN) if b.text.startswith("```toml")]
    own = file.replace("cray-mpich", "mpich@5").replace("rounds = 12", "rounds = 3")
    assert own.count("mpich@5") == own.count("rounds = 3") == 1
    # Nodes of the bed have a CPU each, and PRRTE would bind to the first node's on both.
    quick = 'transport = ["ofi-tcp"]\nbind_to = "none"\nmax = 8\nms_per_size = 1\n'
    (folder / "first.toml").write_text(own + quick)
    env = {**site.environ, "MPIGRAFT_STORE": str(store_folder)}

    def type_line(line: str) -> Done:
        return typed(line.replace("standard", "all"), cwd=folder, env=env, timeout=240)

    lines = iter(commands_for(__file__, CAMPAIGN))
    doctor, discovered = type_line(next(lines)), type_line(next(lines))
    assert doctor.returncode in (0, 1)
    answered(discovered, "openmpi@5", "mpich@5")
    answered(type_line(next(lines)), "9 launches")
    answered(type_line(next(lines)), "#SBATCH", "node-hours")
    answered(type_line(next(lines)))
    answered(type_line(next(lines)), "first")
    site.ended()
    assert len(site.store.allocations(site.store.submissions()[-1].campaign)) == 3, site.logs()
    answered(type_line(next(lines)), "curve")
    answered(type_line(next(lines)), "Proven to run as requested: 2 of 2")
    answered(type_line(next(lines)))
    answered(type_line(next(lines)))
    assert next(lines, None) is None
    assert (folder / "first.html").read_text().startswith("<!doctype html>")
    assert (folder / "first.tar.gz").stat().st_size


def test_a_software_stack(
    stack: Stack, fresh_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bed's stack, whose solver of heat takes the place of GROMACS."""
    monkeypatch.setenv("MPIGRAFT_STORE", str(tmp_path / "results"))

    def type_line(line: str) -> Done:
        own = line.replace("STACK", f"{stack.root}/versions/2023.06")
        own = own.replace("gmx_mpi mdrun -s water.tpr", f"{stack.heat} 64 20")
        return typed(shortened(own), cwd=tmp_path, timeout=240)

    lines = iter(commands_for(__file__, STACK))
    answered(type_line(next(lines)), "openmpi@5")
    answered(type_line(next(lines)), "nothing injected", "openmpi@5.0.11")
    answered(type_line(next(lines)), "fits: yes; 4 programs would load openmpi@5.0.11")
    before = ("native", "own (the MPI of 2023.06-generic)")
    answered(type_line(f"{next(lines)} --transport ob1-sm"), *before)
    answered(type_line(next(lines)), "generation 1")
    answered(type_line(next(lines)), "generation 1 is on: openmpi@5.0.11")
    answered(type_line(next(lines)), "generations/1/lib/libmpi.so.40")
    answered(type_line(next(lines)), "library Open MPI v5.0.11")
    answered(type_line(next(lines)), "injected (", *before)
    answered(type_line(next(lines)), "1 configuration only in after")
    answered(type_line(next(lines)), "the stack's own MPI")
    answered(type_line(next(lines)), "nothing injected")
    assert next(lines, None) is None
