"""Any search path: which of its folders are overrides, and what one symlink switches."""

from __future__ import annotations

from os.path import normpath
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.model import Family
from mpigraft.graft.stack.override.content import plan_override
from mpigraft.graft.stack.overrides import find_slots, leading_folders, slots_of
from mpigraft.graft.stack.places import OF_SYSTEM, below, slot_path
from mpigraft.graft.stack.values import Slot
from tests.builders.elf import compiled
from tests.builders.guests import an_abi, library

INSIDE = ("/stack/software", "/stack/compat")
NAMES = st.sampled_from(["a", "b", "lib", "lib64", "system", "accel", "site", "b c", "é", "."])
OUTSIDE = st.lists(NAMES, min_size=1, max_size=4).map(lambda names: "/site/" + "/".join(names))
OWN = st.sampled_from([
    "$ORIGIN/../lib", "${ORIGIN}", "", "lib", "/stack/software/zlib/1/lib", "/stack/compat/lib",
    "/stack/software", "/site/$LIB",
])  # fmt: skip
SYSTEM = st.sampled_from(["/usr/lib", "/lib64", "/usr/local/lib", "/usr/lib64/"])
ENTRY = st.one_of(OUTSIDE, OWN, SYSTEM)
PATHS = st.lists(st.lists(ENTRY, max_size=8).map(":".join), min_size=2, max_size=6)


@given(st.lists(OUTSIDE, max_size=5), st.lists(ENTRY, max_size=5))
def test_overrides_are_what_comes_before_the_stacks_own(first: list[str], rest: list[str]) -> None:
    path = ":".join([*first, "$ORIGIN/../lib", *rest])
    assert leading_folders(path, INSIDE) == tuple(first)


@given(st.lists(ENTRY, max_size=8))
def test_nothing_of_the_stack_and_of_the_system_is_an_override(entries: list[str]) -> None:
    for folder in leading_folders(":".join(entries), INSIDE):
        assert folder in entries
        assert folder.startswith("/")
        assert not below(normpath(folder), INSIDE)
        assert slot_path(normpath(folder)) not in OF_SYSTEM


@given(PATHS)
def test_an_override_has_the_folders_that_programs_search(paths: list[str]) -> None:
    searchers = [
        (leading_folders(path, INSIDE), f"module{number}", ("libmpi.so.40",))
        for number, path in enumerate(paths)
    ]
    slots = find_slots(searchers)
    assert len({slot.path for slot in slots}) == len(slots)
    for slot in slots:
        users = [one for one in searchers if slot.path in slots_of(one[0], slots)]
        assert slot.programs == slot.modules == len(users) >= 2
        assert slot.family is Family.OPENMPI
        assert set(slot.folders) <= {folder for leading, _, _ in users for folder in leading}
        for folder, name in zip(slot.folders, slot.names, strict=True):
            assert normpath(f"{slot.path}/{name}") == normpath(folder)
            assert name in ("", "lib", "lib64")


@given(st.lists(OUTSIDE, min_size=1, max_size=4, unique_by=lambda f: slot_path(normpath(f))))
def test_overrides_that_all_search_come_in_their_order(folders: list[str]) -> None:
    searchers = [(tuple(folders), "one/1", ("libmpi.so.12",))] * 2
    slots = find_slots(searchers)
    assert [slot.path for slot in slots] == [slot_path(normpath(f)) for f in folders]
    assert {slot.family for slot in slots} == {Family.MPICH}


@given(st.text(max_size=60))
def test_any_text_is_a_search_path(text: str) -> None:
    for folder in leading_folders(text, INSIDE):
        assert folder.startswith("/")
        assert ":" not in folder


def test_a_binding_takes_the_compiler_s_library_of_its_callers(tmp_path: Path) -> None:
    """Intel's libmpicxx needs libstdc++, of which its UCX has a private copy: its symbols had the
    names of that copy, and C++ programs ended with 127."""
    cxx = library("libmpicxx.so.12", needed=("libmpi.so.12", "libstdc++.so.6"),
                  imported=("_ZTVN10__cxxabiv1E@CXXABI_1.3", "pool"))  # fmt: skip
    net = library("libnet.so.1", needed=("libstdc++.so.6",), exported=("pool",))
    runtime = library("libstdc++.so.6", exported=("_ZTVN10__cxxabiv1E@@CXXABI_1.3",))
    needed = ("libnet.so.1", "libc.so.6")
    abi = an_abi("intel@2021.18.1", cxx, net, runtime, needed=needed)
    settings = compiled(tmp_path / "libsettings.so")
    slot = Slot("/site", ("/site/lib",), Family.MPICH)
    plan = plan_override(abi, slot, ["libmpi.so.12", "libmpicxx.so.12"], settings)
    copies = {Path(copy.name).name: copy for copy in plan.copies}
    assert dict(copies["libmpicxx.so.12"].symbols) == {"pool": "mpigraft-pool"}
    assert "libstdc++.so.6" not in dict(copies["libmpicxx.so.12"].renamed)
    private = copies["mpigraft-libnet.so.1"]
    assert dict(private.renamed) == {"libstdc++.so.6": "mpigraft-libstdc++.so.6"}
