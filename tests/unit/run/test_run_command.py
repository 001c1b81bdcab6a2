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

from mpigraft.core import cache
from mpigraft.evidence.files import config
from mpigraft.run.cached import start
from tests.builders.witness import a_document, a_rank, mapped, written

LIGHT = {
    "mpigraft",
    "mpigraft.core",
    "mpigraft.core.lazy_exports",
    "mpigraft.core.cpuset",
    "mpigraft.core.fingerprint",
    "mpigraft.core.lease",
    "mpigraft.core.process",
    "mpigraft.run",
    "mpigraft.run.cached",
    "mpigraft.run.foreground",
    "mpigraft.run.cached.start",
    "mpigraft.run.cached.world",
    "mpigraft.run.scratch",
    "mpigraft.core.process.stdin",
    "mpigraft.core.shared_memory",
}
HEAVY = {"dataclasses", "subprocess", "typing", "pathlib", "tempfile", "typer", "inspect"}


# ------------------------------------------------------------------ keys and documents


def test_the_short_way_imports_next_to_nothing() -> None:
    program = (
        f"import sys; sys.path.insert(0, {source()!r}); before = set(sys.modules); "
        "import mpigraft.run.cached.start; print(*sorted(set(sys.modules) - before))"
    )
    words = [sys.executable, "-S", "-E", "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {name for name in loaded if name.startswith("mpigraft")} == LIGHT
    assert not loaded & HEAVY


def source() -> str:
    return str(Path(start.__file__).parents[3])


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
            assert start.folder(os.environ) == str(cache.folders().cache / "run")


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("PATH", True), ("LD_LIBRARY_PATH", True), ("OMPI_MCA_pml", True), ("TMPDIR", True),
        ("MPIGRAFT_SITE", True), ("FI_PROVIDER", True), ("OMP_NUM_THREADS", True),
        ("PMI_RANK", True), ("PYTHONUSERBASE", True), ("OLDPWD", False),
        ("SSH_CLIENT", False), ("SLURM_JOB_ID", False),
    ],
)  # fmt: skip
def test_what_decides_is_in_the_key(name: str, counts: bool) -> None:
    words = ["--", "./app"]
    assert (start.start_key(words, {}) != start.start_key(words, {name: "x"})) is counts
    assert (start.start_key(words, {name: "x"}) != start.start_key(words, {name: "y"})) is counts


@pytest.mark.parametrize("begin", config.STEERING)
def test_the_value_of_what_steers_an_mpi_is_in_the_key(begin: str) -> None:
    one, two = ({f"{begin}X": value} for value in "xy")
    assert start.start_key([], one) != start.start_key([], two)


def test_of_a_users_own_variable_the_name_decides_and_the_value_passes() -> None:
    assert (
        start.start_key([], {"MY_DATA": "x"})
        == start.start_key([], {"MY_DATA": "y"})
        != start.start_key([], {})
    )


@given(st.lists(st.text(max_size=4), max_size=4), st.lists(st.text(max_size=4), max_size=4))
def test_other_words_are_another_job(one: list[str], two: list[str]) -> None:
    assert (start.start_key(one, {}) == start.start_key(two, {})) is (one == two)


def test_another_folder_is_another_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = start.start_key([], {})
    monkeypatch.chdir(tmp_path)
    assert start.start_key([], {}) != before


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"MPIGRAFT_HOME": str(tmp_path / "home")}


def test_what_is_kept_comes_back_until_an_input_changes(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    document = a_document(tmp_path)
    start.keep_start(document, environ)
    assert start.kept("k", environ) == document
    assert start.kept("other", environ) is None
    appeared = Path(document["home"]) / "x1.conf"
    appeared.touch()
    assert start.kept("k", environ) is None
    appeared.unlink()
    assert start.kept("k", environ) == document
    (tmp_path / "libmpi.so.40").write_bytes(b"another")
    assert start.kept("k", environ) is None


def test_a_file_that_was_not_there_is_an_input_too(tmp_path: Path, environ: dict[str, str]) -> None:
    profile = tmp_path / "site.toml"
    start.keep_start(a_document(tmp_path, stamps=[[str(profile), 0, 0, 0, 0]]), environ)
    assert start.kept("k", environ) is not None
    profile.touch()
    assert start.kept("k", environ) is None


@pytest.mark.parametrize("how", ["writable", "link", "fifo", "folder"])
def test_what_another_may_have_written_is_not_read(
    tmp_path: Path, environ: dict[str, str], how: str
) -> None:
    start.keep_start(a_document(tmp_path), environ)
    place = Path(start.folder(environ)) / "k.json"
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
    assert start.kept("k", environ) is None


def documents_of(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(["stamps", "copies", "listed", "x"]), inner, max_size=3)


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
    place = Path(start.folder(environ))
    place.mkdir(parents=True, exist_ok=True)
    (place / "k.json").write_bytes(data)
    (place / "k.json").chmod(0o600)
    found = start.kept("k", environ)
    assert found is None or not found["stamps"]


@pytest.mark.parametrize("part", sorted(start.PARTS))
def test_a_document_without_one_of_its_parts_is_none(part: str, tmp_path: Path) -> None:
    environ = {"MPIGRAFT_HOME": str(tmp_path / "home")}
    whole = a_document(tmp_path)
    start.keep_start(whole, environ)
    assert start.kept(whole["key"], environ) == whole
    start.keep_start({name: value for name, value in whole.items() if name != part}, environ)
    assert start.kept(whole["key"], environ) is None


def test_a_folder_that_cannot_be_written_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    start.keep_start(a_document(tmp_path), {"MPIGRAFT_HOME": str(tmp_path / "home")})


# ------------------------------------------------------------------ codes


def starting(
    tmp_path: Path, script: str, *, wrong: bool = True, **changes: Any
) -> tuple[int | None, bool]:
    """(exit code, whether the full judgement was asked) of a document whose program is `script`."""
    asked, heard = [], []

    def judge(key: str, folder: str, failed: int) -> bool:
        asked.append((key, Path(folder).is_dir()))
        heard.append(failed)
        return wrong

    document = a_document(tmp_path, argv=["/bin/sh", "-c", script, "PID"], **changes)
    code = start.start_job(document, dict(os.environ), judge)
    assert list(Path(document["home"]).iterdir()) == []
    assert asked in ([], [("k", True)])
    assert heard in ([], [0 if code in (0, 5) else code])
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


@pytest.mark.parametrize(("code", "asked"), [(3, True), (255, True), (130, False), (143, False)])
def test_of_several_nodes_a_failed_start_is_explained(
    tmp_path: Path, code: int, asked: bool
) -> None:
    """Unless somebody ended it: that is known."""
    assert starting(tmp_path, f"exit {code}", nodes=2) == (code, asked)


def test_without_proof_nothing_is_judged(tmp_path: Path) -> None:
    assert starting(tmp_path, "exit 0", proof=False) == (0, False)


def a_whole_job(tmp_path: Path, code: int) -> start.Document:
    """Its one rank has told that all is right, and then it ends with that code."""
    document = a_document(tmp_path)
    written(tmp_path, a_rank(size=1, libraries=mapped("right", Path(document["libmpi"][0]))))
    script = f"cp {tmp_path}/*.ranks {document['home']}/{start.RECORDS}/; exit {code}"
    return {**document, "argv": ["/bin/sh", "-c", script, "PID"]}


@pytest.mark.parametrize(("code", "asked"), [(3, 0), (137, 1), (9, 1), (255, 1)])
def test_a_rank_that_was_killed_has_its_cause_looked_for(
    tmp_path: Path, code: int, asked: int
) -> None:
    """Though all was right before; what ranks wrote is shown after it."""
    heard: list[object] = []

    def judge(key: str, _: str, failed: int) -> bool:
        heard.append((key, failed))
        return True

    def collect(folder: str, ended: int) -> None:
        heard.append((len(list(Path(folder).glob("*.ranks"))), ended))

    whole = a_whole_job(tmp_path, code)
    assert start.start_job(whole, dict(os.environ), judge, collect) == code
    assert heard == [("k", code)] * asked + [(1, code)]


def test_a_job_that_failed_by_itself_is_judged_as_such(tmp_path: Path) -> None:
    """Of its two ranks one had come far enough to leave a record."""
    document = a_document(tmp_path)
    written(tmp_path, a_rank(size=2, libraries=mapped("right", Path(document["libmpi"][0]))))
    script = f"cp {tmp_path}/*.ranks {document['home']}/{start.RECORDS}/; exit 3"
    assert starting(tmp_path, script, ranks=2) == (3, True)


def test_a_wrong_world_ends_what_would_go_on(tmp_path: Path) -> None:
    document = a_document(tmp_path)
    right = mapped("right", Path(document["libmpi"][0]))
    written(tmp_path, a_rank(size=9, libraries=right))
    script = f"cp {tmp_path}/*.ranks {document['home']}/{start.RECORDS}/; exec sleep 60"
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
    assert start.start_job(document, {}, lambda *_: True) is None


def test_words_that_no_process_can_take_go_the_long_way(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    words = ["--", "x"]
    name = start.start_key(words, environ)
    start.keep_start(a_document(tmp_path, key=name, argv=["/none/such", "", "", ""]), environ)
    assert start.start_kept(words, environ, lambda *_: True) is None
    assert start.start_kept(["other"], environ, lambda *_: True) is None


def entered(tmp_path: Path, libmpi: Path) -> str:
    """A script's line that leaves the note of a process about to enter MPI_Init of a library."""
    seen = libmpi.stat()
    libraries = [[str(libmpi), seen.st_dev, seen.st_ino]]
    (tmp_path / "n0-1.entered").write_text(f"\n{json.dumps({'id': '1', 'libraries': libraries})}\n")
    home = a_document(tmp_path)["home"]
    return f"cp {tmp_path}/*.entered {home}/{start.RECORDS}/"


def test_a_job_that_failed_inside_of_mpi_init_is_explained(tmp_path: Path) -> None:
    """It ended with nothing but what its MPI printed."""
    right = Path(a_document(tmp_path)["libmpi"][0])
    assert starting(tmp_path, f"{entered(tmp_path, right)}; exit 3") == (3, True)
    assert starting(tmp_path, "exit 3") == (3, False)


def test_a_job_that_hangs_in_the_mpi_init_of_another_libmpi_is_ended(tmp_path: Path) -> None:
    wrong = tmp_path / "other" / "libmpi.so.40"
    wrong.parent.mkdir()
    wrong.touch()
    assert starting(tmp_path, f"{entered(tmp_path, wrong)}; exec sleep 60") == (5, True)


def test_a_job_that_takes_its_time_in_the_right_one_is_left_alone(tmp_path: Path) -> None:
    right = Path(a_document(tmp_path)["libmpi"][0])
    assert starting(tmp_path, f"{entered(tmp_path, right)}; sleep 0.3; exit 3") == (3, True)
