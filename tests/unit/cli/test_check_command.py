"""`mpigraft check` as a command: pages, documents, exit codes, machines described elsewhere."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import mpigraft
from mpigraft.cli.main import run_command
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import (
    CheckResult,
    Fit,
    Gpu,
    Level,
    Machine,
    MpiAbi,
    MpiInstall,
    NetDevice,
    Replace,
)
from mpigraft.core.serialize import document
from mpigraft.discovery import inventory
from mpigraft.graft.abi import libraries, saved
from mpigraft.graft.check import fit as check
from mpigraft.graft.guest import examination, host_commands
from mpigraft.graft.guest.examination import Guest
from mpigraft.report import fit_lines, fit_screen, machine_document, print_screen
from mpigraft.selection import fit_of_mpis as verdicts
from tests.builders.configuration import a_machine, an_mpi
from tests.builders.fits import finding, own, verdict
from tests.builders.guests import OPENMPI, a_guest, a_program, an_abi
from tests.builders.messages import matches, shows

SCHEMA = json.loads((Path(mpigraft.__file__).parent / "report/schemas/check.json").read_text())
MPIS = (an_mpi("mpich@5.0.2"), an_mpi("openmpi@5.0.11"), an_mpi("openmpi@5.0.7", usable=False))

Replacing = Callable[[ModuleType, str, object], None]


@pytest.fixture
def image(monkeypatch: pytest.MonkeyPatch, replace_everywhere: Replacing) -> Guest:
    """An image with a C program and a C++ one, on a machine with an MPI that only the first fits,
    one of another ABI, and one that cannot be used."""
    cxx = a_program(["libmpi_cxx.so.40", "libmpi.so.40"], imported=("_ZN3MPI4InitEv",))
    made = a_guest({"/opt/solver": a_program(), "/opt/old": cxx}, OPENMPI)
    secret = (("TOKEN", "planted-value-0"),)
    made = replace(made, label=replace(made.label, environment=secret))

    def examine(spec: str, programs: tuple[str, ...], _shown: object) -> Guest:
        return replace(made, label=replace(made.label, programs=programs)) if programs else made

    def of(mpi: MpiInstall) -> MpiAbi:
        if not mpi.usable:
            raise MissingError(f"{mpi.id} cannot be used")
        return an_abi(mpi)

    replace_everywhere(examination, "examine_guest", examine)
    replace_everywhere(host_commands, "job_words", lambda *_: ((), False))
    replace_everywhere(examination, "own_mpi_of", lambda _: own())
    monkeypatch.setattr(inventory, "discover_machine", lambda: a_machine(*MPIS))
    replace_everywhere(libraries, "read_abi", of)
    monkeypatch.setattr(verdicts, "_may_be_kept", lambda _: False)  # no file is read at all
    return made


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run_command(["check", "--image", "app.sif", *words])
    told = capsys.readouterr()
    return code, told.out, told.err


def page(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> list[str]:
    """The lines for a person, with the exit code that is expected."""
    ended, text, _ = run(capsys, *words)
    assert ended == code
    return text.splitlines()


@pytest.mark.usefixtures("image")
def test_of_several_mpis_the_last_does_not_answer_for_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, page, error = run(capsys, "--mpi", "mpich", "--mpi", "openmpi@5.0.11")
    assert (code, page) == (UsageError.exit_code, "")
    assert matches(error, "mpi-given-twice", count=2)


# ------------------------------------------------------------------ for a person


@pytest.mark.usefixtures("image")
def test_the_verdict_comes_first_then_the_worst_part(capsys: pytest.CaptureFixture[str]) -> None:
    lines = page(capsys, "--mpi", "openmpi@5.0.11", "--full", code=1)
    assert lines[0] == "fits: no"
    assert shows(lines, "alone", "/opt/solver")
    assert all(len(line) <= 80 for line in lines)
    bad, fine = (
        lines.index("NO        cxx"),
        lines.index("ok        architecture x86_64 on both sides"),
    )
    assert bad < fine
    labels = [line[:10].strip() for line in lines[bad + 1 : fine] if line[:10].strip()]
    assert labels == ["problem", "why", "fix"]


@pytest.mark.usefixtures("image")
@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize(
    "words",
    [("--mpi", "openmpi@5.0.11"), ("--mpi", "mpich"), ("--program", "/opt/solver"), ()],
)
def test_the_answer_is_one_screen(
    words: tuple[str, ...],
    width: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    _, text, _ = run(capsys, *words)
    lines = text.splitlines()
    assert lines[0].startswith("fits: ")
    assert max(map(len, lines)) <= width
    assert len(lines) <= 30
    assert shows(lines[-1], "--full")
    if "no" in lines[0].split(";")[0] and "--mpi" in words:
        assert any(line.startswith("what to do: ") for line in lines[:3])
        assert sum(line.startswith("NO ") for line in lines) >= 1


@pytest.mark.usefixtures("image")
def test_a_fit_exits_0(capsys: pytest.CaptureFixture[str]) -> None:
    code, text, _ = run(capsys, "--mpi", "openmpi@5", "--program", "/opt/solver")
    assert code == 0
    assert text.startswith("fits: yes; ")
    assert shows(text, "openmpi@5.0.11", "4.1.4")
    assert "NO " not in text


@pytest.mark.usefixtures("image")
def test_without_an_mpi_all_are_tried(capsys: pytest.CaptureFixture[str]) -> None:
    lines = page(capsys, "--program", "/opt/solver")
    assert shows(lines[0], "1 of 2 MPIs")
    rows = [line for line in lines if line.startswith(("yes", "NO", "left out"))]
    assert shows(rows[0], "yes", "openmpi@5.0.11")
    assert shows(rows[1], "NO mpich@5.0.2", "Open MPI")
    assert all(len(line) <= 80 for line in lines)
    code, text, _ = run(capsys)
    assert code == 1
    assert shows(text, "of 2 programs 1 would fit")


@pytest.mark.usefixtures("image")
def test_a_no_says_which_of_the_others_fits(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--mpi", "mpich@5.0.2", "--program", "/opt/solver")
    code, text, _ = run(capsys, *words)
    assert code == 1
    assert shows(text, "instead", "--mpi openmpi@5.0.11")
    _, text, _ = run(capsys, *words, "--json")
    others = json.loads(text)["others"]
    assert (len(others["fit"]), others["fetch"]) == (1, [])
    assert shows(others["fit"], "openmpi@5.0.11")
    _, text, _ = run(capsys)
    assert shows(text, "instead", "no other MPI")
    _, text, _ = run(capsys, "--mpi", "openmpi@5", "--program", "/opt/solver")
    assert "instead" not in text


@pytest.mark.usefixtures("image")
def test_refused_requests(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--replace", "libc")[0] == 2
    assert run(capsys, "--mpi", "intel")[0] == 3
    assert run(capsys, "--mpi", "openmpi@5.0.7")[0] == 3


def test_an_mpi_that_cannot_be_read_is_left_out_and_named(
    image: Guest,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    replace_everywhere: Replacing,
) -> None:
    del image
    usable = tuple(replace(m, usable=True) for m in MPIS)
    gone = {"openmpi@5.0.7"}

    def of(mpi: MpiInstall) -> MpiAbi:
        if mpi.id in gone:
            raise MissingError(f"{mpi.id} cannot be read")
        return an_abi(mpi)

    monkeypatch.setattr(inventory, "discover_machine", lambda: a_machine(*usable))
    replace_everywhere(libraries, "read_abi", of)
    _, text, _ = run(capsys)
    assert shows(text, "left out", "openmpi@5.0.7")
    gone |= {m.id for m in usable}
    code, _, told = run(capsys)
    assert code == 3
    assert "mpigraft get" in told
    assert shows(told, "cannot be read")


@pytest.mark.parametrize("full", [True, False])
def test_names_of_a_guest_are_no_commands_to_the_terminal(full: bool) -> None:
    bad = "/opt/\x1b[2Jsol\nver\udcff"
    fit = verdict(a_guest({bad: a_program()}), an_abi("mpich@5.0.2"))
    printed = io.StringIO()
    print_screen(fit_screen(fit), Console(file=printed, width=80))
    text = "\n".join(fit_lines(fit)) if full else printed.getvalue()
    assert "\x1b" not in text
    assert not full or shows(text, r"\x1b[2Jsol\x0aver\xdcff")
    text.encode("utf-8")


@given(st.text(), st.lists(st.text(), max_size=20))
def test_a_page_is_80_columns_wide(said: str, evidence: list[str]) -> None:
    fit = verdict(a_guest(a_program()), an_abi("mpich@5.0.2"))
    odd = replace(finding(fit, "abi-differs"), message=said, why=said, evidence=tuple(evidence))
    part = CheckResult("abi", Level.ERROR, said, (odd,))
    for line in fit_lines(replace(fit, parts=(part,))):
        assert line.isprintable()
        # a word longer than the page, a path, is not cut
        assert len(line) <= 80 or len(line.split()) <= 2


# ------------------------------------------------------------------ for other tools


@pytest.mark.usefixtures("image")
@pytest.mark.parametrize("words", [(), ("--mpi", "openmpi@5.0.11"), ("--mpi", "mpich")])
def test_the_document(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code, text, _ = run(capsys, "--json", *words)
    found = json.loads(text)
    jsonschema.validate(found, SCHEMA, jsonschema.Draft202012Validator)
    assert found["ok"] is (code == 0)
    assert len(found["checks"]) == (1 if words else 2)
    assert [p["name"] for p in found["checks"][0]["parts"]] == [*check.FIRST, *check.REST]
    assert "planted-value-0" not in text


@pytest.mark.usefixtures("image")
def test_the_document_says_which_programs_fit(capsys: pytest.CaptureFixture[str]) -> None:
    _, text, _ = run(capsys, "--json", "--mpi", "openmpi@5.0.11")
    one = json.loads(text)["checks"][0]
    assert not one["ok"]
    assert one["fitting"] == ["/opt/solver"]
    wrong = [f for p in one["parts"] for f in p["findings"] if f["level"] == "error"]
    assert wrong[0]["code"] == "cxx-bindings"
    assert wrong[0]["evidence"]


# ------------------------------------------------------------------ another machine


def described(machine: Machine, path: Path) -> Path:
    """What `discover --abi --json` writes, without looking at this machine."""
    found = json.loads(document(**machine_document(machine)))
    for row, mpi in zip(found["mpis"], machine.mpis, strict=True):
        row["abi_facts"] = json.loads(document(facts=an_abi(mpi)))["facts"]
    path.write_text(json.dumps(found))
    return path


def test_a_described_machine_reads_back_as_it_was(tmp_path: Path) -> None:
    mpi = an_mpi(
        "openmpi@5.0.11",
        wrappers=(("c", Path("/opt/bin/mpicc")),),
        components=(("pml", ("ob1", "cm")),),
    )
    machine = replace(
        a_machine(mpi),
        fabrics=(NetDevice("cxi0", "cxi", "up", details=(("driver", "cxi_ss1"),)),),
        gpus=(Gpu(0, "nvidia", "H200", 141_000, (("driver", "570"),)),),
    )
    assert saved.read_machine(described(machine, tmp_path / "machine.json")) == machine


@pytest.mark.usefixtures("image")
def test_check_on_a_described_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The machine has Slingshot, which its MPI does not reach; this one has none."""
    there = replace(a_machine(an_mpi("openmpi@5.0.9")), fabrics=(NetDevice("cxi0", "cxi", "up"),))
    path = described(there, tmp_path / "machine.json")
    words = ("--machine", str(path), "--program", "/opt/solver")
    code, text, _ = run(capsys, *words, "--mpi", "openmpi")
    assert code == 0
    assert shows(text, "warning", "devices")
    code, text, _ = run(capsys, *words)
    assert shows(text, "yes", "openmpi@5.0.9", "devices")
    assert run(capsys, *words, "--mpi", "mpich")[0] == 3


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"schema": 3}', '{"schema": 1}', '{"schema": 1, "mpis": 3}', "[" * 9999],
)
def test_files_that_describe_no_machine(tmp_path: Path, text: str) -> None:
    path = tmp_path / "machine.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"machine\.json"):
        saved.read_machine(path)
    with pytest.raises(UsageError, match="No such file"):
        saved.read_machine(tmp_path / "none.json")


def test_a_described_mpi_without_launcher_is_refused(tmp_path: Path) -> None:
    """The default would be an MPI that has none; `reason` came later, and may be absent."""
    found = json.loads(document(**machine_document(a_machine(an_mpi("openmpi@5.0.9")))))
    del found["mpis"][0]["reason"]
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(found))
    assert saved.read_machine(path).mpis[0].reason == ""
    del found["mpis"][0]["launcher"]
    path.write_text(json.dumps(found))
    with pytest.raises(UsageError, match=r"machine\.json: MPI openmpi@5\.0\.9 has no launcher"):
        saved.read_machine(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.data())
def test_a_described_machine_with_anything_in_it_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    found: dict[str, Any] = json.loads(document(**machine_document(a_machine(*MPIS))))
    found[data.draw(st.sampled_from(sorted(found)))] = data.draw(JSON)
    path = tmp_path_factory.getbasetemp() / "odd.json"
    path.write_text(json.dumps(found))
    with contextlib.suppress(UsageError):  # and nothing else
        saved.read_machine(path)


def test_nothing_replaced_is_a_verdict_too() -> None:
    """Of a guest with its own MPI, which `bench` puts beside the others."""
    fit: Fit = verdict(
        a_guest(a_program(), OPENMPI), an_abi("openmpi@5.0.11"), own=own(version="5.0.7"),
        replace=Replace.NOTHING,
    )  # fmt: skip
    assert fit.ok


def test_a_guest_without_a_flag_is_checked_with_a_note(
    image: Guest, capsys: pytest.CaptureFixture[str]
) -> None:
    """The words of a job are the same, with and without --image."""
    named = "--image app.sif"
    for job in ((), ("--", "solver", "a.dat")):
        answers = []
        for guest in (named.split(), ["app.sif"]):
            code = run_command(["check", *guest, "--mpi", "openmpi", *job])
            answers.append((code, *capsys.readouterr()))
        (code, page, told), (old_code, old_page, old_told) = answers
        assert (code, page) == (old_code, old_page)
        note, _, rest = old_told.partition("\n")
        assert named in note
        assert rest == told


def test_a_guest_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["check", "--mpi", "openmpi"]) == 2
    assert matches(capsys.readouterr().err, "check-incomplete")
