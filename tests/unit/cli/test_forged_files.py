"""Files of results, profiles, records, campaigns and sites in which a field means harm, and what a
scheduler, a host or a holder of a lock says."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mpigraft.core.errors import MissingError
from mpigraft.core.lock import campaign_lock
from mpigraft.core.serialize import document
from mpigraft.trace import make_ladder
from tests.builders.forged import EVIL, check_printed, command, honest_store, leaves, planted
from tests.builders.profiles import a_profile
from tests.unit.trace.record.test_exchanges import an_exchange

DATA = Path(__file__).parents[2] / "data"
TERMINALS = pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
ONE_LINE = EVIL.replace("\n", "\x1b[1E")
TEXTS = {
    "osu": ("osu-7.4/mpich-bibw.out",),
    "imb": ("imb/*.out",),
    "reframe": ("reframe/osu_like.log", "reframe/fails.log", "reframe/old-format.log"),
    "profiles": ("profiles/*.txt", "profiles/*.mpiP", "profiles/mpi_profile.0"),
}


def mutants(text: str, step: int = 5) -> list[str]:
    """Evil at the end of a line, after its first word, and as a line; each line in some copy."""
    made = []
    for start in range(step):
        for how in range(3):
            lines = text.splitlines()
            for at in range(start, len(lines), step):
                first, space, rest = lines[at].partition(" ")
                lines[at] = (
                    lines[at] + ONE_LINE, f"{first}{ONE_LINE}{space}{rest}", f"{lines[at]}\n{EVIL}"
                )[how]  # fmt: skip
            made.append("\n".join(lines))
    return made


def write_mutants(kind: str, folder: Path) -> list[Path]:
    paths: list[Path] = []
    for pattern in TEXTS[kind]:
        for path in sorted(DATA.glob(pattern)):
            for text in mutants(path.read_text(errors="surrogateescape")):
                place = folder / f"{len(paths)}" / f"{EVIL}{path.name}"
                place.parent.mkdir(parents=True)
                place.write_text(text, errors="surrogateescape")
                paths.append(place)
    return paths


@TERMINALS
@pytest.mark.parametrize("kind", TEXTS)
def test_no_import_obeys_a_file(kind: str, terminal: bool, tmp_path: Path) -> None:
    store, folder = tmp_path / "store", tmp_path / kind
    assert write_mutants(kind, folder)
    for words in (("--configuration", "x"), ("--pattern", "{number}/{other}osu{benchmark}.{end}")):
        for more in ((), ("--dry-run", "--json")):
            ended = command("--store", store, "import", folder, *words, *more, terminal=terminal)
            assert ended.code in (0, 2), ended.err
    for line in ("results list", "results show", "compare", "compare --markdown", "export"):
        code = command("--store", store, *line.split(), terminal=terminal).code
        assert code == 0 or kind == "profiles", line


def test_no_import_obeys_an_export(tmp_path: Path) -> None:
    honest = honest_store(tmp_path / "store")
    ended = command("--store", honest.folder, "export", "00000001", "--format", "json")
    whole = json.loads(ended.out)
    stored = 0
    for number, place in enumerate(dict.fromkeys(leaves(whole))):
        path, store = tmp_path / f"{number}.json", tmp_path / f"store{number}"
        path.write_text(json.dumps(planted(whole, {place})))
        if command("--store", store, "import", path, "--edited").code == 0:
            stored += 1
            assert command("--store", store, "results", "show").code in (0, 6), place
    assert stored > 10


@TERMINALS
def test_no_command_obeys_a_profile(terminal: bool, tmp_path: Path) -> None:
    path, page = tmp_path / "profile.json", tmp_path / "page.html"
    whole = json.loads(document(profile=a_profile(4)))
    for place in dict.fromkeys(leaves(whole)):
        path.write_text(json.dumps(planted(whole, {place})))
        page.unlink(missing_ok=True)
        shown = ("profile", "--show", path)
        ended = command(*shown, "--html", page, "--sites", terminal=terminal)
        assert ended.code in (0, 2), place
        if page.exists():
            assert not re.search("<b onload|\x1b", page.read_text())
        if ended.code == 0 and not terminal:
            assert json.loads(command(*shown, "--json").out)["profile"]


@TERMINALS
def test_no_command_obeys_a_record(terminal: bool, tmp_path: Path) -> None:
    path = tmp_path / f"{EVIL}.record"
    first, head, body = make_ladder(an_exchange(random.Random(3), 4))[-1].data.split(b"\n", 2)
    whole = {**json.loads(head), "notes": ["note"]}
    for place in dict.fromkeys(leaves(whole)):
        changed = json.dumps(planted(whole, {place})).encode()
        path.write_bytes(b"\n".join((first, changed, body)))
        for words in (("analyse", path), ("replay", path, "--dry-run")):
            assert command(*words, terminal=terminal).code in (0, 2, 3), (place, words)
        if not terminal:
            ended = command("analyse", path, "--json")
            assert ended.code == 2 or json.loads(ended.out)


@TERMINALS
@pytest.mark.parametrize("text", [
    'name = "{evil}"', '"{evil}" = 1', 'mpi = ["{evil}"]', 'transport = ["{evil}"]',
    'suite = ["{evil}"]', 'baseline = "{evil}"', '[app."{evil}"]\ncommand = ["x"]',
    '[app.x]\n"{evil}" = 1', 'image = ["{evil}"]', 'env = ["{evil}=1"]', 'layout = ["{evil}"]',
    "{evil}", 'setting = ["{evil}"]', 'benchmark = ["{evil}"]', 'rounds = "{evil}"',
])  # fmt: skip
def test_no_command_obeys_a_campaign_file(text: str, terminal: bool, tmp_path: Path) -> None:
    path = tmp_path / f"{EVIL}.toml"
    for quoted in (json.dumps(EVIL)[1:-1], EVIL):
        path.write_text(text.replace("{evil}", quoted))
        for words in (("bench", "--dry-run", path), ("submit", "--dry-run", path)):
            assert command(*words, terminal=terminal).code in (0, 2, 3), words


@TERMINALS
@pytest.mark.parametrize("text", [
    '[run]\nmpi = "EVIL"', '["EVIL"]\nx = 1', '[run]\n"EVIL" = 1', '[run]\nbind = ["EVIL"]',
    '[run]\nenv = { "EVIL" = "EVIL" }', '[images]\n"EVIL" = "/x"', '[images]\nx = "EVIL"',
    '[policy]\nfixed = ["EVIL"]', '[run]\nengine = "EVIL"', '[run]\ntransport = "EVIL"', "EVIL",
    '[bench]\nosu = "EVIL"',
])  # fmt: skip
def test_no_command_obeys_a_site(
    text: str, terminal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"{EVIL}.toml"
    monkeypatch.setenv("MPIGRAFT_SITE", str(path))
    for quoted in (json.dumps(EVIL)[1:-1], EVIL):
        path.write_text(text.replace("EVIL", quoted))
        ended = command("run", "--dry-run", "-n", "1", "/bin/true", terminal=terminal)
        assert ended.code in (1, 2, 3), ended


@TERMINALS
def test_no_command_obeys_a_scheduler(
    terminal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = honest_store(tmp_path / "store").folder
    for said in (f"12|RUNNING{EVIL}|x", f"12|PENDING|{EVIL}", f"12|{EVIL}|{EVIL}", EVIL):
        for name in ("squeue", "sacct"):
            tool = tmp_path / "bin" / name
            tool.parent.mkdir(exist_ok=True)
            tool.write_text("#!/bin/sh\ncat <<'END'\n" + said + "\nEND\n")
            tool.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
        assert command("--store", store, "status", terminal=terminal).code == 0
        monkeypatch.setenv("SLURM_JOB_ID", "12")
        monkeypatch.setenv("SLURM_JOB_NODELIST", f"n[1-2],{ONE_LINE}")
        command("bench", "--dry-run", terminal=terminal)
        monkeypatch.delenv("SLURM_JOB_ID")


@TERMINALS
def test_no_command_obeys_a_host(terminal: bool, tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text(f"n1\n{ONE_LINE}\n")
    for words in (("--hosts", EVIL), ("--hosts", f"n1,{ONE_LINE}"), ("--hostfile", path)):
        assert command("bench", "--dry-run", *words, terminal=terminal).code in (0, 2, 3)


def test_no_message_obeys_the_holder_of_a_lock() -> None:
    name = f"\0mpigraft-test-{os.getpid()}"
    holds = (
        f"import socket, time; s = socket.socket(socket.AF_UNIX); s.bind({name!r}); s.listen(1)\n"
        "print('held', flush=True); time.sleep(60)"
    )
    words = [sys.executable, "-X", EVIL, "-c", holds]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout
            assert holder.stdout.readline() == b"held\n"
            with pytest.raises(MissingError) as refused, campaign_lock(name):
                pass
        finally:
            holder.kill()
    message = str(refused.value)
    assert "FORGED" in message
    check_printed(message)
