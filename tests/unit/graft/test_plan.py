"""A plan: its key goes by contents, its environment drops what leads elsewhere, its stamps see."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.binary.elf import reader
from mpigraft.core.model import Bind, BindKind, EnvRow, GraftPlan, Replace, Scope
from mpigraft.core.serialize import digest, document, revive
from mpigraft.graft.injection.contents import decide_contents, keep_mpi
from mpigraft.graft.injection.fixpoint import GraftRequest
from mpigraft.graft.injection.plan import (
    BENCH,
    DROPPED,
    GPU_SELECT,
    PROBE,
    RELAY,
    TRACE,
    WITNESS,
    PlanInput,
    changed_paths,
    path_stamps,
    plan_folder,
)
from mpigraft.native.programs import Natives
from tests.builders.guests import APP, OPENMPI, PLACE, library
from tests.builders.plans import a_plan, an_abi_of, an_injection, natives_of, on_disk
from tests.builders.worlds import a_world, needing


def environment(made: GraftPlan) -> dict[str, str | None]:
    return {row.name: row.value for row in made.environment}


def named(made: GraftPlan) -> dict[str, str]:
    return {copy.name: copy.source for copy in made.copies}


# ------------------------------------------------------------------ the key


def test_the_key_goes_by_contents_and_not_by_places(tmp_path: Path) -> None:
    first = on_disk(tmp_path / "one")
    made = a_plan(first)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    second = {name: tmp_path / "two" / path.name for name, path in first.items()}
    moved = a_plan(second, label={"name": "other.sif"})
    assert moved.key == made.key
    assert moved != made
    assert len(made.key) == 64


CHANGES: dict[str, Callable[[dict[str, Path]], GraftPlan]] = {
    "image": lambda f: a_plan(f, label={"digest": "e" * 64}),
    "programs": lambda f: a_plan(f, label={"programs": (APP, "/bin/other")}),
    "engine": lambda f: a_plan(f, engine="podman"),
    "device": lambda f: a_plan(f, devices=[Bind("/dev/cxi0", "/dev/cxi0", BindKind.DEVICE)]),
    "replaced": lambda f: a_plan(f, what=Replace.NOTHING),
    "environment": lambda f: a_plan(f, environment={"LD_LIBRARY_PATH": "/opt/x"}),
    "set": lambda f: a_plan(
        f, abi=replace(an_abi_of(f), environment=(EnvRow("X", "1", Scope.RANK, "x"),))
    ),
    "place": lambda f: a_plan(f, injection=replace(an_injection(an_abi_of(f)), place="/mnt")),
    "binds": lambda f: a_plan(f, injection=replace(an_injection(an_abi_of(f)), binds=())),
    "libmpi": lambda f: a_plan(f, injection=replace(an_injection(an_abi_of(f)), libmpi="/x")),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_makes_another_plan_makes_another_key(what: str, tmp_path: Path) -> None:
    files = on_disk(tmp_path)
    assert CHANGES[what](files).key != a_plan(files).key


@pytest.mark.parametrize(
    "name", ["libmpi", "dep", "help", "bench", "probe", "witness", "gpu_select", "trace"]
)
def test_other_contents_make_another_key(name: str, tmp_path: Path) -> None:
    files = on_disk(tmp_path)
    before = a_plan(files).key
    data = files[name].read_bytes()
    files[name].unlink()
    files[name].write_bytes(data + b"\n")
    files[name].chmod(0o755)
    assert a_plan(files).key != before


def test_a_plan_is_the_same_after_a_journey_as_json(tmp_path: Path) -> None:
    import json

    made = a_plan(on_disk(tmp_path))
    assert revive(GraftPlan, json.loads(document(plan=made))["plan"]) == made


# ------------------------------------------------------------------ what goes in


def test_libraries_data_and_our_programs_go_in(tmp_path: Path) -> None:
    files = on_disk(tmp_path)
    made = a_plan(files)
    assert named(made) == {
        "lib/libmpi.so.40": str(files["libmpi"]),
        "lib/libdep.so.1": str(files["dep"]),
        "share/help.txt": str(files["help"]),
        BENCH: str(files["bench"]),
        PROBE: str(files["probe"]),
        WITNESS: str(files["witness"]),
        GPU_SELECT: str(files["gpu_select"]),
        RELAY: str(files["relay"]),
        TRACE: str(files["trace"]),
    }
    rpaths = {copy.name: copy.rpath for copy in made.copies if copy.edit}
    edited = ["lib/libmpi.so.40", "lib/libdep.so.1", BENCH, PROBE]
    assert rpaths == dict.fromkeys(edited, f"{PLACE}/lib")
    (bind,) = made.binds
    assert (bind.source, bind.target) == (f"{{graft}}/{edited[0]}", OPENMPI.path)
    assert (made.libmpi, made.libmpi_copy) == (OPENMPI.path, edited[0])
    assert made.mpi == an_abi_of(files).mpi.id


def test_natives_without_the_library_that_profiles_make_a_graft(tmp_path: Path) -> None:
    """Those that somebody built from source for another MPI may have none."""
    files = on_disk(tmp_path)
    made = a_plan(files, natives=replace(natives_of(files), trace=None))
    assert TRACE not in named(made)
    assert WITNESS in named(made)


def test_the_libmpi_is_known_where_the_guest_has_none(tmp_path: Path) -> None:
    files = on_disk(tmp_path)
    abi = an_abi_of(files)
    found = decide_contents(
        a_world(needing("libmpi.so.40")), abi, GraftRequest(replace=Replace.MPI, place=PLACE)
    )
    made = a_plan(files, injection=found)
    assert made.libmpi == f"{PLACE}/{made.libmpi_copy}"
    assert made.libmpi_copy == f"lib/{OPENMPI.soname}"
    assert environment(made)["LD_LIBRARY_PATH"] == f"{PLACE}/lib"


def test_of_several_binds_the_libmpis_is_the_one_over_it(tmp_path: Path) -> None:
    files = on_disk(tmp_path)
    found = an_injection(an_abi_of(files))
    first = replace(found.binds[0], source="{graft}/lib/libdep.so.1", target="/a/libdep.so.1")
    made = a_plan(files, injection=replace(found, binds=(*found.binds, first)))
    assert made.libmpi_copy == f"lib/{OPENMPI.soname}"
    assert [bind.target for bind in made.binds] == [first.target, OPENMPI.path]


def test_under_the_guests_own_mpi_the_benchmarks_ask_for_its_name(tmp_path: Path) -> None:
    files = on_disk(tmp_path)
    for soname, renamed in (
        ("libmpi.so.40", ()),
        ("libmpich.so.12", (("libmpi.so.40", "libmpich.so.12"),)),
        ("", ()),
    ):
        made = a_plan(files, what=Replace.NOTHING, soname=soname)
        for one in (copy for copy in made.copies if copy.name in (BENCH, PROBE)):
            assert (one.renamed, one.edit, one.rpath) == (renamed, bool(renamed), "")
        assert set(named(made)) == {BENCH, PROBE, WITNESS, GPU_SELECT, RELAY, TRACE}
        assert made.libmpi_copy == ""


def test_without_a_host_mpi_only_ours_go_in(tmp_path: Path) -> None:
    files = on_disk(tmp_path)
    found = an_injection(an_abi_of(files), Replace.NOTHING)
    label = a_world(needing("libmpi.so.40"), library("libmpi.so.40")).label
    made = plan_folder(
        PlanInput(guest=label, mpi="", contents=found, engine="bwrap", natives=natives_of(files))
    )
    assert made.mpi == ""
    assert set(named(made)) == {BENCH, PROBE, WITNESS, GPU_SELECT, RELAY, TRACE}
    assert environment(made).get("OPAL_PREFIX", "") is None


def test_in_a_stack_our_benchmark_has_the_loader_and_folders_of_its_programs(
    tmp_path: Path,
) -> None:
    files = on_disk(tmp_path)
    label = a_world(needing("libmpi.so.40"), library("libmpi.so.40")).label
    preloads = ("/stack/a", "/stack/b")
    given = PlanInput(
        guest=label,
        mpi="",
        contents=keep_mpi(PLACE, "/stack/libmpi.so.40", preloads=preloads),
        engine="none",
        natives=natives_of(files),
    )
    plain = plan_folder(given)
    assert environment(plain)["LD_PRELOAD"] == ":".join(preloads)
    assert not keep_mpi(PLACE, "/stack/libmpi.so.40").environment
    injected = replace(given.contents, replace=Replace.MPI)
    made = plan_folder(replace(given, contents=injected, rpath="/stack/lib", interpreter="/ld.so"))
    assert (made.replace, made.copies[2:]) == (Replace.MPI, plain.copies[2:])
    assert made.key == digest([plain.key, "/stack/lib", "/ld.so"])
    assert [copy.name for copy in made.copies[:2]] == [BENCH, PROBE]
    for one in made.copies[:2]:
        assert (one.edit, one.rpath, one.interpreter) == (True, "/stack/lib", "/ld.so")


def test_what_is_replaced_is_part_of_a_key(tmp_path: Path) -> None:
    files = on_disk(tmp_path)
    found = an_injection(an_abi_of(files), Replace.NOTHING)
    kinds = (Replace.NOTHING, Replace.LIBFABRIC)
    assert len({a_plan(files, injection=replace(found, replace=kind)).key for kind in kinds}) == 2


def test_a_benchmark_that_is_no_elf_file_is_an_error(tmp_path: Path) -> None:
    files = on_disk(tmp_path)
    files["bench"].write_text("#!/bin/sh\n")
    with pytest.raises(reader.ElfError):
        a_plan(files, what=Replace.NOTHING)


# ------------------------------------------------------------------ environment


def test_what_leads_to_the_hosts_files_is_dropped(tmp_path: Path) -> None:
    files = on_disk(tmp_path)
    drop = EnvRow("PMIX_MCA_x", None, Scope.RANK, "x")
    abi = an_abi_of(files)
    made = a_plan(files, abi=replace(abi, environment=(*abi.environment, drop)))
    found = environment(made)
    assert len(made.environment) == len(found)  # each name once
    sources = {r.source for r in made.environment if r.name in DROPPED}
    assert sources == {"plan", *(r.source for r in abi.environment)}
    assert found.pop("PMIX_MCA_x", "") is None
    assert found.pop("OPAL_PREFIX") == PLACE  # {graft} of its own row
    assert set(found) == set(DROPPED) - {"OPAL_PREFIX"}
    assert set(found.values()) == {None}


def test_a_search_path_of_the_images_own_is_kept(tmp_path: Path) -> None:
    """The loader was simulated with it: without it the program would not start."""
    files = on_disk(tmp_path)
    given = {"LD_LIBRARY_PATH": "/opt/x", "LD_PRELOAD": "/opt/p.so", "PATH": "/bin"}
    made = a_plan(files, environment=given)
    found = environment(made)
    assert (found["LD_LIBRARY_PATH"], found["LD_PRELOAD"]) == ("/opt/x", "/opt/p.so")
    assert "PATH" not in found
    assert {r.source for r in made.environment if r.value == "/opt/x"} == {"guest"}


@pytest.mark.parametrize(("what", "kept"), [(Replace.MPI, None), (Replace.NOTHING, "/opt/i_mpi")])
def test_the_images_own_mpi_settings_go_with_its_mpi(
    what: Replace, kept: str | None, tmp_path: Path
) -> None:
    given = {"I_MPI_ROOT": "/opt/i_mpi", "FI_PROVIDER_PATH": "/opt/i_mpi/prov"}
    found = environment(a_plan(on_disk(tmp_path), what=what, environment=given))
    assert found["I_MPI_ROOT"] == kept
    assert found["FI_PROVIDER_PATH"] == (kept and "/opt/i_mpi/prov")


def test_with_libfabric_alone_only_what_is_about_it_is_set(tmp_path: Path) -> None:
    files = on_disk(tmp_path)
    rows = (
        EnvRow("OPAL_PREFIX", "{graft}", Scope.RANK, "x"),
        EnvRow("FI_PROVIDER_PATH", "{graft}/lib/libfabric", Scope.RANK, "x"),
    )
    abi = replace(an_abi_of(files), environment=rows)
    whole = an_injection(abi)
    for copies, value in ((whole.copies, f"{PLACE}/lib/libfabric"), ((), None)):
        found = environment(
            a_plan(
                files, abi=abi, injection=replace(whole, replace=Replace.LIBFABRIC, copies=copies)
            )
        )
        assert found["FI_PROVIDER_PATH"] == value
        assert found["OPAL_PREFIX"] is None


# ------------------------------------------------------------------ stamps


def test_a_file_that_changed_vanished_or_appeared_is_noticed(tmp_path: Path) -> None:
    files = on_disk(tmp_path)
    extra = tmp_path / "later"
    made = replace(a_plan(files), inputs=path_stamps([*map(str, files.values()), str(extra)]))
    assert changed_paths(made.inputs) == ()
    os.utime(files["help"], ns=(1, 1))
    assert changed_paths(made.inputs) == (str(files["help"]),)  # by ctime: mtime can be set back
    files["dep"].unlink()
    extra.touch()
    assert set(changed_paths(made.inputs)) == {str(files["help"]), str(files["dep"]), str(extra)}


def test_another_file_of_the_same_size_and_time_is_noticed(tmp_path: Path) -> None:
    one = tmp_path / "one"
    one.write_bytes(b"a")
    before = path_stamps([str(one)])
    two = tmp_path / "two"
    two.write_bytes(b"b")
    os.utime(two, ns=(one.stat().st_atime_ns, one.stat().st_mtime_ns))
    two.rename(one)
    assert path_stamps([str(one)]) != before
    assert changed_paths(before) == (str(one),)


def test_stamps_are_of_paths_each_once(tmp_path: Path) -> None:
    one = tmp_path / "one"
    one.touch()
    made = path_stamps([str(one), "quay.io/site/app:1", str(one), "/not/there"])
    assert [s.path for s in made] == sorted(["/not/there", str(one)])
    assert made == path_stamps(["/not/there", str(one)])
    gone = next(s for s in made if s.path == "/not/there")
    assert (gone.device, gone.inode, gone.size, gone.changed_ns) == (0, 0, 0, 0)


def test_the_inputs_are_what_was_read(tmp_path: Path) -> None:
    files = on_disk(tmp_path)
    (tmp_path / "image").touch()
    seen = {s.path for s in a_plan(files).inputs}
    assert {str(tmp_path / "image"), str(files["libmpi"]), str(files["dep"])} <= seen


def test_our_programs_are_read_from_the_path_of_natives(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        a_plan(on_disk(tmp_path), natives=Natives(Path("/n/b"), Path("/n/w"), Path("/n/g"), ""))
