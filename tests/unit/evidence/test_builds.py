"""Another build of the MPI on a node: known by contents, named with the node."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpigraft.core.hostlist import fold_hosts
from mpigraft.core.model import Finding, Layout, MappedLibrary, RankRecord
from mpigraft.evidence.world import mapped
from mpigraft.evidence.world.witness import check_witness
from tests.builders.elf import compiled
from tests.builders.messages import matches, shows
from tests.builders.plans import label, plan
from tests.builders.probes import LAYOUT, LOGS, install, records
from tests.unit.evidence.test_witness import ASKED, RIGHT, codes, identity, mapping


def on_nodes(*libraries: MappedLibrary, boots: Sequence[str]) -> tuple[RankRecord, ...]:
    """A rank on each node, whose kernels have these boot ids."""
    ranks = records(len(boots), hosts=len(boots))
    return tuple(
        replace(rank, libraries=(library,), boot=boot)
        for rank, library, boot in zip(ranks, libraries, boots, strict=True)
    )


HERE = os.uname().nodename
OWN, OTHER = mapped.file_contents(str(LOGS / "README.md"))[0], "ab12/99"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"device": 99}, []),  # one file server
        ({"device": 99, "inode": 99}, []),  # installed on both
        ({"inode": 99, "path": "/net/libmpi.so.40"}, []),  # a copy elsewhere
        ({"content": OTHER}, ["node-build"]),  # changed in place: the disks were alike
        ({"content": OTHER, "device": 99, "inode": 99}, ["node-build"]),
        ({"content": ""}, ["node-build"]),  # what is not known is no pass
        ({"content": OTHER, "path": "/net/libmpi.so.40"}, ["libmpi-several"]),
    ],
)
def test_libmpi_is_known_by_its_content_on_other_nodes(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], expected: list[str]
) -> None:
    monkeypatch.setattr(mapped, "boot_id", lambda: "h")
    right, three = replace(RIGHT, content=OWN), Layout(3, 1)
    there = replace(right, **changes)
    assert codes(on_nodes(right, there, there, boots="hxy"), three) == expected
    assert codes(on_nodes(there, there, right, boots="xyh"), three) == expected
    assert codes(on_nodes(right, right, there, boots="hxy"), three) == expected
    if not expected:
        assert codes(on_nodes(right, right, there, boots="hhh"), three) == expected


def test_the_nodes_with_another_build_are_named() -> None:
    one = replace(RIGHT, content="ab12/3,716,386".replace(",", ""))
    two = replace(one, content="sha256:" + "cd" * 32)
    (found,) = check_witness(ASKED, Layout(3, 1), on_nodes(one, two, one, boots="xyz"))
    assert matches(found, "node-build", nodes="n1", others="n0,n2", libraries=one.path)
    assert shows(found.message, "SHA-256 cdcdcdcdcdcd", "not build id ab12", "3,716,386 bytes")
    fabric = replace(one, path="/opt/mpi/lib/libfabric.so.1")
    ranks = on_nodes(one, one, boots="xy")
    several = [(one, fabric), (one, replace(fabric, content="ab12/1"))]
    ranks = tuple(replace(r, libraries=own) for r, own in zip(ranks, several, strict=True))
    assert matches(check_witness(ASKED, Layout(2, 1), ranks)[0], "node-build", nodes="n1")


def hosts_of(found: Finding) -> tuple[str, str]:
    """Those with another build, and those that they are compared with: these and no others."""
    first, second = re.findall(r" on ([^ :]+)", found.message.partition(": ")[0])
    return first, second


def test_ranks_on_other_nodes_alone_are_compared_with_this_ones_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped, "boot_id", lambda: "h")
    library = tmp_path / "libmpi.so.40"
    library.write_text("a build")
    (tmp_path / "link.so").symlink_to(library)
    asked = replace(ASKED, mpi=install("openmpi@5.0.11", libmpi=tmp_path / "link.so"))
    due = identity(library, str(library))

    def found(one: MappedLibrary) -> Sequence[Finding]:
        return check_witness(asked, Layout(2, 1), on_nodes(one, one, boots="xy"))

    assert not found(replace(due, content=mapped.file_contents(str(library))[0]))
    (named,) = found(replace(due, content=OTHER))
    assert (named.code, hosts_of(named)) == ("node-build", ("n0,n1", HERE))
    (other,) = found(replace(due, content=OTHER, path="/opt/libmpi.so.40"))
    assert other.code == "libmpi-other"
    (unknown,) = found(replace(due, content=""))
    assert shows(unknown.message, "not known", "not SHA-256")

    own = replace(due, content=mapped.file_contents(str(library))[0])
    two = on_nodes(own, replace(due, content=OTHER), boots="xy")
    (one,) = check_witness(asked, Layout(2, 1), two)
    assert hosts_of(one) == ("n1", fold_hosts(["n0", HERE]))
    two = (replace(two[1], host=HERE, rank=0), replace(two[0], rank=1))  # replaced since
    (one,) = check_witness(asked, Layout(2, 1), two)
    assert hosts_of(one) == ("n0", HERE)


def test_nodes_under_one_kernel_may_have_files_of_their_own() -> None:
    """Of libmpi alone: nobody names a C library that each node has."""
    libc = MappedLibrary("/usr/lib/libc.so.6", 1, 1)
    ranks = on_nodes(RIGHT, RIGHT, boots=["", ""])
    each = [replace(r, libraries=(RIGHT, replace(libc, inode=r.rank))) for r in ranks]
    assert codes(tuple(each), Layout(2, 1)) == []
    other = on_nodes(RIGHT, replace(RIGHT, inode=99), boots=["", ""])
    assert codes(other, Layout(2, 1)) == ["node-build"]


def test_this_node_is_not_among_those_that_have_an_image_s_own_libmpi() -> None:
    own = replace(plan(label("/x"), "bwrap"), libmpi="/lib/libmpi.so.40", libmpi_copy="")
    one = MappedLibrary(own.libmpi, 7, 7, OWN)
    ranks = on_nodes(one, *[replace(one, content=OTHER)] * 2, boots="xyz")
    (named,) = check_witness(replace(ASKED, graft=own), Layout(3, 1), ranks)
    assert hosts_of(named) == ("n0", "n1,n2")


def test_a_copy_of_the_library_is_no_other_one(tmp_path: Path) -> None:
    """Of a rank under this kernel that knows no content, the file is read here."""
    library, copy = tmp_path / "libmpi.so.40", tmp_path / "copy/libmpi.so.40"
    copy.parent.mkdir()
    for path in (library, copy):
        path.write_text("a build")
    asked = replace(ASKED, mpi=install("openmpi@5.0.11", libmpi=library))
    assert check_witness(asked, LAYOUT, mapping(identity(copy, str(copy)))) == ()
    copy.write_text("a build.")
    changed = mapping(identity(copy, str(copy)))
    assert [f.code for f in check_witness(asked, LAYOUT, changed)] == ["libmpi-other"]


def test_the_file_that_a_rank_mapped_may_be_gone_from_its_path(tmp_path: Path) -> None:
    """It was replaced, or written anew, since the rank started."""
    library, copy = tmp_path / "libmpi.so.40", tmp_path / "copy/libmpi.so.40"
    copy.parent.mkdir()
    for path in (library, copy):
        path.write_text("a build")
    asked = replace(ASKED, mpi=install("openmpi@5.0.11", libmpi=library))
    here = identity(copy, str(copy))
    for other in (replace(here, inode=here.inode + 9), replace(here, content=OTHER)):
        codes_of = [f.code for f in check_witness(asked, LAYOUT, mapping(other))]
        assert codes_of == ["libmpi-other"]


def test_ranks_may_map_copies_of_one_build_but_each_only_one(tmp_path: Path) -> None:
    library, copy = tmp_path / "libmpi.so.40", tmp_path / "copy/libmpi.so.40"
    copy.parent.mkdir()
    for path in (library, copy):
        path.write_text("a build")
    asked = replace(ASKED, mpi=install("openmpi@5.0.11", libmpi=library))
    one, other = (identity(path, str(path)) for path in (library, copy))
    first, second = mapping(one)
    assert check_witness(asked, LAYOUT, (first, replace(second, libraries=(other,)))) == ()
    both = (first, replace(second, libraries=(one, other)))
    assert [f.code for f in check_witness(asked, LAYOUT, both)] == ["libmpi-several"]


@pytest.mark.parametrize("build_id", ["none", "0xab12"])
def test_a_build_without_an_id_is_known_by_its_digest_alone(tmp_path: Path, build_id: str) -> None:
    path = compiled(tmp_path / "libmpi.so.40", flags=[f"-Wl,--build-id={build_id}"])
    digest = f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
    by_id = () if build_id == "none" else (f"ab12/{path.stat().st_size}",)
    assert mapped.file_contents(str(path)) == (*by_id, digest)
