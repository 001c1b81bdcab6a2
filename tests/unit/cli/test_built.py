"""What `mpigraft build` says while it builds, and when it is interrupted."""

from __future__ import annotations

from pathlib import Path

import pytest

import mpigraft.build
from mpigraft.build import BuildFolders, BuildProgress
from mpigraft.cli.built import build_all
from mpigraft.report import build_progress
from tests.builders.easybuilds import a_plan
from tests.builders.messages import shows

NOW = BuildProgress("libfabric", "2.1.0", 2, 5)


@pytest.mark.parametrize(
    ("now", "text"),
    [
        (NOW, "[2/5] libfabric 2.1.0"),
        (BuildProgress("fuse", "2.9.9", 1, 5, "kept"), "[1/5] fuse 2.9.9: was built before"),
        (
            BuildProgress("fuse", "2.9.9", 1, 5, "building", 30.0),
            "[1/5] fuse 2.9.9: building, after 30 s",
        ),
        (
            BuildProgress("fuse", "2.9.9", 1, 5, "building", 30.0, 600.0),
            "[1/5] fuse 2.9.9: building, after 30 s, about 10 min left",
        ),
    ],
)
def test_progress_in_words(now: BuildProgress, text: str) -> None:
    assert build_progress(now) == text


def test_an_interrupt_says_what_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mpigraft.build.easybuild.build", interrupted)
    assert mpigraft.build.build is interrupted
    with pytest.raises(KeyboardInterrupt):
        build_all(a_plan(), BuildFolders(tmp_path), check=True)
    shown = capsys.readouterr()
    assert shows(shown.err, tmp_path)
    assert not shown.out
