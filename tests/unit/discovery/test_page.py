"""What discover shows: a document that keeps to its schema, a page that fits."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from rich.console import Console

from mpigraft.core.model import Machine
from mpigraft.core.serialize import document
from mpigraft.discovery import inventory
from mpigraft.discovery.sources.candidate import Host
from mpigraft.report import machine_document, machine_lines, machine_screen, print_screen
from tests.builders.configuration import a_machine, an_mpi
from tests.builders.machine_trees import plant
from tests.builders.messages import shows

pytestmark = pytest.mark.usefixtures("home")

PLAIN_PATH = "/nowhere"  # not /usr/bin: Debian's own MPIs may be there


def valid(text: str) -> dict[str, Any]:
    """The document, checked against its JSON Schema and for keys that the schema lacks."""
    schema = json.loads(files("mpigraft").joinpath("report/schemas/discover.json").read_text())
    found_document: dict[str, Any] = json.loads(text)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(found_document, schema)
    assert set(found_document) <= set(schema["properties"])
    rows = schema["$defs"]["MpiKeys"]["properties"]
    for mpi in found_document["mpis"]:
        assert set(mpi) <= set(rows)
    return found_document


@pytest.mark.parametrize("tree", ["slingshot-amd", "grace-hopper", "infiniband", "software"])
def test_every_machine_is_a_valid_document(tmp_path: Path, tree: str) -> None:
    host = plant(tree, tmp_path)
    machine = inventory.discover_machine(Host({"PATH": PLAIN_PATH, **host.environ}, host.root))
    told = valid(document(**machine_document(machine)))
    assert {m["reason"] != "" for m in told["mpis"]} <= {True}  # none of their libraries is one
    # Paths are never broken: one alone beside its label is as long as the temporary folder's name.
    assert all(len(line) <= 80 for line in machine_lines(machine, 80) if len(line.split()) > 2)


@pytest.mark.mpi
def test_fetched_mpis_are_described_in_full(fresh_home: Path) -> None:
    machine = inventory.discover_machine(Host({"PATH": PLAIN_PATH}))
    # Debian's are in the document that `discover --abi` prints, and take as long again.
    machine = replace(machine, mpis=tuple(m for m in machine.mpis if m.source == "wheel"))
    shown = valid(document(**machine_document(machine, abi=True)))
    by_family = {m["family"]: m for m in shown["mpis"]}
    openmpi, mpich, intel = (by_family[f] for f in ("openmpi", "mpich", "intel"))
    assert all(m["usable"] for m in by_family.values())
    assert (openmpi["launcher_kind"], openmpi["abi"], openmpi["soname"]) == (
        "prrte",
        "ompi",
        "libmpi.so.40",
    )
    assert {"ob1", "cm", "ucx"} <= set(openmpi["components"]["pml"])
    assert openmpi["libfabric"]["version"] == "2.5.1"
    assert {"lnx", "tcp", "shm"} <= set(openmpi["libfabric"]["offers"])
    assert {"self", "tcp"} <= set(openmpi["ucx"]["offers"])
    assert mpich["device"] == "ch4:ucx,ofi"
    own = Path(intel["prefix"]).resolve()
    assert Path(intel["libfabric"]["path"]).is_relative_to(own)
    assert {"tcp", "shm"} <= set(intel["libfabric"]["offers"])
    assert {t["name"] for t in intel["transports"] if t["usable"]} >= {"shm", "ofi-tcp"}
    for mpi in by_family.values():
        libmpi, *others = mpi["abi_facts"]["objects"]
        assert "MPI_Init" in {name.partition("@")[0] for name in libmpi["exported"]}
        assert {"net", "libc"} <= {library["role"] for library in others}


def screen(machine: Machine, columns: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(columns))
    stream = io.StringIO()
    print_screen(machine_screen(machine), Console(file=stream, width=columns))
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("columns", [60, 80])
def test_a_screen_has_a_line_for_each_mpi(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = an_mpi("mpich@4", usable=False, reason="its libfabric is gone")
    module = an_mpi("cray-mpich@8.1.29", found=("module " + "long/" * 20 + ": /etc/m",))
    lines = screen(a_machine(broken, an_mpi(), module), columns, monkeypatch)
    assert max(map(len, lines)) <= columns
    text = "\n".join(lines)
    assert shows(lines[0], "2 MPIs", "1 cannot")
    assert [text.count(f"\n{mpi.id} ") for mpi in (broken, an_mpi(), module)] == [1, 1, 1]
    assert text.index("mpich@4 ") > text.index(module.id)  # what works is first
    assert shows(text, "mpich@4", "libfabric is gone")
    assert (" launcher " in text) == (columns == 80)
    assert len(lines) <= 13


def test_the_screen_of_a_machine_without_an_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = screen(a_machine(), 80, monkeypatch)
    assert shows(lines[0], "No MPI")
    assert shows(lines[-1], "mpigraft get openmpi")


def test_a_machine_without_an_mpi_says_how_to_get_one(tmp_path: Path) -> None:
    page = "\n".join(
        machine_lines(inventory.discover_machine(Host({"PATH": PLAIN_PATH}, tmp_path)), 80)
    )
    assert shows(page, "mpigraft get openmpi")


@pytest.mark.mpi
def test_the_page_reads_well_at_80_columns(fresh_home: Path) -> None:
    machine = inventory.discover_machine(Host({"PATH": PLAIN_PATH}))
    page = list(machine_lines(machine, 80))
    too_long = [line for line in page if len(line) > 80 and len(line.split()) > 2]
    assert not too_long
    assert "openmpi@5.0.11" in page
    broken = replace(machine.mpis[0], usable=False, reason="its libfabric is gone")
    text = "\n".join(machine_lines(replace(machine, mpis=(broken,)), 80))
    assert "UNUSABLE" in text
    assert shows(text, "libfabric is gone")
