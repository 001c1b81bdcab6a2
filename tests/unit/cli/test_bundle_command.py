"""`mpigraft bundle` on real stores, through the command line: what is in the archive, and what must
never be."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.model import Measured
from mpigraft.core.serialize import canonical
from mpigraft.report import Across
from mpigraft.report.bundle.archive import PART, safe_name, write_archive
from mpigraft.report.redaction import redactor, users_of
from mpigraft.store import Store
from tests.builders.commands import Run
from tests.builders.messages import shows
from tests.builders.overtime import MACHINE, MPICH, OPENMPI, campaign, keep

PLAN = canonical({
    "wish": {"quick": True, "rounds": 6, "max_size": 65536, "budget_ms": 8.0},
    "benchmarks": ["native:latency", "native:alltoallv,counts=sparse"], "layouts": ["2x4"],
})  # fmt: skip
HOME = "/home/" + "zoe42"
CREATED = "2026-01-01T03:04:05+00:00"


def with_home(side: Measured) -> Measured:
    """An MPI in somebody's home, as most users have it."""
    records = []
    for record in side.configurations:
        document = json.loads(record.provenance)
        document["libmpi"] = f"{HOME}/mpi/lib/libmpi.so.40"
        row = {"name": "LD_LIBRARY_PATH", "value": f"{HOME}/mpi/lib:/x y", "scope": "rank",
               "source": "mpi"}  # fmt: skip
        document["environment"].append(row)
        records.append(replace(record, provenance=json.dumps(document)))
    return replace(side, configurations=tuple(records))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    hosts = ("nid001.site.org", "nid002.site.org")
    machine = {**MACHINE, "hostname": "nid001.site.org"}
    sides = [campaign(n, plan=PLAN, hosts=hosts, machine=machine, rounds=6) for n in (1, 2)]
    return keep(Store(tmp_path / "store"), *map(with_home, sides))


def unpacked(path: Path, to: Path) -> Path:
    with tarfile.open(path) as tar:
        tar.extractall(to, filter="data")
    (folder,) = to.iterdir()
    return folder


@pytest.mark.usefixtures("store")
def test_a_bundle_is_whole_and_its_checksums_are_right(run: Run, tmp_path: Path) -> None:
    assert run("bundle", "night2", "--with", "night1", "-o", "b.tar.gz").code == 0
    folder = unpacked(tmp_path / "b.tar.gz", tmp_path / "x")
    assert folder.name == "mpigraft-night2-00000002"
    checked = subprocess.run(
        ["sha256sum", "-c", "--strict", "SHA256SUMS"], cwd=folder, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stderr
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    listed = {line.split("  ")[1] for line in (folder / "SHA256SUMS").read_text().splitlines()}
    assert names == listed | {"SHA256SUMS"}
    assert names >= {
        "README.md", "versions.json", "inputs/plan.json", "results/values.csv",
        "results/campaign.json", "analysis/compare.json", "analysis/report.html",
        "analysis/across.json", "programs/bench/bench.c", "scripts/01-mpich-5.0.2-ucx-2x4.sh",
        "evidence/01-mpich-5.0.2-ucx-1x2.json",
    }  # fmt: skip
    assert json.loads((folder / "analysis/across.json").read_text())["old"]["name"] == "night1"


@pytest.mark.usefixtures("store")
def test_the_same_campaign_gives_the_same_bytes(run: Run, tmp_path: Path) -> None:
    run("bundle", "night1", "-o", "a.tar.gz")
    run("bundle", "night1", "-o", "b.tar.gz")
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()


def test_nobodys_home_secret_or_host_is_in_it(
    run: Run, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del store
    monkeypatch.setenv("SITE_TOKEN", "openmpi v5.0.11")  # which the store has in its provenance
    run("bundle", "night1", "-o", "b.tar.gz", "--no-hosts")
    data = gzip.decompress((tmp_path / "b.tar.gz").read_bytes())
    for word in (b"zoe42", b"nid001", b"nid002", b"site.org", b"openmpi v5.0.11"):
        assert word not in data
    assert b"node1" in data
    run("bundle", "night1", "-o", "c.tar.gz")
    assert b"nid001" in gzip.decompress((tmp_path / "c.tar.gz").read_bytes())


def test_hosts_are_struck_out_in_every_form_but_not_in_the_library_of_a_page() -> None:
    strike = redactor(["vm", "nid001.a.org", "nid010.a.org"])
    assert strike(b"vm, (vm) nid[001,010] nid001 nid010.a.org x-vm vms a.org") == (
        b"node3, (node3) nodes node1 node2 x-vm vms site"
    )
    page = b"<p>vm</p><script>c.vm = vm</script><script id='x'>vm</script>"
    assert strike(page) == b"<p>node3</p><script>c.vm = vm</script><script id='x'>node3</script>"
    assert strike(b"\xff\xfe vm") == b"\xff\xfe node3"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (r'"a\nzoe42: nid001 b"', r'"a\nuser1: node1 b"'),
        (rf'"x\n{HOME}/y"', r'"x\n~/y"'),
        (r'"to\nzoe.m@hpc.site.org."', r'"to\nname@mail."'),
        ("openmpi@5.0.11 mpich@4.0.2/ucx", "openmpi@5.0.11 mpich@4.0.2/ucx"),
        ("https://me:pass99@x.org/", "https://[struck out]@x.org/"),
        ("GITHUB_TOKEN=ghp_12345x y", "GITHUB_TOKEN=[struck out] y"),
        ('{"api_key": "ab12cd", "tokens": 12345}', '{"api_key": "[struck out]", "tokens": 12345}'),
        ("Authorization: Bearer abc.def", "Authorization: Bearer [struck out]"),
        ('p\\"w&word p"w&amp;word', '[struck out] p"w&amp;word'),
        ("zoe423 azoe42 zoe42-x", "zoe423 azoe42 zoe42-x"),
    ],
)
def test_names_addresses_and_secrets_are_struck_out(
    text: str, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_PASSWORD", 'p"w&word')
    assert redactor(["nid001"], ["zoe42"])(text.encode()).decode() == kept


def test_users_are_those_of_homes_but_no_word_of_the_results(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "al")
    side = Across.read(store, "night1")
    names = ("zoe42/x", "bob.k/y", "openmpi/mpi", "root", "latency")
    texts = ["/home/{} /Users/{} /home/{}".format(*names[:3]).encode()]
    texts += [f"/home/{name}".encode() for name in names[3:]]
    assert users_of(side, texts) == {"zoe42", "bob.k"}
    monkeypatch.setenv("LOGNAME", "carol")
    assert users_of(side, []) == {"carol"}


@pytest.mark.usefixtures("store")
def test_a_script_needs_no_mpigraft(run: Run, tmp_path: Path) -> None:
    """Against an MPI that prints what it was asked to start."""
    run("bundle", "night1", "-o", "b.tar.gz")
    folder = unpacked(tmp_path / "b.tar.gz", tmp_path / "x")
    prefix = tmp_path / "an mpi"
    (prefix / "bin").mkdir(parents=True)
    for name in ("mpiexec", "mpirun"):
        (prefix / "bin" / name).write_text('#!/bin/sh\necho "$LD_LIBRARY_PATH" "$@"\n')
    (prefix / "bin/mpicc").write_text('for last; do :; done\n: > "$last"\nchmod +x "$last"\n')
    for path in (prefix / "bin").iterdir():
        path.chmod(0o755)
    for script in sorted((folder / "scripts").iterdir()):
        assert "mpigraft " not in script.read_text().replace("campaign", "").split("\n", 3)[3]
        ran = subprocess.run(
            ["sh", str(script)], env={"PATH": "/usr/bin:/bin", "MPI_PREFIX": str(prefix)},
            cwd=tmp_path, capture_output=True, text=True,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        assert f"{prefix}/lib:/x y" in ran.stdout
        assert "-n 8" in ran.stdout
        assert shows(ran.stdout, "latency,alltoallv:counts=sparse --min 1 --budget 8")
        assert "--max 65536" in ran.stdout
    bare = subprocess.run(["sh", str(script)], env={"PATH": "/usr/bin"}, capture_output=True)
    assert bare.returncode == 2
    assert b"MPI_PREFIX" in bare.stderr


def test_names_of_a_store_never_leave_the_folder(run: Run, tmp_path: Path) -> None:
    hostile = {"k0": "../../etc/passwd", "k1": "$(touch x)`id`\n-rf /@1/\x1b[2J"}
    side = campaign(5, names=hostile, name="../../../up", plan=PLAN.replace("2x4", "2x4/../../e"))
    keep(Store(tmp_path / "store"), side)
    assert run("bundle", "-o", "b.tar.gz").code == 0
    with tarfile.open(tmp_path / "b.tar.gz") as tar:
        for member in tar.getmembers():
            assert member.isfile()
            assert all(PART.fullmatch(part) for part in member.name.split("/")), member.name
        scripts = [m for m in tar.getmembers() if m.name.endswith(".sh")]
        for member in scripts:
            handle = tar.extractfile(member)
            assert handle is not None
            text = handle.read().decode()
            assert subprocess.run(["sh", "-n"], input=text, text=True).returncode == 0
            code = [line for line in text.splitlines() if not line.startswith("#")]
            assert "touch x" not in "\n".join(code)
    assert shutil.which("x", path=str(tmp_path)) is None


@given(st.text())
def test_any_name_makes_a_part_of_a_path(text: str) -> None:
    assert PART.fullmatch(safe_name(text))


@pytest.mark.parametrize("name", ["../x", "/x", "a//b", "a/../b", ".hidden", "a\\b", "", "a b"])
def test_an_unsafe_name_is_an_error_and_leaves_nothing(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="unsafe name"):
        write_archive(tmp_path / "b.tar.gz", "folder", {name: b""}, CREATED)
    assert list(tmp_path.iterdir()) == []


def test_an_archive_that_cannot_be_written_leaves_nothing(
    run: Run, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del store

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    before = set(tmp_path.iterdir())
    assert run("bundle", "-o", "no/such/b.tar.gz").code == 2
    monkeypatch.setattr(tarfile.TarFile, "addfile", full)
    ended = run("bundle", "-o", "b.tar.gz")
    assert ended.code == 3
    assert "bundle-unwritable" in ended.err
    assert set(tmp_path.iterdir()) == before


@pytest.mark.usefixtures("store")
def test_a_name_of_another_kind_of_archive_is_refused(run: Run, tmp_path: Path) -> None:
    ended = run("bundle", "-o", "ticket.zip")
    assert (ended.code, shows(ended.err, "-o ticket.tar.gz")) == (2, True)
    assert not (tmp_path / "ticket.zip").exists()


WORDS = "[--mca][x][y z]a b unset"  # of the launcher, and two variables of a rank
RULES = "0 $(no shell)\n"


def with_setting(side: Measured) -> Measured:
    """The last configuration as an arm of a setting."""
    *others, record = side.configurations
    document = json.loads(record.provenance)
    document["setting"] = {
        "name": "ring", "plain": others[0].key, "variables": [["ON", "a b"], ["OFF", None]],
        "files": [["RULES", "0" * 64, RULES]], "launcher": ["--mca", "x", "y z"],
    }  # fmt: skip
    arm = replace(record, provenance=json.dumps(document))
    return replace(side, configurations=(*others, arm))


def test_a_script_of_a_setting_has_its_variables_file_and_launcher_options(
    run: Run, tmp_path: Path
) -> None:
    keep(Store(tmp_path / "store"), with_setting(campaign(1, plan=PLAN, rounds=6)))
    assert run("bundle", "night1", "-o", "b.tar.gz").code == 0
    folder = unpacked(tmp_path / "b.tar.gz", tmp_path / "x")
    (script,) = (s for s in folder.glob("scripts/*.sh") if "RULES" in s.read_text())
    bench, mpirun = tmp_path / "bench", tmp_path / "mpi/bin/mpirun"
    bench.write_text('#!/bin/sh\necho "$ON ${OFF-unset}"; cat "$RULES"\n')
    mpirun.parent.mkdir(parents=True)
    mpirun.write_text(
        '#!/bin/sh\nprintf "[%s]" "$1" "$2" "$3"\n'
        'while [ "$1" != env ]; do shift; done\nexec "$@"\n'
    )
    (mpirun.parent / "mpiexec").symlink_to(mpirun)
    for program in (bench, mpirun):
        program.chmod(0o755)
    environ = {"PATH": "/usr/bin:/bin", "BENCH": str(bench), "MPI_PREFIX": str(tmp_path / "mpi")}
    done = subprocess.run(
        ["sh", script], capture_output=True, text=True, env={**environ, "OFF": "1"}, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == [WORDS, RULES.strip()]


def test_an_import_has_no_scripts(run: Run, tmp_path: Path) -> None:
    keep(Store(tmp_path / "store"), campaign(6, plan="{}"))
    assert run("bundle", "-o", "b.tar.gz").code == 0
    data = io.BytesIO((tmp_path / "b.tar.gz").read_bytes())
    with tarfile.open(fileobj=data) as tar:
        names = tar.getnames()
    assert not any("/scripts/" in name or "/programs/" in name for name in names)


def test_labels_are_those_of_the_builders() -> None:
    assert safe_name(OPENMPI) == "openmpi-5.0.11-ob1-sm"
    assert safe_name(MPICH) == "mpich-5.0.2-ucx"
