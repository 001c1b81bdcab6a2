"""A stack whose overrides are not the same on each node: noticed, with the node's name."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpigraft.core.errors import LaunchFailed, TransportMismatch
from mpigraft.core.model import (
    Configuration,
    Evidence,
    Finding,
    GuestKind,
    Layout,
    MappedLibrary,
    RankRecord,
)
from mpigraft.evidence.runner import refused_evidence
from mpigraft.evidence.world.failures import explain_failure
from mpigraft.evidence.world.overrides import due_mark
from mpigraft.evidence.world.records import Entered
from mpigraft.evidence.world.witness import check_witness
from mpigraft.graft.stack.override.content import settings_name
from mpigraft.run import foreground
from mpigraft.run.cached import start
from mpigraft.run.cached.world import StartedWorld
from tests.builders import witness
from tests.builders.messages import matches, shows
from tests.builders.plans import label, plan
from tests.builders.probes import configuration, records

HERE = os.uname().nodename
MARK = settings_name("ab" * 32)
NODES = Layout(3, 1)


def generation(site: Path) -> tuple[Configuration, Path]:
    """A job on generation 1 of a stack, as it is on this node, and its libmpi."""
    folder = site / ".mpigraft-system/generations/1"
    for name in (f"mpi/lib/{MARK}", "lib/libmpi.so.40"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    libmpi = folder / "lib/libmpi.so.40"
    stack = plan(label("/stack", GuestKind.STACK), "none", libmpi=str(libmpi), libmpi_copy="")
    return replace(configuration("openmpi@5.0.11", "ob1-tcp"), graft=stack), libmpi


def mapped(libmpi: Path | str, mark: str = MARK) -> tuple[MappedLibrary, ...]:
    own = [MappedLibrary(str(libmpi), 1, 2)]
    marks = [MappedLibrary(f"{Path(libmpi).parents[1]}/mpi/lib/{mark}", 1, 3)] if mark else []
    return (*own, *marks)


def world(*libraries: tuple[MappedLibrary, ...]) -> tuple[RankRecord, ...]:
    """A rank on this node, and one on each of the others."""
    names = [HERE, *(f"other{number}" for number in range(1, len(libraries)))]
    return tuple(
        replace(rank, host=host, libraries=own)
        for rank, host, own in zip(
            records(len(names), hosts=len(names)), names, libraries, strict=True
        )
    )


def test_each_node_with_the_same_generation_is_right(tmp_path: Path) -> None:
    asked, libmpi = generation(tmp_path)
    assert due_mark(asked) == MARK
    assert not check_witness(asked, NODES, world(*[mapped(libmpi)] * 3))


def test_nodes_without_the_injection_and_with_another_are_named(tmp_path: Path) -> None:
    asked, libmpi = generation(tmp_path)
    own = "/stack/OpenMPI/lib/libmpi.so.40"
    other = settings_name("cd" * 32)
    found = check_witness(asked, NODES, world(mapped(libmpi), mapped(own, ""), mapped(own, "")))
    assert [f.code for f in found] == ["override-differs"]
    assert matches(
        found[0], "override-differs", mapped=own, nodes="other1, other2", due=libmpi, here=HERE
    )
    for mark in (other, ""):
        found = check_witness(
            asked, NODES, world(mapped(libmpi), mapped(libmpi), mapped(libmpi, mark))
        )
        assert [f.code for f in found] == ["override-differs"]
        assert matches(found[0], "override-differs", mapped="another generation at", nodes="other2")


def test_what_this_node_maps_is_no_matter_of_nodes(tmp_path: Path) -> None:
    asked, libmpi = generation(tmp_path)
    alone = world(mapped("/x/libmpi.so.40", ""))
    assert [f.code for f in check_witness(asked, Layout(1, 1), alone)] == ["libmpi-other"]
    image = replace(asked, graft=plan(label("/x"), "bwrap", libmpi=str(libmpi), libmpi_copy=""))
    found = check_witness(image, NODES, world(*[mapped(libmpi, "")] * 3))
    assert (due_mark(image), found) == ("", ())


def test_what_a_site_put_there_by_hand_has_no_mark(tmp_path: Path) -> None:
    asked, libmpi = generation(tmp_path)
    (libmpi.parents[1] / "mpi/lib" / MARK).unlink()
    assert due_mark(asked) == ""
    assert not check_witness(asked, NODES, world(*[mapped(libmpi, "")] * 3))


def test_a_node_that_hangs_in_mpi_init_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, libmpi = generation(tmp_path)
    monkeypatch.setattr(
        "mpigraft.evidence.world.failures.read_entered",
        lambda _: [entered(HERE, libmpi), entered("n2", "/stack/libmpi.so.40")],
    )
    (found,) = explain_failure(asked, tmp_path, 0)
    assert (found.code, found.message[:3]) == ("override-differs", "n2:")
    monkeypatch.setattr(
        "mpigraft.evidence.world.failures.read_entered",
        lambda _: [entered(HERE, "/stack/libmpi.so.40")],
    )
    (found,) = explain_failure(asked, tmp_path, 0)
    assert found.code == "init-other-libmpi"


def entered(host: str, libmpi: Path | str) -> Entered:
    return Entered(host, 7, "/stack/bin/app", "", (MappedLibrary(str(libmpi), 1, 2),))


def test_a_probe_that_met_other_overrides_ends_with_5_and_their_fix() -> None:
    asked = configuration("openmpi@5.0.11", "ob1-tcp")
    differs = Finding.of(
        "override-differs", nodes="n2", mapped="/x", due="/y", here="n1", stack="/s"
    )
    config = Finding.of("config-files", files="/etc/openmpi-mca-params.conf")

    def error(*findings: Finding) -> Any:
        return refused_evidence(asked, Evidence("ob1-tcp", "", (), findings, (), ok=False))

    assert isinstance(error(differs, config), TransportMismatch)
    assert error(differs, config).fix == differs.fix
    assert isinstance(error(config), LaunchFailed)
    assert shows(error(config).fix, "/etc/openmpi-mca-params.conf")


# ------------------------------------------------------------------ the quick look


def document(tmp_path: Path, libmpi: Path) -> start.Document:
    due = [str(libmpi), 0, 0]
    return witness.a_document(tmp_path, ranks=2, nodes=2, libmpi=due, mark=MARK)


def ranks_of(home: Path, *libraries: tuple[MappedLibrary, ...]) -> None:
    for number, own in enumerate(libraries):
        rows = [(one.path, one.device, one.inode) for one in own]
        rank = witness.a_rank(rank=number, host=f"n{number}", libraries=rows)
        witness.written(home, rank, node=f"n{number}-1")


@pytest.mark.parametrize(
    ("second", "answer"),
    [("right", foreground.DONE), ("stack's own", foreground.END), ("other", foreground.END)],
)
def test_a_job_ends_as_soon_as_a_node_has_another_mpi(
    tmp_path: Path, second: str, answer: int
) -> None:
    _, libmpi = generation(tmp_path)
    started = document(tmp_path, libmpi)
    there = {
        "right": mapped(libmpi),
        "stack's own": mapped("/stack/libmpi.so.40", ""),
        "other": mapped(libmpi, settings_name("cd" * 32)),
    }[second]
    ranks_of(Path(started["home"]), mapped(libmpi), there)
    assert StartedWorld(started, started["home"]).look() == answer


def test_a_job_ends_where_a_node_entered_mpi_init_of_another(tmp_path: Path) -> None:
    _, libmpi = generation(tmp_path)
    started = document(tmp_path, libmpi)
    home = Path(started["home"])
    look = StartedWorld(started, str(home)).look
    (home / "n0-1.entered").write_bytes(note(libmpi))
    assert look() == foreground.GO_ON
    (home / "n1-1.entered").write_bytes(note(libmpi))
    assert look() == foreground.GO_ON
    (home / "n1-1.entered").write_bytes(note("/stack/libmpi.so.40"))
    assert StartedWorld(started, str(home)).look() == foreground.END
    device = {**started, "libmpi": [str(libmpi), 1, 2]}  # of files with numbers: not yet known
    assert StartedWorld(device, str(home)).look() == foreground.GO_ON


def note(libmpi: Path | str) -> bytes:
    return b'\n{"libraries":[["%s",1,2]]}\n' % str(libmpi).encode()
