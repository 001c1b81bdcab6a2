"""What outputs print above their tables: hosts, modules and iterations, and what of it changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mpigraft.bench.importing.printed import printed_facts
from mpigraft.cli import main

OLIVIA = Path(__file__).parents[2] / "data/olivia"
LMOD = """
Currently Loaded Modules:
  1) GCCcore/13.2.0                        3) OpenMPI/4.1.6-GCC-13.2.0 (L)
  2) OSU-Micro-Benchmarks/7.5-gompi-2023b

Inactive Modules:
  1) other/1.0
"""
HEAD = "hostname:\nx1000c4s4b1n0\nx1000c5s3b0n0\n"


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (HEAD, {"hosts": "x1000c4s4b1n0, x1000c5s3b0n0"}),
        ("SLURM_JOB_NODELIST=nid[001-002,007],gpu3\n", {"hosts": "nid[001-002,007], gpu3"}),
        ("Running on hosts: n1 n2\n", {"hosts": "n1, n2"}),
        ("== Nodes: 2\n", {}),
        (
            LMOD,
            {
                "module GCCcore": "13.2.0",
                "module OpenMPI": "4.1.6-GCC-13.2.0",
                "module OSU-Micro-Benchmarks": "7.5-gompi-2023b",
            },
        ),
        (
            "Currently Loaded Modulefiles:\n 1) PrgEnv-cray/8.5.0 \n",
            {"module PrgEnv-cray": "8.5.0"},
        ),
        ("+ module load EESSI/2025.06 gcc\n", {"module EESSI": "2025.06", "module gcc": "default"}),
        (
            "+ srun -n 2 /opt/osu/osu_bibw -i 10 -x 5 D D\n",
            {"iterations": "10", "iterations that warm up": "5"},
        ),
        ("$ IMB-MPI1 PingPong -iter 100\n", {"iterations": "100"}),
        ("+ srun -i 10 ./solver\n", {}),  # srun's own input, and no benchmark
        ("a program of ours said hosts and osu_latency -i 10 is quick\n", {}),
        ("# OSU MPI Latency Test v7.5\n# Size   Avg Latency(us)\n1    2.0\n", {}),
    ],
)
def test_what_is_printed_above_a_table(text: str, facts: dict[str, str]) -> None:
    assert dict(printed_facts(text.encode())) == facts


def run(store: Path, *words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(["--store", str(store), *words])
    assert not ended.value.code


def test_compare_says_what_changed_between_two_posts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """EESSI's two posts: figures as published, under heads as jobs print them."""
    heads = {
        "2025-eessi-2023.06-openmpi-4.1.6": f"{HEAD}{LMOD}+ srun osu_bibw -i 10 D D\n",
        "2026-eessi-2025.06-openmpi-5.0.3": "hostname:\nx1\nx2\n+ module load OpenMPI/5.0.3\n",
    }
    for name, head in heads.items():
        for what in ("latency", "bibw"):
            file = tmp_path / f"{name}.{what}.txt"
            file.write_text(head + (OLIVIA / file.name).read_text())
            run(tmp_path, "import", str(file), "--configuration", "eessi", "--campaign", name[:4],
                "--machine", "olivia", "--nodes", "2", "--ranks-per-node", "1")  # fmt: skip
    capsys.readouterr()
    run(tmp_path, "compare", "2025", "2026", "--json")
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["changes"]}

    due = {
        "hosts": ("x1000c4s4b1n0, x1000c5s3b0n0", "x1, x2"),
        "module OpenMPI": ("4.1.6-GCC-13.2.0", "5.0.3"),
        "module GCCcore": ("13.2.0", "not loaded"),
        "iterations": ("10", ""),  # nobody knows the other
    }
    assert {name: (rows[name]["old"], rows[name]["new"]) for name in due} == due
    assert rows["iterations"]["status"] == "not recorded"
