"""README's picture is what `mpigraft compare` prints now of the campaign that is kept for it."""

from __future__ import annotations

import pytest

from tools import picture


def test_the_picture_is_not_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    drawn = picture.PICTURE.read_text(encoding="utf-8")
    assert picture.picture() == drawn, "type `make pictures`, and look at it"
    assert "faster" in drawn
