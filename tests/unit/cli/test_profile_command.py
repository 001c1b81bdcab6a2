"""`mpigraft profile --show` and `mpigraft import` of profiles: one door for all kinds."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.cli.main import run_command
from mpigraft.report.profile.page import render_profile_page
from mpigraft.trace import render_profile
from tests.builders.messages import matches, shows
from tests.builders.profiles import a_profile

DATA = Path(__file__).resolve().parents[2] / "data/profiles"
MPIP, IPM = DATA / "driver.mpiP", DATA / "ipm2.txt"
Captured = pytest.CaptureFixture[str]


def run(*words: object) -> int:
    return run_command([str(word) for word in words])


@pytest.mark.parametrize("words", [("profile", "--show"), ("import",)])
def test_a_report_is_shown_by_either_command(words: tuple[str, ...], capsys: Captured) -> None:
    assert run(*words, MPIP) == 0
    shown = capsys.readouterr().out
    assert shows(shown, "driver", "20.0 s", "50.0 % MPI", "40.0 % Allreduce", "10.0 % Irecv")
    assert run(*words, MPIP, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["profile"]["source"] == "mpiP 3.4.1"


def test_a_profile_is_one_screen(tmp_path: Path, capsys: Captured) -> None:
    kept = tmp_path / "kept.json"
    kept.write_text(render_profile(a_profile(4)))
    assert run("profile", "--show", kept) == 0
    lines = capsys.readouterr().out.splitlines()
    assert " % MPI" in lines[0]
    assert len(lines) <= 30
    assert not shows(lines[:-1], "sizes of messages")
    assert shows(lines[-1], "--full", "sizes of messages", "pairs of ranks")
    assert run("profile", "--show", kept, "--full") == 0
    full = capsys.readouterr().out.splitlines()
    assert full[0] == lines[0]
    assert shows(full, "sizes of messages")


def test_several_reports_follow_one_another(capsys: Captured) -> None:
    assert run("import", MPIP, IPM) == 0
    shown = capsys.readouterr().out
    assert [line.split(":")[0] for line in shown.splitlines() if " % MPI: " in line] == [
        "driver", "main3d.ex",
    ]  # fmt: skip
    assert run("import", MPIP, IPM, "--json") == 2


def test_results_and_profiles_are_not_mixed(tmp_path: Path, capsys: Captured) -> None:
    other = tmp_path / "osu.txt"
    other.write_text("# OSU MPI Latency Test\n")
    assert run("import", MPIP, other) == 2
    assert "two commands" in capsys.readouterr().err


def test_another_world_of_a_job_is_shown_by_its_number(tmp_path: Path, capsys: Captured) -> None:
    kept, again = tmp_path / "kept.json", tmp_path / "again.json"
    other = replace(a_profile(3), program="/opt/tool")
    kept.write_text(render_profile(replace(a_profile(4), others=(other,))))
    assert run("profile", "--show", kept, "--world", 1, "-o", again) == 0
    assert capsys.readouterr().out.startswith("/opt/tool: ")
    assert again.read_text() == render_profile(other)
    assert run("profile", "--show", kept, "--world", 2) == 2
    assert matches(capsys.readouterr().err, "profile-no-world", count=1, world=2)
    assert run("profile", "--world", 1, "--", "app") == 2
    assert matches(capsys.readouterr().err, "profile-world-and-run", world=1)


def test_a_profile_of_before_other_worlds_is_read(tmp_path: Path, capsys: Captured) -> None:
    document = json.loads(render_profile(a_profile(4)))
    assert document["profile"].pop("others") == []
    (tmp_path / "kept.json").write_text(json.dumps(document))
    assert run("profile", "--show", tmp_path / "kept.json") == 0


def test_show_writes_what_was_asked(tmp_path: Path, capsys: Captured) -> None:
    kept, page, again = (tmp_path / name for name in ("a b.json", "a.html", "c.json"))
    kept.write_text(render_profile(a_profile(4)))
    assert run("profile", "--show", kept, "-o", again, "--html", page, "--top", 2) == 0
    assert again.read_text() == kept.read_text()
    assert page.read_text() == render_profile_page(a_profile(4))
    assert shows(capsys.readouterr().out, "routines", "2 of 6")
    assert run("profile", "--show", kept, "-o", tmp_path / "none/c.json") == 3


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), "profile-nothing"),
        (("--show", MPIP, "--", "./app"), "profile-show-and-run"),
        (("--json", "--", "./app"), "profile-json-mixed"),
        (("--show", "no such file"), "profile-unreadable"),
        (("--show", DATA), "profile-unreadable"),
        (("--show", DATA / "README.md"), "profile-foreign"),
    ],
)
def test_what_cannot_be_is_refused(words: tuple[object, ...], code: str, capsys: Captured) -> None:
    assert run("profile", *words) == 2
    assert f"[{code}]" in capsys.readouterr().err


def test_profiles_are_shown_one_by_one_and_not_compared(tmp_path: Path, capsys: Captured) -> None:
    kept = [tmp_path / "a.json", tmp_path / "b.json"]
    for path in kept:
        path.write_text(render_profile(a_profile(4)))
    assert run("profile", "--show", kept[0], "--show", kept[1]) == 2
    assert matches(capsys.readouterr().err, "profile-show-one")
    assert run("compare", *kept) == 2
    assert matches(capsys.readouterr().err, "compare-profiles", path=kept[0])
