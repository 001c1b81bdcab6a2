"""README's picture is what `mpigraft compare` prints now of the campaign that is kept for it."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from tests.builders.messages import shows
from tools import picture


def test_the_picture_is_not_stale_and_fetches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    drawn = picture.PICTURE.read_text(encoding="utf-8")
    assert picture.picture() == drawn, "type `make pictures`, and look at it"
    root = ElementTree.fromstring(drawn)
    assert shows(" ".join(root.itertext()).replace("\xa0", " "), "openmpi@5.0.11/ucx", "slower")
    assert "url(" not in drawn.replace("url(#", ""), "a picture in a README fetches nothing"
    assert "@font-face" not in drawn
