"""What each engine makes of a plan: pure words, every path in them right or refused."""

from __future__ import annotations

import csv
import io
import string
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.binary.image.opening import open_root
from mpigraft.core.env import ENV
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import Bind, BindKind, EnvRow, GuestKind, Scope
from mpigraft.graft.engines import bwrap, charliecloud, podman
from mpigraft.graft.engines.mounts import ALONE, dropped, inside, mounts, present
from mpigraft.graft.engines.parts import fields, plain
from mpigraft.graft.engines.registry import (
    DEFAULT_ENGINES,
    ENGINES,
    engine_words,
    find_engine,
    select_engine,
)
from tests.builders.plans import LIBRARY, Image, label, plan, seat

PATHS = st.text(
    st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1, max_size=12
).filter(lambda name: name not in {".", ".."})
GRAFTED = Bind("/data/grafts/k/lib/libmpi.so.40", LIBRARY)


@pytest.fixture
def image(tmp_path: Path) -> Image:
    return Image.at(tmp_path / "image")


def words(image: Image, engine: str, **changes: Any) -> tuple[str, ...]:
    return engine_words(plan(image.label, engine), seat(**changes))


def pairs(said: tuple[str, ...], option: str) -> list[tuple[str, str]]:
    return [(said[i + 1], said[i + 2]) for i, word in enumerate(said) if word == option]


RANKS = "/.mpigraft/ranks"
DROPPED = ("LD_PRELOAD", "PMIX_INSTALL_PREFIX", "SITE")

# What is bound


def test_outer_folders_are_bound_before_inner_ones_and_the_graft_wins(image: Image) -> None:
    mine = (Bind("/x", LIBRARY), Bind("/scratch", "/tmp", BindKind.FOLDER, writable=True))
    bound = {b.target: b for b in mounts(plan(image.label, "bwrap"), seat(extra=mine))}
    assert bound[LIBRARY] == GRAFTED
    assert bound["/tmp"].source == "/scratch"
    order = list(bound)
    assert order.index("/.mpigraft") < order.index(RANKS)
    assert [b.target for b in bound.values() if b.writable] == ["/tmp", "/dev/shm", RANKS]


def test_the_launchers_session_is_found_wherever_it_is(image: Image) -> None:
    own = seat(environment=(("TMPDIR", "/scratch/u/"),))
    assert {"/tmp", "/scratch/u"} <= {b.target for b in mounts(plan(image.label, "bwrap"), own)}


@pytest.mark.parametrize("cwd", ["/usr", "/opt", "/.mpigraft", "/usr/lib/x86_64-linux-gnu"])
def test_a_working_folder_that_would_hide_the_guests_files_is_refused(
    image: Image, cwd: str
) -> None:
    with pytest.raises(UsageError, match="would hide"):
        mounts(plan(image.label, "bwrap"), seat(cwd=cwd))


@pytest.mark.parametrize("path", ["relative", "/a/../b", "/a\0b", ""])
def test_only_plain_absolute_paths_are_bound(image: Image, path: str) -> None:
    for bind in (Bind(path, "/there"), Bind("/here", path)):
        with pytest.raises(UsageError, match="cannot be bound"):
            mounts(plan(image.label, "bwrap"), seat(extra=(bind,)))


def test_what_is_optional_is_bound_where_it_is_there(tmp_path: Path) -> None:
    here = Bind(str(tmp_path), "/a", required=False)
    nowhere = Bind(str(tmp_path / "no"), "/b", required=False)
    asked = Bind(str(tmp_path / "no"), "/c")
    assert present((here, nowhere, asked)) == (here, asked)


def test_what_the_plan_drops_and_does_not_pass_is_dropped(image: Image) -> None:
    own = (("HOME", "/h"), ("PMIX_RANK", "0"), ("SITE", "x"), ("LD_PRELOAD", "y"))
    found = dropped(plan(image.label, "bwrap"), seat(environment=own))
    assert found == DROPPED


def test_a_mount_point_is_looked_for_inside_the_guest(image: Image) -> None:
    (image.folder / "etc/loop").symlink_to("/etc/loop")
    root = open_root(image.folder)
    assert inside(root, "/var/run") == ("/run", True)
    assert inside(root, "/var/run/munge") == ("/run/munge", False)
    assert inside(root, "/bin/../no/where") == ("/usr/no/where", False)
    assert inside(root, "/etc/loop") == ("/etc/loop", False)


# Syntax


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1))
def test_fields_are_read_back_as_they_were(values: list[str]) -> None:
    if any("\r\n" in v for v in values):
        with pytest.raises(UsageError):
            fields(*values)
        return
    (row,) = csv.reader(io.StringIO(fields(*values), newline=""))
    assert row == values


@given(PATHS, PATHS)
def test_every_path_is_one_field_or_refused(source: str, target: str) -> None:
    made = plan(label("/image"), "podman")
    for engine, key in (("apptainer", "destination"), ("podman", "target")):
        bind = Bind(f"/s/{source}", f"/t/{target}")
        try:
            parts = ENGINES[engine].options(
                replace(made, guest=label("/i.sif", GuestKind.PODMAN)), seat(), [bind]
            )
        except UsageError:
            assert "\r\n" in source or "\r\n" in target
            continue
        said = [w for p in parts for w in p.words]
        (row,) = csv.reader(io.StringIO(said[said.index("--mount") + 1], newline=""))
        assert row[1:3] == [f"source=/s/{source}", f"{key}=/t/{target}"]


def test_what_cannot_be_escaped_is_refused(image: Image, tmp_path: Path) -> None:
    assert plain("x", "a b\n", ":") == "a b\n"
    with pytest.raises(UsageError, match="a:b"):
        plain("x", "a:b", ":")
    colon = replace(seat(), extra=(Bind("/a:b", "/mnt"),))
    with pytest.raises(UsageError, match="Charliecloud cannot take '/a:b'"):
        engine_words(plan(image.label, "charliecloud", place="/opt"), colon)
    with pytest.raises(UsageError, match="podman cannot take"):
        podman.options(plan(label("/a:b"), "podman"), seat(root=True), ())
    with pytest.raises(UsageError, match="podman cannot take"):
        podman.options(plan(label("/a"), "podman", passed=("A*B",)), seat(root=True), ())


@given(st.text(string.printable, max_size=20), PATHS)
def test_no_engine_gives_words_to_a_shell(value: str, name: str) -> None:
    """What a plan says stands in the words as one word or within one, never split."""
    hostile = f"/h/{name}; echo $(id) `id` {value}".replace("\0", "").replace("\r\n", "")
    made = plan(label("/i.sif", GuestKind.SIF, environment=()), "apptainer")
    said = ENGINES["apptainer"].options(made, seat(cwd=hostile), ())
    assert said[-2].words == ("--cwd", hostile)


# Engines


def test_bwrap_puts_the_root_together_where_a_mount_point_lacks(image: Image) -> None:
    extra = (Bind("/opt/spool", "/var/spool/slurmd", BindKind.FOLDER, writable=True),)
    said = words(image, "bwrap", extra=extra)
    here = str(image.folder)
    bound = {b: a for a, b in pairs(said, "--ro-bind")}
    assert bound["/usr"] == f"{here}/usr"
    assert bound[LIBRARY] == GRAFTED.source
    assert "/var" not in bound  # it is made anew: slurmd is not in it
    assert pairs(said, "--symlink") == [("usr/bin", "/bin"), ("/run", "/var/run")]
    made = [said[i + 1] for i, word in enumerate(said) if word == "--dir"]
    assert made == ["/var", "/var/spool"]
    assert (extra[0].source, extra[0].target) in pairs(said, "--bind")
    assert not {"/proc", "/sys", "/dev"} & set(bound) - {"/sys"}
    assert "/dev/nosuch" not in said
    assert said[-1] == "--"


def test_bwrap_binds_at_the_place_behind_a_link(image: Image) -> None:
    said = words(image, "bwrap", extra=(Bind("/x", "/var/run/munge", BindKind.FOLDER),))
    assert ("/x", "/run/munge") in pairs(said, "--ro-bind")
    made = [said[i + 1] for i, word in enumerate(said) if word == "--dir"]
    assert made == ["/run"]


def test_bwrap_over_this_machines_own_root_binds_nothing_but_the_graft() -> None:
    made = plan(label("/opt/app/hello", GuestKind.PROGRAM), "bwrap")
    said = engine_words(made, seat())
    assert ("/usr", "/usr") in pairs(said, "--dev-bind")
    assert {b for _, b in pairs(said, "--bind")} == {RANKS}
    assert "--setenv" not in said


def test_bwrap_refuses_what_it_would_have_to_bind_a_thousand_times(
    image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bwrap, "MOST_ENTRIES", 15)
    for n in range(16):
        (image.folder / "var" / f"f{n}").write_text("")
    assert words(image, "bwrap")
    with pytest.raises(UsageError, match="entries"):
        words(image, "bwrap", extra=(Bind("/x", "/var/new"),))


def test_ranks_that_share_nothing_are_kept_from_single_copies(image: Image) -> None:
    made = plan(image.label, "bwrap")
    alone = {row.name: row for row in bwrap.rows(made, seat())}
    assert alone["UCX_TLS"].value == "^cma"
    assert {row.scope for row in alone.values()} == {Scope.RANK}
    assert "lost" in bwrap.shares(made, seat())
    assert bwrap.rows(made, seat(root=True)) == ()
    assert bwrap.rows(made, seat(ranks_per_node=1)) == (*alone.values(),)


def test_an_engine_that_loses_single_copies_turns_them_off(image: Image) -> None:
    for engine in ENGINES.values():
        for where in (seat(), seat(root=True), seat(ranks_per_node=0), seat(ranks_per_node=1)):
            made = plan(image.label, "x")
            rows = [row for row in engine.rows(made, where) if row.name in dict(ALONE)]
            lost = "lost" in engine.shares(made, where)
            assert rows or not lost
            assert lost or not rows or where.ranks_per_node == 1, "a rank alone may spawn others"


@pytest.mark.parametrize(
    ("version", "ranks", "shares", "folder"),
    [
        ("1.4.5", 2, True, "--cwd"),
        ("1.4.5", 0, True, "--cwd"),
        ("1.4.5", 1, False, "--cwd"),
        ("1.2.5", 2, False, "--cwd"),
        ("1.1.9", 2, False, "--pwd"),
        ("4.1.0-ce", 2, False, "--cwd"),
        ("3.11.4-ce", 2, False, "--pwd"),
        ("3.8.7", 2, False, "--pwd"),
    ],
)
def test_apptainer_by_version(
    image: Image, version: str, ranks: int, shares: bool, folder: str
) -> None:
    said = words(image, "apptainer", version=version, ranks_per_node=ranks)
    assert ("--sharens" in said) is shares
    assert said[said.index(folder) + 1] == "/tmp/work"
    assert said[-1] == str(image.folder)
    told = ENGINES["apptainer"].shares(plan(image.label, "apptainer"), seat(version=version))
    assert ("is lost" in told) is not (version == "1.4.5")


def test_apptainer_is_started_without_what_ranks_may_not_have(image: Image) -> None:
    said = words(image, "apptainer")
    unset = [word for name in DROPPED for word in ("-u", name)]
    assert said[: said.index("/usr/bin/engine")] == (ENV, *unset)


def test_charliecloud_appears_in_an_empty_folder(image: Image) -> None:
    assert charliecloud.place(image.guest) == "/mnt"
    for taken in ("mnt", "opt"):
        (image.folder / taken / "x").write_text("")
    with pytest.raises(UsageError, match="no empty folder"):
        charliecloud.place(image.guest)


def test_charliecloud_joins_and_hands_on_by_pattern(image: Image) -> None:
    made = plan(image.label, "charliecloud", place="/mnt")
    said = engine_words(made, seat())
    assert "--join-ct=2" in said
    assert "--unset-env=!(PMIX_*|PMI_*|OMPI_*|TMPDIR|HOME|USER|LOGNAME)" in said
    assert "--unset-env=@(LD_PRELOAD|PMIX_INSTALL_PREFIX)" in said
    assert f"--bind={GRAFTED.source}:{LIBRARY}" in said
    assert not [w for w in said if w.startswith("--bind=/dev") or w.startswith("--bind=/tmp")]
    assert not [w for w in engine_words(made, seat(ranks_per_node=1)) if w.startswith("--join")]


def test_charliecloud_makes_a_home_and_no_other_folder(image: Image) -> None:
    made = plan(image.label, "charliecloud", place="/mnt")
    home = str(Path("/home") / "u")
    own = (("HOME", home), ("USER", "u"))
    with pytest.raises(UsageError, match=f"has no {home}/x"):
        engine_words(made, seat(cwd=f"{home}/x", environment=own))
    (image.folder / "home").mkdir()
    assert "--home" in engine_words(made, seat(cwd=f"{home}/x", environment=own))
    with pytest.raises(UsageError, match="has no /scratch"):
        engine_words(made, seat(cwd="/scratch", environment=own))
    assert charliecloud.rows(made, seat(environment=own)) == ()
    (row,) = charliecloud.rows(made, seat(environment=()))
    assert (row.name, bool(row.value)) == ("USER", True)


def test_charliecloud_needs_the_folders_that_it_binds(image: Image) -> None:
    made = plan(image.label, "charliecloud", place="/mnt")
    (image.folder / "tmp").rmdir()
    with pytest.raises(UsageError, match="has no /tmp"):
        engine_words(made, seat())


@pytest.mark.parametrize("name", ["a,b", "a\\b", "a:b"])
def test_podman_cannot_lay_a_layer_over_every_name(tmp_path: Path, name: str) -> None:
    """Seen with 4.3.1: the folder's name goes into the options of an overlay as it is."""
    (tmp_path / name).mkdir()
    made = plan(label(str(tmp_path / name)), "podman")
    with pytest.raises(UsageError, match="podman cannot take"):
        engine_words(made, seat(root=True))


def test_podman_never_writes_into_a_folder(image: Image) -> None:
    assert words(image, "podman", root=True)[-2:] == ("--rootfs", f"{image.folder}:O")
    foreign = plan(label("/"), "podman")
    if Path("/").stat().st_uid != Path(image.folder).stat().st_uid:
        with pytest.raises(UsageError, match="somebody else"):
            engine_words(foreign, seat())


def test_podman_passes_patterns_and_devices(image: Image) -> None:
    extra = (Bind("/dev/null", "/dev/null", BindKind.DEVICE),)
    said = words(image, "podman", root=True, extra=extra)
    assert [said[i + 1] for i, w in enumerate(said) if w == "--env"] == [
        "PMIX_*", "PMI_*", "OMPI_*", "TMPDIR",
    ]  # fmt: skip
    assert said[said.index("--device") + 1] == "/dev/null:/dev/null"
    assert said[:3] == (ENV, "-u", DROPPED[1])  # the only one that a pattern names
    assert "type=bind,source=/dev/shm,target=/dev/shm" not in said  # --ipc host is it


def test_without_an_engine_nothing_is_bound() -> None:
    made = plan(label("/opt/app/hello", GuestKind.PROGRAM), "none", binds=())
    assert engine_words(made, seat(program="")) == ()
    with pytest.raises(UsageError, match="needs an engine"):
        engine_words(replace(made, binds=(GRAFTED,)), seat(program=""))


# Which engine


def fake(folder: Path, name: str, said: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\necho '{said}'\n")
    (folder / name).chmod(0o755)


def test_an_engine_is_found_with_its_version(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path)}
    with pytest.raises(MissingError, match="no apptainer and no singularity"):
        find_engine("apptainer", environ)
    with pytest.raises(UsageError, match="engine 'docker' is unknown"):
        find_engine("docker", environ)
    fake(tmp_path, "singularity", "singularity-ce version 4.1.0-noble")
    assert find_engine("apptainer", environ) == (str(tmp_path / "singularity"), "4.1.0-ce")
    fake(tmp_path, "apptainer", "apptainer version 1.4.5")
    assert find_engine("apptainer", environ) == (str(tmp_path / "apptainer"), "1.4.5")
    fake(tmp_path, "bwrap", "none of your business")
    with pytest.raises(MissingError, match="prints no version"):
        find_engine("bwrap", environ)
    assert find_engine("none", {}) == ("", "")


def test_the_first_engine_that_is_here_is_chosen(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path)}
    assert select_engine(GuestKind.PROGRAM, environ) == "none"
    with pytest.raises(MissingError, match="nothing here starts"):
        select_engine(GuestKind.SIF, environ)
    fake(tmp_path, "bwrap", "1.0")
    assert select_engine(GuestKind.FOLDER, environ) == "bwrap"


def test_every_default_can_start_that_kind() -> None:
    for kind in GuestKind:
        for name in DEFAULT_ENGINES[kind]:
            assert kind in ENGINES[name].KINDS


def test_an_engine_keeps_its_own_settings(image: Image) -> None:
    own = seat(environment=(("CONTAINERS_CONF", "/c"), ("APPTAINER_TMPDIR", "/t")))
    made = plan(image.label, "podman")
    assert EnvRow("CONTAINERS_CONF", "/c", Scope.LAUNCHER, "engine") in podman.rows(made, own)
    assert [r.name for r in ENGINES["apptainer"].rows(made, own)] == ["APPTAINER_TMPDIR"]


def test_podman_starts_an_image_of_its_storage_by_its_id() -> None:
    made = plan(label("name:tag", GuestKind.PODMAN, digest="5f" * 32), "podman")
    assert podman.options(made, seat(), ())[-1].words == ("5f" * 32,)


def test_podman_gives_ranks_no_tmpdir_of_its_own() -> None:
    gone = EnvRow("TMPDIR", None, Scope.RANK, "engine")
    mine = seat(environment=(("TMPDIR", "/t"),))
    images = plan(label("/image", environment=(("TMPDIR", "/i"),)), "podman")
    assert gone in podman.rows(plan(label("/image"), "podman"), seat())
    assert gone not in podman.rows(plan(label("/image"), "podman"), mine)
    assert gone not in podman.rows(images, seat())


def test_podman_keeps_who_ranks_are(image: Image) -> None:
    assert pairs(words(image, "podman", root=True), "--user")[0][0] == "0:0"
    mine = podman.options(plan(label("name", GuestKind.PODMAN), "podman"), seat(), ())
    assert podman.AS_USER in [part.words for part in mine]
