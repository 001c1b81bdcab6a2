"""The cache by content: right when it answers, silent when it cannot."""

import hashlib
import json
import os
import threading
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpigraft.core import cache
from mpigraft.core.errors import MissingError


@pytest.fixture(autouse=True)
def _nothing_cached(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_digests", {})


def old(path: Path, content: bytes) -> Path:
    """A file whose timestamps are old enough to be trusted, as far as a user can set them."""
    path.write_bytes(content)
    os.utime(path, (1_000_000_000, 1_000_000_000))
    return path


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file counts as old: ctime cannot be set back, so the clock goes forward."""
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 3600)


def test_folders_follow_mpigraft_home_and_then_xdg(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cache.folders() == cache.Folders(home, home / "cache")
    monkeypatch.delenv("MPIGRAFT_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", "/d")
    monkeypatch.setenv("XDG_CACHE_HOME", "/c")
    assert cache.folders() == cache.Folders(Path("/d/mpigraft"), Path("/c/mpigraft"))
    monkeypatch.setenv("HOME", "/h")
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.folders() == cache.Folders(
        Path("/h/.local/share/mpigraft"), Path("/h/.cache/mpigraft")
    )


def test_a_relative_home_is_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPIGRAFT_HOME", "here")
    assert cache.folders().data == tmp_path / "here"


def test_no_home_folder_says_what_to_do_and_the_cache_stays_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("MPIGRAFT_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nowhere)
    with pytest.raises(MissingError, match="MPIGRAFT_HOME"):
        cache.folders()
    cache.put("kind", "key", 1)
    assert cache.get("kind", "key") is None


@pytest.mark.parametrize("document", [{"a": [1, None, "ü"]}, [], 0, "", {"NUL": "\0"}])
def test_what_was_put_is_what_is_got(document: object) -> None:
    cache.put("kind", "a key: with/../slashes", document)
    assert cache.get("kind", "a key: with/../slashes") == document
    assert cache.get("other", "a key: with/../slashes") is None
    assert cache.get("kind", "another") is None


def test_a_small_document_takes_little_memory() -> None:
    cache.put("test", "key", [1])
    tracemalloc.start()
    try:
        assert cache.get("test", "key") == [1]
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_key_of_undecodable_bytes_is_a_key() -> None:
    key = os.fsdecode(b"/lib/\xff\xfe.so")
    cache.put("kind", key, "found")
    assert cache.get("kind", key) == "found"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=st.one_of(st.binary(max_size=80), st.sampled_from([b"[" * 200_000, b"\xff", b"1"])))
def test_a_damaged_cache_file_is_no_cache(home: Path, damage: bytes) -> None:
    cache.put("kind", "key", "document")
    (file,) = (home / "cache" / "kind").iterdir()
    file.write_bytes(damage)
    assert cache.get("kind", "key") is None


def test_the_document_of_another_key_is_not_taken(home: Path) -> None:
    cache.put("kind", "key", "document")
    (file,) = (home / "cache" / "kind").iterdir()
    file.write_text(json.dumps({"key": "other", "document": "document"}))
    assert cache.get("kind", "key") is None


def test_a_cache_that_cannot_be_written_is_no_cache(home: Path) -> None:
    home.write_text("a file where the folder should be")
    cache.put("kind", "key", "document")
    assert cache.get("kind", "key") is None


def test_a_failed_write_leaves_nothing_behind(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(number: int, mode: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fchmod", full)
    cache.put("kind", "key", "document")
    assert list((home / "cache" / "kind").iterdir()) == []


def test_a_document_that_is_not_json_is_the_callers_mistake() -> None:
    with pytest.raises(TypeError):
        cache.put("kind", "key", object())
    with pytest.raises(ValueError, match="JSON"):
        cache.put("kind", "key", float("nan"))


def test_many_writers_never_show_half_a_document() -> None:
    documents = [{"n": n, "fill": "x" * 20_000} for n in range(8)]
    seen = []

    def write(document: object) -> None:
        for _ in range(20):
            cache.put("kind", "key", document)
            seen.append(cache.get("kind", "key"))

    threads = [threading.Thread(target=write, args=(d,)) for d in documents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 160
    assert all(s in documents for s in seen)


def test_file_digest_is_sha256_of_the_content(tmp_path: Path) -> None:
    path = old(tmp_path / "lib.so", b"content" * 100_000)
    expected = hashlib.sha256(b"content" * 100_000).hexdigest()
    assert cache.file_digest(path) == expected
    assert cache.file_digest(str(path)) == expected


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_digests", {})


def test_a_remembered_digest_saves_reading_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settled: None
) -> None:
    path = old(tmp_path / "lib.so", b"one")
    first = cache.file_digest(path)
    monkeypatch.setattr(hashlib, "file_digest", None)  # reading again would fail
    assert cache.file_digest(path) == first  # from this process
    forget(monkeypatch)
    assert cache.file_digest(path) == first  # from the cache folder


def test_a_changed_file_with_its_old_size_and_mtime_is_read_again(
    tmp_path: Path, settled: None
) -> None:
    path = old(tmp_path / "lib.so", b"one")
    first = cache.file_digest(path)
    time.sleep(0.02)  # a tick of the file system's clock
    assert cache.file_digest(old(path, b"two")) != first


def test_a_fresh_file_is_not_remembered(tmp_path: Path, home: Path) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(b"one")
    cache.file_digest(path)
    assert cache._digests == {}
    assert not (home / "cache").exists()


def test_a_damaged_memory_of_a_digest_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settled: None
) -> None:
    path = old(tmp_path / "lib.so", b"one")
    first = cache.file_digest(path)
    forget(monkeypatch)
    monkeypatch.setattr(cache, "get", lambda *_: "short")
    assert cache.file_digest(path) == first


def test_only_regular_files_have_a_digest(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("fifo", "loop", ".", "absent"):
        with pytest.raises(OSError, match=r"."):
            cache.file_digest(tmp_path / name)
    with pytest.raises(OSError, match="regular"):
        cache.file_digest("/dev/null")
