"""What a check says where it is not known which programs start, or which modules are imported."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpigraft.core.model import Fit, Level, MpiAbi, Replace
from mpigraft.graft.check.check_input import CheckInput
from mpigraft.graft.check.fit import check_fit, check_pair, soften_fit
from mpigraft.graft.guest.examination import Guest
from mpigraft.graft.injection.contents import decide_contents
from mpigraft.graft.injection.fixpoint import GraftRequest
from tests.builders.configuration import a_machine
from tests.builders.fits import finding, own, part
from tests.builders.guests import OPENMPI, PLACE, a_guest, a_program, an_abi, library, modules
from tests.builders.messages import matches


def spared(guest: Guest, abi: MpiAbi) -> Fit:
    found = decide_contents(guest, abi, GraftRequest(replace=Replace.MPI, place=PLACE))
    pair = CheckInput(guest, abi, found, own())
    return soften_fit(pair, check_fit(pair))


def test_programs_of_which_nobody_knows_whether_they_start_refuse_only_together() -> None:
    programs = {
        "/opt/good": a_program(),
        "/opt/java": a_program(["libmpi_java.so.40", "libmpi.so.40"]),
    }
    guest, abi = a_guest(programs, OPENMPI, library("libmpi_java.so.40")), an_abi("openmpi@5.0.11")
    fit = spared(replace(guest, loose=True), abi)
    assert fit.ok
    note = finding(fit, "programs-not-known")
    assert (note.level, note.evidence) == (Level.WARNING, ("/opt/java",))
    assert matches(note, "programs-not-known", bad=1, programs=2, name="app.sif")
    assert finding(fit, "soname-absent").level is Level.WARNING
    assert part(fit, "sonames").level is Level.WARNING
    label = replace(guest.label, programs=("/opt/java",))
    assert not spared(replace(guest, label=label, loose=True), abi).ok


def test_a_job_that_may_start_no_mpi_program_is_warned_of() -> None:
    guest, abi = a_guest({"/opt/good": a_program()}, OPENMPI), an_abi("openmpi@5.0.11")
    found = decide_contents(guest, abi, GraftRequest(replace=Replace.MPI, place=PLACE))
    machine = a_machine()
    loose = check_pair(CheckInput(replace(guest, loose=True), abi, found, own(), machine))
    assert loose.ok
    assert finding(loose, "started-not-known").level is Level.WARNING
    named = check_pair(CheckInput(guest, abi, found, own(), machine))
    assert all(f.code != "started-not-known" for f in named.findings)


@pytest.mark.parametrize(("program", "warned"), [("/usr/bin/mb", True), ("/bin/python3", False)])
def test_a_program_without_mpi_does_not_pass_by_the_modules_of_others(
    program: str, warned: bool
) -> None:
    apart = modules("/opt/m/MPI.so", needed=("libmpi.so.40",), program=program)
    fit = spared(apart, an_abi("openmpi@5.0.11"))
    assert fit.ok
    assert any(f.code == "mpi-not-linked" for f in fit.findings) is warned


def test_words_of_which_nothing_is_known_are_warned_of() -> None:
    """`run` starts them, and `check` says what it knows: the libraries that they name."""
    guest = a_guest(a_program(), OPENMPI)
    bare = replace(guest, label=replace(guest.label, programs=()), unknown=("a.py: CDLL",))
    for named, codes_of in (("libmpi.so.40", set()), ("libmpi.so.12", {"mpi-named"})):
        fit = spared(replace(bare, named=(named,)), an_abi("openmpi@5.0.11"))
        assert fit.ok
        assert {f.code for f in part(fit, "abi").findings} == {"words-not-known", *codes_of}


def test_a_module_that_may_be_imported_refuses_nothing() -> None:
    two, host = ("libmpi.so.40", "libmpi.so.12"), an_abi("openmpi@5.0.11")
    apart = modules("/opt/m/MPI.so", "/opt/n/Other.so", needed=two)
    fit = spared(replace(apart, possible=("/opt/n/Other.so",)), host)
    assert fit.ok
    assert finding(fit, "imports-not-known").evidence == ("/opt/n/Other.so",)
    assert not spared(replace(apart, possible=("/opt/m/MPI.so",)), host).ok
    both = ("/opt/m/MPI.so", "/opt/n/Other.so")
    assert spared(replace(apart, possible=both), host).ok
