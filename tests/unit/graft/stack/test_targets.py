"""The tree of a stack's version that a node takes, as EESSI's archdetect chooses it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpigraft.core.errors import UsageError
from mpigraft.graft import is_stack
from mpigraft.graft.stack.reading import read_stack
from mpigraft.graft.stack.targets import OVERRIDE, cpu_target, targets_of
from mpigraft.knowledge import cpu_targets
from tests.builders.stacks import StackFiles

AVX512 = "avx2 fma avx512f avx512bw avx512cd avx512dq avx512vl"


@pytest.mark.parametrize(
    ("machine", "cpuinfo", "best"),
    [
        ("x86_64", "vendor_id\t: AuthenticAMD\nflags\t\t: fpu avx2 fma", "x86_64/amd/zen2"),
        ("x86_64", "vendor_id\t: AuthenticAMD\nflags\t\t: avx2 fma vaes", "x86_64/amd/zen3"),
        ("x86_64", f"vendor_id\t: GenuineIntel\nflags\t: {AVX512}", "x86_64/intel/skylake_avx512"),
        (
            "x86_64",
            f"vendor_id : GenuineIntel\nmodel : 143\nflags : {AVX512} avx512_bf16 amx_tile",
            "x86_64/intel/sapphirerapids",
        ),
        (
            "x86_64",
            f"vendor_id : GenuineIntel\nmodel : 173\nflags : {AVX512} avx512_bf16 amx_tile",
            "x86_64/intel/graniterapids",
        ),
        ("x86_64", "vendor_id\t: GenuineIntel\nflags\t\t: fpu sse2", "x86_64/generic"),
        ("aarch64", "CPU implementer : 0x41\nFeatures : fp asimddp", "aarch64/neoverse_n1"),
        ("aarch64", "CPU implementer : 0x99\nFeatures : asimddp svei8mm", "aarch64/neoverse_v1"),
        ("aarch64", "", "aarch64/generic"),
    ],
)
def test_the_best_target_is_archdetects(machine: str, cpuinfo: str, best: str) -> None:
    assert cpu_targets(machine, cpuinfo)[0] == best
    assert cpu_targets(machine, cpuinfo)[-1] == f"{machine}/generic"


def test_of_a_version_only_the_tree_of_this_node_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One MPI would else fill the overrides of every CPU."""
    top = tmp_path / "versions/2023.06/software/linux"
    for name in ("x86_64/amd/zen4", "x86_64/generic"):
        tree = StackFiles(top / name, [tmp_path / f"host_injections/{name}/lib"])
        tree.program("One/1")
        tree.program("Two/1")
    assert targets_of(tmp_path / "versions/2023.06") == ["x86_64/amd/zen4", "x86_64/generic"]
    monkeypatch.setenv(OVERRIDE, "x86_64/amd/zen4")
    above = (tmp_path, tmp_path / "versions", tmp_path / "versions/2023.06")
    for folder in (*above, top.parent, top, top / "x86_64", top / "x86_64/amd"):
        assert is_stack(folder)
        stack = read_stack(folder)
        assert stack.root == str(top / "x86_64/amd/zen4")
        assert len(stack.slots) == 1
    assert read_stack(top / "x86_64/generic").root == str(top / "x86_64/generic")
    assert not is_stack(top / "x86_64/intel")
    monkeypatch.setenv(OVERRIDE, "x86_64/none")
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    for folder in (tmp_path, top / "x86_64/amd"):
        with pytest.raises(UsageError, match="no software for this node"):
            cpu_target(folder)


def test_several_versions_are_named(tmp_path: Path) -> None:
    for version in ("2023.06", "2025.06"):
        (tmp_path / f"versions/{version}/software").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"2023.06, 2025.06"):
        read_stack(tmp_path)
