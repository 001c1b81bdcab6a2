"""What `undo --prune` keeps: what has a lease, what is mapped, what others may have mapped."""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from mpigraft.core import lease
from mpigraft.core.messages import message_of
from mpigraft.core.model import Finding
from mpigraft.core.storage import shared_type
from mpigraft.graft.stack.generations import pruning
from mpigraft.graft.stack.generations import switching as generations
from mpigraft.graft.stack.generations.pruning import prune
from tests.builders.messages import matches, shows
from tests.builders.overrides import a_plan, a_slot, injected, store

DAY_S = 86400
OTHER = 65534  # the number of another user
MAPS = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); print(flush=True); input()"


@pytest.fixture(name="two")
def two_generations(site: Path, libraries: tuple[Path, Path]) -> Path:
    """A site with generation 2 on, and 1 off."""
    for key in ("one", "two"):
        generations.switch_on(a_plan(site, libraries, key=key))
    return site


@pytest.fixture
def public() -> Iterator[Path]:
    """A site where every user may come."""
    with tempfile.TemporaryDirectory(dir="/tmp") as top:
        Path(top).chmod(0o755)
        site = Path(top) / "site"
        site.mkdir()
        (Path(top) / "host_injections").symlink_to(site)
        yield site


def codes(kept: tuple[tuple[int, Finding], ...]) -> dict[int, str]:
    return {number: finding.code for number, finding in kept}


@contextmanager
def mapping(library: Path, user: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """Have a process that maps a library, of a user's."""
    words = [sys.executable if user is None else "/usr/bin/python3", "-c", MAPS, str(library)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, user=user, group=user
    ) as process:
        assert process.stdout
        assert process.stdout.readline()
        yield process
        process.kill()


def as_user(user: int, work: Callable[[], Any]) -> Any:
    """Do work as another user; give what it gives."""
    answer, question = get_context("fork").Pipe(duplex=False)

    def child() -> None:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
        question.send(work())

    process = get_context("fork").Process(target=child)
    process.start()
    process.join()
    assert process.exitcode == 0
    return answer.recv()


def test_what_a_process_has_mapped_stays(site: Path, libraries: tuple[Path, Path]) -> None:
    generations.switch_on(a_plan(site, libraries))
    with mapping(injected(site)) as process:
        generations.switch_on(a_plan(site, libraries, key="two"))
        removed, kept = prune(a_slot(site), 0)
        assert (removed, codes(kept)) == ((), {1: "prune-mapped"})
        assert str(process.pid) in kept[0][1].message
    assert prune(a_slot(site), 0) == ((1,), ())


@pytest.mark.root
def test_what_another_user_may_have_mapped_stays_for_its_days(
    libraries: tuple[Path, Path], public: Path
) -> None:
    """The owner of the override is no root, and may not read what the other's process maps."""
    for code in ("prune-recent", "prune-unseen"):
        message_of(code)  # its text may lie where nobody else may read
    owner, site = pwd.getpwnam("daemon").pw_uid, public
    off = store(site) / "off-1"

    def by_owner(*keep: float) -> tuple[tuple[int, ...], dict[int, str], list[str]]:
        notices: list[str] = []

        def notice(finding: Finding) -> None:
            assert (store(site) / "generations/1").is_dir()
            notices.append(finding.message)

        removed, kept = prune(a_slot(site), keep[0] if keep else None, notice)
        return removed, codes(kept), notices

    generations.switch_on(a_plan(site, libraries))
    with mapping(injected(site), OTHER):
        generations.switch_on(a_plan(site, libraries, key="two"))
        for path in (site, *site.rglob("*")):
            os.chown(path, owner, owner, follow_symlinks=False)
        assert as_user(owner, by_owner) == ((), {1: "prune-recent"}, [])
        os.utime(off, (time.time() - 13 * DAY_S,) * 2)
        assert as_user(owner, by_owner) == ((), {1: "prune-recent"}, [])
        assert as_user(owner, lambda: by_owner(13.5)) == ((), {1: "prune-recent"}, [])
        removed, _, notices = as_user(owner, lambda: by_owner(0))
        assert removed == (1,)
        assert shows(notices[0], "not be read", "generations", "1", "removed")


@pytest.mark.root
def test_after_its_days_it_goes(two: Path) -> None:
    os.utime(store(two) / "off-1", (time.time() - 15 * DAY_S,) * 2)
    assert prune(a_slot(two))[0] == (1,)
    assert not (store(two) / "off-1").exists()


def test_without_a_note_the_last_switch_counts(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be of an earlier version, or of a process that was killed."""
    monkeypatch.setattr("mpigraft.graft.stack.generations.pruning.Path.exists", lambda _: False)
    (store(two) / "off-1").unlink()
    folder = store(two) / "generations/1"
    os.utime(folder, (time.time() - 30 * DAY_S,) * 2)
    removed, kept = prune(a_slot(two))
    assert (removed, codes(kept)) == ((), {1: "prune-recent"})
    assert "hidden" in kept[0][1].message


MOUNTS = """\
22 1 253:0 / / rw - ext4 /dev/vda rw
30 22 0:40 / /home rw,relatime shared:5 - nfs4 server:/home rw,vers=4.2
31 22 0:41 / /site\\040tree rw - lustre 10.0.0.1@o2ib:/fs rw
32 31 0:42 / /site\\040tree/local rw - xfs /dev/sdb rw
33 22 0:43 / /net rw - autofs systemd-1 rw
34 22 0:44 / /net rw - fuse.glusterfs volume rw
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/opt/x", ""),
        ("/home/x", "nfs4"),
        ("/homes/x", ""),
        ("/site tree/x", "lustre"),
        ("/site tree/local/x", ""),
        ("/net/x", "fuse.glusterfs"),
    ],
)
def test_a_file_system_that_other_hosts_share(tmp_path: Path, folder: str, kind: str) -> None:
    (tmp_path / "mountinfo").write_text(MOUNTS)
    assert shared_type(Path(folder), tmp_path / "mountinfo") == kind


def test_on_a_shared_file_system_what_was_switched_off_stays_for_its_days(
    two: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All processes of this host can be read, and none of another's."""
    monkeypatch.setattr(pruning, "shared_type", lambda *_: "nfs4")
    monkeypatch.setattr(pruning, "is_no_job", lambda _: True)
    removed, kept = prune(a_slot(two))
    assert (removed, codes(kept)) == ((), {1: "prune-recent"})
    assert matches(kept[0][1], "prune-recent", blind="nfs4")
    os.utime(store(two) / "off-1", (time.time() - 15 * DAY_S,) * 2)
    assert prune(a_slot(two))[0] == (1,)


# ------------------------------------------------------------------ leases


def test_a_lease_keeps_its_generation_until_its_job_is_over(two: Path) -> None:
    code = (
        "import os, sys; from mpigraft.core.lease import write_lease;"
        "os.umask(0o077); print(write_lease((sys.argv[1], 1), os.environ), flush=True); input()"
    )
    words = [sys.executable, "-c", code, str(store(two) / "leases")]
    environ = {**os.environ, "SLURM_JOB_ID": "4711"}
    with subprocess.Popen(words, stdin=-1, stdout=-1, env=environ, text=True) as job:
        assert job.stdout
        path = Path(job.stdout.readline().strip())
        assert path.stat().st_mode & 0o044 == 0o044
        removed, kept = prune(a_slot(two), 0)
        assert (removed, codes(kept)) == ((), {1: "prune-leased"})
        assert "job 4711 of " in kept[0][1].message
        job.send_signal(signal.SIGKILL)
        job.wait()
        assert prune(a_slot(two), 0) == ((1,), ())
    assert not path.exists()


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ({"place": ["another boot", "pid:[1]"]}, True),  # another host, or a container
        ({"place": ["another boot", "pid:[1]"], "expires": 1.0}, False),
        ({"process": 1 << 80}, True),
        ({"started": 1}, False),  # another process has its number
        ({"expires": "soon"}, True),
        ({"expires": 1e300}, True),
    ],
    ids=["elsewhere", "expired", "no-process-number", "other-process", "not-readable", "for-ever"],
)
def test_a_lease_counts_until(two: Path, changes: dict[str, Any], kept: bool) -> None:
    path = Path(lease.write_lease((str(store(two) / "leases"), 1), {}))
    value = json.loads(path.read_text()) | {"process": os.getppid()}
    value["started"] = lease.process_state(os.getppid())[1]
    path.write_text(json.dumps(value | changes))
    assert codes(prune(a_slot(two), 0)[1]) == ({1: "prune-leased"} if kept else {})


def test_the_end_of_a_job_is_the_schedulers(two: Path) -> None:
    folder, now = str(store(two) / "leases"), time.time()
    lasts = []
    for environ in ({}, {"SLURM_JOB_END_TIME": str(int(now) + 100)}, {"SLURM_JOB_END_TIME": "x"}):
        path = lease.write_lease((folder, 1), environ)
        lasts.append(round((lease.read_lease(path)["expires"] - now) / DAY_S))
    assert lasts == [14, 1, 14]
    assert lease.write_lease((f"{folder}/absent", 1), {}) == ""


@pytest.mark.root
def test_every_user_may_leave_a_lease_unless_the_owner_shuts_the_folder(
    libraries: tuple[Path, Path], public: Path
) -> None:
    generations.switch_on(a_plan(public, libraries))
    folder = str(store(public) / "leases")
    assert as_user(OTHER, lambda: lease.write_lease((folder, 1), {}))
    Path(folder).chmod(0o755)
    assert not as_user(OTHER, lambda: lease.write_lease((folder, 1), {}))
