"""Running commands, and replacing what they call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from mpigraft.bench.schedule.campaign import Campaign, plan_campaign
from mpigraft.request.spec import CampaignSpec
from mpigraft.selection import configurations
from tests.builders.commands import Ended, Run, run_on_store
from tests.builders.configuration import a_machine, a_transport, an_mpi, an_offer
from tests.builders.records import SECRET


@pytest.fixture
def replace_everywhere(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[ModuleType, str, object], None]]:
    """Sets `module.name` to a value, and the same name wherever it was imported from there. Modules
    that are first imported meanwhile take the value too: they get the real one back."""
    replaced: list[tuple[str, object, object]] = []

    def set_everywhere(module: ModuleType, name: str, value: object) -> None:
        real = getattr(module, name)
        replaced.append((name, real, value))
        for known, other in list(sys.modules.items()):
            if known.startswith("mpigraft.") and other.__dict__.get(name) is real:
                monkeypatch.setattr(other, name, value)

    yield set_everywhere
    monkeypatch.undo()
    for name, real, value in replaced:
        for known, other in list(sys.modules.items()):
            if known.startswith("mpigraft.") and other.__dict__.get(name) is value:
                setattr(other, name, real)


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command on the store of this test, at 80 columns, in the test's own folder."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)

    def start(*words: object) -> Ended:
        code = run_on_store(tmp_path / "store", *words)
        return Ended(code, *capsys.readouterr())

    return start


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Campaign:
    """Two configurations, one of which has a secret in its id."""
    monkeypatch.setattr(
        configurations, "transport_offers", lambda *_: (an_offer("ob1-sm"), an_offer("ucx"))
    )
    monkeypatch.setattr(configurations, "resolve_transport", lambda name, *_: a_transport(name))
    quick = plan_campaign(
        CampaignSpec(quick=True, seed=3), a_machine(an_mpi()), lambda _: (("libmpi", "5"),)
    )
    plain, other = quick.configurations
    telling = replace(other, id=f"{plain.id}+X={SECRET}")
    return replace(quick, configurations=(plain, telling), skipped=((telling.id, "why"),))
