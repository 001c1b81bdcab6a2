"""`mpigraft check STACK` on a stack with a loader, a glibc and an MPI of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mpigraft.cli.main import run_command
from testbed.stacks import Stack

pytestmark = [pytest.mark.testbed, pytest.mark.mpi]


def document(stack: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    run_command(["check", "--json", str(stack), *words])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_all_programs_would_load_the_hosts_mpi(
    stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    found = document(stack.software, capsys, "--mpi", "openmpi@5")
    assert found["ok"] is True
    assert found["stack"]["loader"]["root"] == str(stack.compat)
    (check,) = found["checks"]
    assert (check["fits"], check["refused"], check["kept"]) == (len(stack.programs), 0, 0)
    assert check["glibc"]
    programs = [p["path"] for module in check["modules"] for p in module["programs"]]
    assert sorted(programs) == sorted(map(str, stack.programs))


def test_another_family_is_refused(stack: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(stack.software, capsys, "--mpi", "mpich")
    assert found["ok"] is False
    (check,) = found["checks"]
    assert [f["code"] for f in check["findings"]] == ["stack-other-abi"]


def test_a_library_that_the_compatibility_layer_lacks_is_no_library_of_the_host(
    stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    """The host has libm; the stack's loader does not look there."""
    libm = stack.compat / "lib64/libm.so.6"
    away = libm.with_name("away")
    libm.rename(away)
    try:
        found = document(stack.software, capsys, "--mpi", "openmpi@5")
    finally:
        away.rename(libm)
    (check,) = found["checks"]
    codes = {f["code"] for module in check["modules"] for f in module["findings"]}
    assert codes & {"stack-library-missing", "stack-broken-before"}
