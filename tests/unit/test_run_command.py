"""The short way of `run`: what it may rely on, and what it lets pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft import attached, cache, fast
from mpigraft.model import Configuration, Layout, Level
from mpigraft.records import read_witness
from mpigraft.witness import LIBMPI, check_witness
from tests.unit import told
from tests.unit.builders import an_mpi

LIGHT = {"mpigraft", "mpigraft.attached", "mpigraft.fast"}
HEAVY = {"dataclasses", "subprocess", "typing", "pathlib", "tempfile", "typer", "inspect"}


# ------------------------------------------------------------------ keys and documents


def test_the_short_way_imports_next_to_nothing() -> None:
    program = (
        f"import sys; sys.path.insert(0, {source()!r}); before = set(sys.modules); "
        "import mpigraft.fast; print(*sorted(set(sys.modules) - before))"
    )
    words = [sys.executable, "-S", "-E", "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {name for name in loaded if name.startswith("mpigraft")} == LIGHT
    assert not loaded & HEAVY


def source() -> str:
    return str(Path(fast.__file__).parents[1])


def test_the_folder_is_the_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for environ in (
        {"MPIGRAFT_HOME": str(tmp_path)},
        {"MPIGRAFT_HOME": "relative"},
        {"HOME": str(tmp_path)},
        {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "xdg")},
        {"HOME": str(tmp_path), "XDG_CACHE_HOME": "relative"},
    ):
        with monkeypatch.context() as patch:
            for name in ("MPIGRAFT_HOME", "XDG_CACHE_HOME", "HOME"):
                patch.delenv(name, raising=False)
            for name, value in environ.items():
                patch.setenv(name, value)
            assert fast.folder(os.environ) == str(cache.folders().cache / "run")


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("PATH", True), ("LD_LIBRARY_PATH", True), ("OMPI_MCA_pml", True), ("TMPDIR", True),
        ("MPIGRAFT_SITE", True), ("FI_PROVIDER", True), ("OMP_NUM_THREADS", True),
        ("PMI_RANK", True), ("OLDPWD", False), ("SSH_CLIENT", False), ("SLURM_JOB_ID", False),
    ],
)  # fmt: skip
def test_what_decides_is_in_the_key(name: str, counts: bool) -> None:
    words = ["--", "./app"]
    assert (fast.key(words, {}) != fast.key(words, {name: "x"})) is counts
    assert (fast.key(words, {name: "x"}) != fast.key(words, {name: "y"})) is counts


def test_of_a_users_own_variable_the_name_decides_and_the_value_passes() -> None:
    assert fast.key([], {"MY_DATA": "x"}) == fast.key([], {"MY_DATA": "y"}) != fast.key([], {})


@given(st.lists(st.text(max_size=4), max_size=4), st.lists(st.text(max_size=4), max_size=4))
def test_other_words_are_another_job(one: list[str], two: list[str]) -> None:
    assert (fast.key(one, {}) == fast.key(two, {})) is (one == two)


def test_another_folder_is_another_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fast.key([], {})
    monkeypatch.chdir(tmp_path)
    assert fast.key([], {}) != before


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"MPIGRAFT_HOME": str(tmp_path / "home")}


def a_document(tmp_path: Path, **changes: Any) -> fast.Document:
    """Of a job whose world is right when one rank of `libmpi.so.40` has told."""
    library = tmp_path / "libmpi.so.40"
    library.touch()
    home = tmp_path / "records"
    home.mkdir(exist_ok=True)
    seen = library.stat()
    return {
        "key": "k",
        "argv": ["/bin/sh", "-c", "exit 0", "PID"],
        "parent": 3,
        "home": str(home),
        "drop": [],
        "set": {},
        "ranks": 1,
        "nodes": 1,
        "libmpi": [str(library), seen.st_dev, seen.st_ino],
        "libmpi_name": LIBMPI.pattern,
        "proof": True,
        "placed": False,
        "files": [],
        "stamps": [[str(library), *fast.stamp(str(library))]],
        "listed": [[str(home), "x", ".conf", []]],
        **changes,
    }


def test_what_is_kept_comes_back_until_an_input_changes(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    document = a_document(tmp_path)
    fast.keep(document, environ)
    assert fast.kept("k", environ) == document
    assert fast.kept("other", environ) is None
    appeared = Path(document["home"]) / "x1.conf"
    appeared.touch()
    assert fast.kept("k", environ) is None
    appeared.unlink()
    assert fast.kept("k", environ) == document
    (tmp_path / "libmpi.so.40").write_bytes(b"another")
    assert fast.kept("k", environ) is None


def test_a_file_that_was_not_there_is_an_input_too(tmp_path: Path, environ: dict[str, str]) -> None:
    profile = tmp_path / "site.toml"
    fast.keep(a_document(tmp_path, stamps=[[str(profile), 0, 0, 0, 0]]), environ)
    assert fast.kept("k", environ) is not None
    profile.touch()
    assert fast.kept("k", environ) is None


@pytest.mark.parametrize("how", ["writable", "link", "fifo", "folder"])
def test_what_another_may_have_written_is_not_read(
    tmp_path: Path, environ: dict[str, str], how: str
) -> None:
    fast.keep(a_document(tmp_path), environ)
    place = Path(fast.folder(environ)) / "k.json"
    if how == "writable":
        place.chmod(0o660)
    else:
        content = place.read_bytes()
        place.unlink()
        if how == "fifo":
            os.mkfifo(place)
        elif how == "folder":
            place.mkdir()
        else:
            (tmp_path / "elsewhere").write_bytes(content)
            place.symlink_to(tmp_path / "elsewhere")
    assert fast.kept("k", environ) is None


def documents_of(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(["stamps", "listed", "x"]), inner, max_size=3)


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | documents_of(inner),
    max_leaves=8,
)
DAMAGED = st.binary(max_size=200) | documents_of(VALUES).map(
    lambda value: json.dumps({**value, "key": "k"}).encode()
)


@given(DAMAGED)
def test_a_damaged_document_is_none(tmp_path_factory: Any, data: bytes) -> None:
    environ = {"MPIGRAFT_HOME": str(tmp_path_factory.getbasetemp() / "damaged")}
    place = Path(fast.folder(environ))
    place.mkdir(parents=True, exist_ok=True)
    (place / "k.json").write_bytes(data)
    (place / "k.json").chmod(0o600)
    found = fast.kept("k", environ)
    assert found is None or not found["stamps"]


@pytest.mark.parametrize("part", sorted(fast.PARTS))
def test_a_document_without_one_of_its_parts_is_none(part: str, tmp_path: Path) -> None:
    environ = {"MPIGRAFT_HOME": str(tmp_path / "home")}
    whole = a_document(tmp_path)
    fast.keep(whole, environ)
    assert fast.kept(whole["key"], environ) == whole
    fast.keep({name: value for name, value in whole.items() if name != part}, environ)
    assert fast.kept(whole["key"], environ) is None


def test_a_folder_that_cannot_be_written_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    fast.keep(a_document(tmp_path), {"MPIGRAFT_HOME": str(tmp_path / "home")})


# ------------------------------------------------------------------ the world


LIBRARIES = st.sampled_from(["right", "wrong", "twice", "bindings", "deleted", "none"])
RECORD = st.fixed_dictionaries(
    {
        "rank": st.integers(-1, 3) | st.none() | st.booleans(),
        "size": st.integers(0, 3),
        "host": st.sampled_from(["a", "b"]) | st.integers(0, 1),
        "libraries": LIBRARIES,
    }
)
GOOD = st.builds(
    lambda n: [{"rank": r, "size": n, "host": "a", "libraries": "right"} for r in range(n)],
    st.integers(1, 3),
)


def mapped(what: str, library: Path) -> list[list[Any]]:
    seen = library.stat()
    right = [str(library), seen.st_dev, seen.st_ino]
    other = ["/other/libmpi.so.40", seen.st_dev, seen.st_ino + 1]
    return {
        "right": [right],
        "wrong": [other],
        "twice": [right, other],
        "bindings": [right, ["/x/libmpi_mpifh.so.40", 1, 1], ["/lib/libc.so.6", 1, 2]],
        "deleted": [[f"{library} (deleted)", seen.st_dev, seen.st_ino]],
        "none": [],
    }[what]


def written(folder: Path, records: list[dict[str, Any]], library: Path) -> Path:
    """The file of one node, whose ranks may say that they ran on several hosts."""
    whole = [
        told.a_rank(
            **{**record, "libraries": mapped(record["libraries"], library)},
            pid=number + 1,
            cores=str(number),
        )
        for number, record in enumerate(records)
    ]
    return told.written(folder, *whole)


@given(GOOD | st.lists(RECORD, max_size=3), st.integers(1, 3))
def test_what_the_quick_look_passes_the_full_judgement_passes_too(
    tmp_path_factory: Any, records: list[dict[str, Any]], ranks: int
) -> None:
    folder = tmp_path_factory.mktemp("world")
    document = a_document(folder, ranks=ranks)
    library = Path(document["libmpi"][0])
    written(Path(document["home"]), records, library)
    mpi = an_mpi(libmpi=library)
    findings = check_witness(
        Configuration("key", "id", mpi, None),
        Layout(ranks_per_node=ranks, bind="none"),
        read_witness(Path(document["home"])),
    )
    wrong = [f for f in findings if f.level is Level.ERROR]
    world = fast.World(document, document["home"])
    whole = world.whole()
    assert not (whole and wrong), wrong
    clean = all(r["host"] in ("a", "b") for r in records)
    assert whole or wrong or not clean


@pytest.mark.parametrize(
    ("records", "answer"),
    [
        ([], attached.GO_ON),
        ([(0, 2, "right")], attached.GO_ON),
        ([(0, 2, "right"), (1, 2, "bindings")], attached.SEEN),
        ([(0, 1, "right")], attached.END),
        ([(0, 2, "wrong")], attached.END),
        ([(0, 2, "twice")], attached.END),
        ([(0, 2, "right"), (0, 1, "right")], attached.END),
        ([(0, 4, "right")], attached.END),
    ],
)
def test_a_world_that_cannot_become_right_ends_the_job(
    tmp_path: Path, records: list[tuple[int, int, str]], answer: int
) -> None:
    document = a_document(tmp_path, ranks=2)
    ranks = [{"rank": r, "size": s, "host": "a", "libraries": how} for r, s, how in records]
    written(Path(document["home"]), ranks, Path(document["libmpi"][0]))
    assert fast.World(document, document["home"]).look() == answer


def test_a_library_of_an_image_is_known_by_its_path(tmp_path: Path) -> None:
    document = a_document(tmp_path, libmpi=["/usr/lib/libmpi.so.40", 0, 0])
    home = Path(document["home"])
    told.written(home, told.a_rank(size=1, libraries=[("/usr/lib/libmpi.so.40", 7, 8)]))
    assert fast.World(document, document["home"]).whole()
    told.written(home, told.a_rank(size=1, libraries=[("/opt/libmpi.so.40", 7, 8)]))
    assert not fast.World(document, document["home"]).whole()


def test_each_line_is_read_once_when_it_is_whole(tmp_path: Path) -> None:
    document = a_document(tmp_path, ranks=3)
    right = mapped("right", Path(document["libmpi"][0]))
    ranks = [told.a_rank(rank=n, size=3, libraries=right) for n in range(3)]
    data = told.encoded(told.lines(ranks))
    place = Path(document["home"]) / f"{told.NODE}.ranks"
    world = fast.World(document, document["home"])
    with place.open("wb", buffering=0) as file:
        for at in range(0, len(data), 7):
            assert world.look() == attached.GO_ON
            file.write(data[at : at + 7])
    assert world.look() == attached.SEEN
    assert len(world.records) == 3
    assert len(world.files) == 1
    world.remove()
    assert not place.exists()


def test_a_rank_whose_node_has_not_told_more_is_waited_for(tmp_path: Path) -> None:
    """Who tells what ranks have in common may be the last to write."""
    document = a_document(tmp_path, ranks=2)
    right = mapped("right", Path(document["libmpi"][0]))
    first, second = told.lines(told.a_rank(rank=n, libraries=right) for n in range(2))
    place = Path(document["home"]) / f"{told.NODE}.ranks"
    place.write_bytes(told.encoded([second]))
    world = fast.World(document, document["home"])
    assert world.look() == attached.GO_ON
    place.write_bytes(told.encoded([second, first]))
    assert world.look() == attached.SEEN


@pytest.mark.parametrize(
    ("hosts", "nodes", "whole"),
    [("aabb", 2, True), ("aabb", 1, False), ("aaab", 2, False), ("aaaa", 2, False)],
)
def test_a_world_of_two_nodes_fills_both(
    tmp_path: Path, hosts: str, nodes: int, whole: bool
) -> None:
    document = a_document(tmp_path, ranks=4, nodes=nodes)
    right = mapped("right", Path(document["libmpi"][0]))
    for host in set(hosts):
        own = [told.a_rank(rank=n, size=4, host=host, libraries=right)
               for n, name in enumerate(hosts) if name == host]  # fmt: skip
        told.written(Path(document["home"]), *own, node=f"{host}-1")
    assert fast.World(document, document["home"]).whole() is whole


def test_a_file_of_another_or_a_pipe_is_not_waited_at(tmp_path: Path) -> None:
    document = a_document(tmp_path)
    os.mkfifo(Path(document["home"]) / "n0-1.ranks")
    right = mapped("right", Path(document["libmpi"][0]))
    told.written(Path(document["home"]), told.a_rank(size=1, libraries=right))
    assert fast.World(document, document["home"]).look() == attached.GO_ON


# ------------------------------------------------------------------ codes


def starting(
    tmp_path: Path, script: str, *, wrong: bool = True, **changes: Any
) -> tuple[int | None, bool]:
    """(exit code, whether the full judgement was asked) of a document whose program is `script`."""
    asked = []

    def judge(key: str, folder: str) -> bool:
        asked.append((key, Path(folder).is_dir()))
        return wrong

    document = a_document(tmp_path, argv=["/bin/sh", "-c", script, "PID"], **changes)
    code = fast.start(document, dict(os.environ), judge)
    assert list(Path(document["home"]).iterdir()) == []
    assert asked in ([], [("k", True)])
    return code, bool(asked)


@pytest.mark.parametrize(
    ("script", "wrong", "code", "asked"),
    [
        ("exit 0", True, 5, True),  # no record at all is no proof
        ("exit 0", False, 0, True),
        ("exit 3", True, 3, False),  # it failed before it told anything: its code is the news
        ("kill -9 $$", True, 137, False),
    ],
)
def test_the_programs_own_code_comes_first(
    tmp_path: Path, script: str, wrong: bool, code: int, asked: bool
) -> None:
    assert starting(tmp_path, script, wrong=wrong) == (code, asked)


def test_without_proof_nothing_is_judged(tmp_path: Path) -> None:
    assert starting(tmp_path, "exit 0", proof=False) == (0, False)


def test_a_wrong_world_ends_what_would_go_on(tmp_path: Path) -> None:
    document = a_document(tmp_path)
    other = {"rank": 0, "size": 9, "host": "a", "libraries": "right"}
    written(tmp_path, [other], Path(document["libmpi"][0]))
    script = f"cp {tmp_path}/*.ranks {document['home']}/{fast.RECORDS}/; exec sleep 60"
    assert starting(tmp_path, script) == (5, True)


def test_the_environment_is_this_ones_with_what_was_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DROPPED", "1")
    monkeypatch.setenv("MY_OWN", "2")
    script = 'test -z "$DROPPED" && test "$MY_OWN" = 2 && test "$ADDED" = 3 && exit 7'
    assert starting(tmp_path, script, drop=["DROPPED"], set={"ADDED": "3"})[0] == 7


def test_no_folder_for_records_starts_nothing(tmp_path: Path) -> None:
    document = a_document(tmp_path, home=str(tmp_path / "nowhere"))
    assert fast.start(document, {}, lambda *_: True) is None


def test_words_that_no_process_can_take_go_the_long_way(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    words = ["--", "x"]
    name = fast.key(words, environ)
    fast.keep(a_document(tmp_path, key=name, argv=["/none/such", "", "", ""]), environ)
    assert fast.attempt(words, environ, lambda *_: True) is None
    assert fast.attempt(["other"], environ, lambda *_: True) is None
