"""From a guest and a host MPI to a plan: what stops it before anything is decided."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpigraft.binary.elf.tables import ElfError
from mpigraft.binary.loader.guest import ForeignLoader
from mpigraft.core.errors import CheckFailed, UsageError
from mpigraft.graft.assemble import GraftOptions, plan_graft
from tests.builders.configuration import a_machine, an_mpi
from tests.builders.guests import a_guest, an_abi
from tests.builders.plans import natives_of, on_disk


@pytest.mark.parametrize(
    ("stop", "answer"),
    [
        (ForeignLoader("hello", "/lib/ld-musl-x86_64.so.1", "musl"), CheckFailed),
        (ElfError("libx.so: cut off"), UsageError),
    ],
)
def test_a_guest_that_cannot_be_loaded_is_no_bug(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: ElfError, answer: type[Exception]
) -> None:
    """Of Alpine's programs `plan`, `run` and `bench` say what `check` says."""
    files = on_disk(tmp_path)

    def inject(*_: object, **__: object) -> None:
        raise stop

    monkeypatch.setattr("mpigraft.graft.assemble.read_abi", lambda _: an_abi("openmpi@5.0.11"))
    monkeypatch.setattr("mpigraft.graft.assemble.choose_natives", lambda *_: natives_of(files))
    monkeypatch.setattr("mpigraft.graft.assemble.decide_contents", inject)
    with pytest.raises(answer, match=str(stop)):
        plan_graft(a_guest(), an_mpi(), a_machine(), GraftOptions(engine="apptainer"))
