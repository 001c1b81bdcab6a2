"""From a guest and a host MPI to a plan: what stops it before anything is decided."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpigraft.elf import ElfError
from mpigraft.errors import AnswerIsNo, UsageError
from mpigraft.graft import Wanted, planned
from mpigraft.guest_loader import ForeignLoader
from tests.unit.builders import a_machine, an_mpi
from tests.unit.checked import a_guest, an_abi
from tests.unit.planned import natives_of, on_disk


@pytest.mark.parametrize(
    ("stop", "answer"),
    [
        (ForeignLoader("hello: its loader is musl's"), AnswerIsNo),
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

    monkeypatch.setattr("mpigraft.graft.abis.of", lambda _: an_abi("openmpi@5.0.11"))
    monkeypatch.setattr("mpigraft.graft.natives", lambda *_: natives_of(files))
    monkeypatch.setattr("mpigraft.graft.inject", inject)
    with pytest.raises(answer, match=str(stop)):
        planned(a_guest(), an_mpi(), a_machine(), Wanted(engine="apptainer"))
