"""The whole chain, built by EasyBuild from Debian 13's sources: minutes the first time, then kept.

libconfig 1.7.3, libuv 1.50.0, fuse 2.9.9, libfabric 2.1.0 and Open MPI 5.0.7 are the versions of
the study of LUMI and Helios.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mpigraft.core.process import Completed
from testbed.easybuild import CHAIN, EasyBuilder

pytestmark = [pytest.mark.testbed, pytest.mark.long]

MODULE = f"OpenMPI/{CHAIN['openmpi']}-gnu"
PROVEN = ("ob1-sm", "ofi-tcp", "ofi-lnx")


def test_each_transport_is_proven(chain: tuple[Path, Completed]) -> None:
    prefix, done = chain
    assert done.ok, done.text()
    assert f"built: {prefix}/software/{MODULE}" in done.text()
    for name in PROVEN:
        assert re.search(rf"^  {name} +proven ", done.text(), re.MULTILINE), done.text()
    assert re.search(r"^  ofi-cxi +not possible here +\S", done.text(), re.MULTILINE)


def test_discover_lists_it_with_all_that_it_was_built_of(
    chain: tuple[Path, Completed], easybuilder: EasyBuilder
) -> None:
    prefix, _ = chain
    environment = {"MODULEPATH": f"{prefix}/modules/all"}
    done = easybuilder.run("mpigraft", "discover", "--json", env=environment)
    rows = json.loads(done.stdout)["mpis"]
    (mpi,) = [row for row in rows if row["prefix"].startswith(str(prefix))]
    assert (mpi["id"], mpi["usable"]) == ("openmpi@5.0.7", True)
    assert mpi["libfabric"]["version"] == "2.1.0"
    facts = mpi["provenance"]
    assert "EasyBuild 5" in facts["built"]
    assert facts["compiler"].startswith("gcc")
    assert "SHA-256 1a66369772d5bb15" in facts["source of libfabric/2.1.0-gnu"]


@pytest.mark.parametrize("tool", ["lmod", "tcl"])
def test_a_transports_module_forces_it(
    tool: str, chain: tuple[Path, Completed], easybuilder: EasyBuilder
) -> None:
    """As the module of LUMI's recipe does, with either tool."""
    prefix, _ = chain
    module = f"OpenMPI-ofi-lnx/{CHAIN['openmpi']}-gnu"
    printed = easybuilder.module(
        prefix, module, "env; command -v mpirun", tool, "transports"
    ).splitlines()
    assert f"{prefix}/software/{MODULE}/bin/mpirun" == printed[-1]
    assert "OMPI_MCA_pml=cm" in printed
    assert any(line.startswith("FI_LNX_PROV_LINKS=shm+tcp") for line in printed)
