"""A store in which every text means harm: no command obeys it, and none of it forges a line."""

from __future__ import annotations

import json
import re
import shutil
import tarfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mpigraft.core.errors import MpigraftError
from mpigraft.store import Store
from tests.builders.forged import (
    EVIL,
    LINE,
    check_printed,
    command,
    honest_store,
    plant,
    stored_places,
)
from tests.builders.html import Page

FIRST = "00000001"
COMMANDS = [
    "compare", "compare --json", "compare --markdown", "compare --full",
    "compare 00000001 00000002", "compare 00000001 00000002 --markdown",
    "compare 00000001 00000002 --json", "compare --across layouts", "compare --baseline none",
    "compare none", "report -o page.html", "report --public -o page.html --figures figures",
    "results list", "results list --json", "results show", "results show --json",
    "history", "history --json", "history -o page.html --junit lines.xml", "history --accept none",
    "export", "export --format json", "export -o table.parquet", "bundle -o bundle.tar.gz",
    "bundle 00000002 --with 00000001 -o bundle.tar.gz", "status", "status --json", "status none",
    "recheck 00000001 --dry-run", "bench --resume --dry-run", "submit --resume --dry-run",
]  # fmt: skip
# What a reader must understand: evil in it makes the file damaged, and that is said.
REFUSED = {
    "campaign", "launch", "allocation", "campaign.created", "campaign.origin", "submission.created",
    "allocation.job", "job.job", "launch.state", "launch.findings:[].level",
    "evidence.evidence:.proof[].kind", "evidence.evidence:.proof[].peer",
    "evidence.evidence:.proof[].standing",
}  # fmt: skip
ALONE = {"value.metric", "submission.scheduler"}  # hides most of the rest


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return honest_store(tmp_path_factory.mktemp("honest")).folder


@pytest.fixture(scope="module")
def stores(honest: Path) -> dict[bool, Path]:
    """One with evil almost everywhere, and one with evil in the rest."""
    every = set(stored_places(honest)) - REFUSED
    made = {}
    for alone in (False, True):
        made[alone] = honest.with_name(f"evil-{alone}")
        shutil.copytree(honest, made[alone])
        plant(made[alone], ALONE if alone else every - ALONE)
    return made


def is_read(store: Store) -> bool:
    try:
        for one in store.campaigns():
            for read in (store.allocations, store.configurations, store.evidence, store.launches):
                read(one.id)
            if not all((store.values(one.id), store.jobs(one.id), [*store.measured(one.id)])):
                return False
    except MpigraftError:
        return False
    return bool(store.submissions()) and not store.findings


@pytest.mark.parametrize("alone", [False, True])
def test_the_stores_are_read(stores: dict[bool, Path], alone: bool) -> None:
    assert is_read(Store(stores[alone]))


@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
@pytest.mark.parametrize("line", COMMANDS)
@pytest.mark.parametrize("alone", [False, True], ids=["most", "rest"])
def test_no_command_obeys_a_store(
    stores: dict[bool, Path],
    line: str,
    terminal: bool,
    alone: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = command("--store", stores[alone], *line.split(), terminal=terminal)
    assert ended.code in (0, 2, 3, 6)
    if ended.code == 0 and "json" in line and not terminal:
        json.loads(ended.out)
    for page in tmp_path.glob("*.html"):
        check_page(page)
    for path in tmp_path.glob("*.xml"):
        ElementTree.parse(path)
    for path in tmp_path.glob("*.tar.gz"):
        with tarfile.open(path) as archive:
            assert archive.getnames()
            check_printed("\n".join(archive.getnames()))
    if "--markdown" in line:
        assert not re.search(rf"(?<!\\)(<b onload|\|{LINE}|\[l\]|`)", ended.out)


def check_page(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert "<b onload" not in text
    assert not [a for _, a in page.elements if any(n.startswith("on") for n in a)]
    assert not {"\x1b", "\x07", "\x9b"} & set(text)


@pytest.mark.parametrize("place", sorted(REFUSED))
def test_a_text_that_must_be_understood_makes_a_damaged_file(
    honest: Path, place: str, tmp_path: Path
) -> None:
    shutil.copytree(honest, tmp_path / "store")
    plant(tmp_path / "store", {place})
    assert not is_read(Store(tmp_path / "store"))
    for line in ("results list", "results show", "compare", "status"):
        command("--store", tmp_path / "store", *line.split())


def test_evil_is_evil() -> None:
    with pytest.raises(AssertionError):
        check_printed(EVIL)
    with pytest.raises(AssertionError):
        check_printed(f"a\n{LINE}", terminal=True)
