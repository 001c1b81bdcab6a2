"""Ranks map the libfabric and UCX of the plan, or of the MPI, or it is said."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpigraft.core.fingerprint import boot_id
from mpigraft.core.model import Configuration, Copy, Level, MappedLibrary, RankRecord
from mpigraft.evidence.world import networks
from mpigraft.evidence.world.networks import check_networks, due_networks, network_name
from mpigraft.evidence.world.witness import check_witness
from mpigraft.graft.folder import folders
from mpigraft.run.cached.world import StartedWorld
from tests.builders import witness
from tests.builders.messages import matches
from tests.builders.plans import label, plan
from tests.builders.probes import LAYOUT, configuration, records

HERE = os.uname().nodename


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/x/libfabric.so.1", "libfabric"),
        ("/x/libfabric.so.1.29.1 (deleted)", "libfabric"),
        ("/x/mpigraft-libucp.so.0", "libucp"),
        ("/x/libucs_signal.so.0", ""),
        ("/x/libfabric.so.1/readme", ""),
        ("/x/mylibfabric.so.1", ""),
        ("/x/libmpi.so.40", ""),
    ],
)
def test_network_libraries_by_their_names(path: str, name: str) -> None:
    assert network_name(path) == name


def a_graft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configuration:
    """libfabric and UCX of a graft."""
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path))
    names = ("lib/libfabric.so.1", "lib/libucp.so.0", "lib/libz.so.1", "lib/libucs.so.0")
    made = plan(label("/img"), "bwrap", copies=tuple(Copy("/h", name, "d") for name in names))
    one = replace(configuration("openmpi@5.0.11", "ob1-sm"), graft=made)
    for name in names[:3]:  # the last is gone
        file = folders.graft_folder(made) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    return one


def due(asked: Configuration, name: str = "libfabric") -> MappedLibrary:
    one = due_networks(asked)[name][0]
    return MappedLibrary(one.path, one.device, one.inode, one.contents[0])


def ranks_with(*libraries: MappedLibrary, host: str = HERE) -> tuple[RankRecord, ...]:
    return tuple(replace(rank, host=host, libraries=libraries) for rank in records(2))


def test_what_is_due_are_the_grafts_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = a_graft(tmp_path, monkeypatch)
    assert set(due_networks(asked)) == {"libfabric", "libucp"}
    assert asked.graft is not None
    assert due(asked).path == os.path.realpath(
        folders.graft_folder(asked.graft) / "lib/libfabric.so.1"
    )


def test_a_library_of_the_guest_in_the_place_of_the_grafts_is_an_error(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = a_graft(tmp_path, monkeypatch)
    own = MappedLibrary("/usr/lib/libfabric.so.1", 7, 8)
    (finding,) = check_networks(asked, ranks_with(own))
    assert (finding.level, finding.code) == (Level.ERROR, "network-library-other")
    assert matches(
        finding, "network-library-other", mapped=own.path, more="and so did 1 more", rank=0,
        requested=due(asked).path,
    )  # fmt: skip
    (alone,) = check_networks(asked, ranks_with(own)[1:])
    assert matches(alone, "network-library-other", mapped=own.path, rank=1)
    both = (own, MappedLibrary("/usr/lib/libucp.so.0", 7, 9))
    assert len(check_networks(asked, ranks_with(*both))) == 2


def test_the_right_one_and_none_are_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = a_graft(tmp_path, monkeypatch)
    right, own = due(asked), MappedLibrary("/opt/lib/libfabric.so.1", 7, 8)
    other = MappedLibrary("/usr/lib/libucs.so.0", 7, 8)  # nobody knows which was due
    for libraries in ((right,), (), (right, own), (own, right), (other,)):
        assert check_networks(asked, ranks_with(*libraries)) == []
    bound = replace(right, path="/usr/lib/x86_64-linux-gnu/libfabric.so.1")
    assert check_networks(asked, ranks_with(bound)) == []


@pytest.mark.parametrize(
    ("changes", "boot", "fine"),
    [
        ({"device": 1}, boot_id(), True),
        ({"inode": 1, "path": "/x/libfabric.so.1"}, "y", True),
        ({"content": "ab/1"}, "y", False),
        ({"content": ""}, "y", False),
        ({"content": ""}, boot_id(), True),
        ({"content": "ab/1", "inode": 1}, boot_id(), False),
    ],
)
@pytest.mark.parametrize("native", [False, True])
def test_libraries_of_other_nodes_are_known_by_their_content(
    changes: dict[str, Any],
    boot: str,
    native: bool,
    fine: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = a_graft(tmp_path, monkeypatch)
    if native:
        path = Path(due(asked).path)
        monkeypatch.setattr(networks, "mpi_libraries", lambda _: (path,))
        asked = replace(asked, graft=None)
    mapped = replace(due(asked), **changes)
    ranks = tuple(replace(rank, boot=boot) for rank in ranks_with(mapped))
    assert (check_networks(asked, ranks) == []) is fine


def test_of_a_guests_own_mpi_nothing_is_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = a_graft(tmp_path, monkeypatch)
    path = Path(due(asked).path)
    monkeypatch.setattr(networks, "mpi_libraries", lambda _: (path,))
    assert set(due_networks(replace(asked, graft=None))) == {"libfabric"}
    assert asked.mpi is not None
    own = replace(asked, graft=None, mpi=replace(asked.mpi, source="guest"))
    assert due_networks(own) == {}
    assert due_networks(replace(asked, graft=None, mpi=None)) == {}


def test_the_witness_says_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = a_graft(tmp_path, monkeypatch)
    own = MappedLibrary("/usr/lib/libfabric.so.1", 7, 8)
    found = check_witness(asked, LAYOUT, ranks_with(own))
    assert "network-library-other" in [f.code for f in found]


@pytest.mark.parametrize(
    ("nodes", "device", "inode", "content", "beside", "passes"),
    [
        (1, 5, 6, "", False, True), (1, 5, 7, "", False, False), (1, 4, 6, "", False, False),
        (1, 5, 7, "", True, True), (2, 4, 7, "ab/1", False, True), (2, 5, 6, "", False, False),
        (2, 5, 6, "ab/2", False, False),
    ],
)  # fmt: skip
def test_the_quick_look_leaves_another_one_to_the_full_judgement(
    nodes: int, device: int, inode: int, content: str, beside: bool, passes: bool, tmp_path: Path
) -> None:
    networks = {"libfabric": [[5, 6, *["ab/1"] * (nodes - 1)]]}
    document = witness.a_document(tmp_path, networks=networks, nodes=nodes)
    libraries = [["/x/libfabric.so.1", 0, inode], ["/x/libucp.so.0", 0, 1]]
    libraries += [["/y/libfabric.so.1", 0, 6]] if beside else []
    world = StartedWorld(document, str(tmp_path))
    contents = {"/x/libfabric.so.1": content}
    assert world._networks_right([device], libraries, contents) is passes
