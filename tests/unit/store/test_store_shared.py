"""A store that others may write to: what they put into it is named and left out."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mpigraft.core.errors import MissingError
from mpigraft.core.serialize import canonical
from mpigraft.store import Store
from tests.builders.records import CAMPAIGN

NESTED = "[" * 900 + "]" * 900


def endless(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


TEXTS: dict[str, Callable[[Path], object]] = {
    "fifo": os.mkfifo,
    "folder": Path.mkdir,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "endless": endless,
    "nested": lambda path: path.write_text(f'{{"accepted":"x","campaign":{NESTED}}}'),
    "deeper": lambda path: path.write_text("[" * 100_000),
}


@pytest.mark.parametrize("plant", TEXTS.values(), ids=TEXTS)
def test_a_mark_that_is_none_is_named(tmp_path: Path, plant: Callable[[Path], object]) -> None:
    store = Store(tmp_path)
    store.accept(CAMPAIGN.id)
    plant(tmp_path / "x.accepted")
    assert [name for _, name in store.accepted()] == [CAMPAIGN.id]
    assert [f.code for f in store.findings] == ["store-file-unreadable"]
    assert str(tmp_path / "x.accepted") in store.findings[0].message


@pytest.mark.parametrize("plant", TEXTS.values(), ids=TEXTS)
def test_an_agreed_plan_that_is_none_is_named(
    tmp_path: Path, plant: Callable[[Path], object]
) -> None:
    plant(tmp_path / f"{CAMPAIGN.id}.campaign")
    with pytest.raises(MissingError, match="agreed on, cannot be read"):
        Store(tmp_path).settled(CAMPAIGN.id)
    with pytest.raises(MissingError, match="agreed on, cannot be read"):
        Store(tmp_path).settle(CAMPAIGN)
    assert Store(tmp_path).settled("other") is None


@pytest.mark.root
def test_an_agreed_plan_of_another_user_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / f"{CAMPAIGN.id}.campaign"
    path.write_text(canonical(CAMPAIGN))
    assert Store(tmp_path).settled(CAMPAIGN.id) == CAMPAIGN
    os.chown(path, 4321, 4321)
    with pytest.raises(MissingError, match=r"another user \(id 4321\)"):
        Store(tmp_path).settled(CAMPAIGN.id)
    os.chown(tmp_path, 4321, 4321)
    assert Store(tmp_path).settled(CAMPAIGN.id) == CAMPAIGN


@pytest.mark.parametrize("plant", [TEXTS["fifo"], lambda path: path.symlink_to("../own")])
def test_a_mark_takes_the_place_of_what_others_put_there(
    tmp_path: Path, plant: Callable[[Path], object]
) -> None:
    own, folder = tmp_path / "own", tmp_path / "store"
    own.write_text("mine")
    folder.mkdir()
    plant(folder / f"{CAMPAIGN.id}.accepted")
    Store(folder).accept(CAMPAIGN.id)
    assert own.read_text() == "mine"
    assert [name for _, name in Store(folder).accepted()] == [CAMPAIGN.id]
