"""Pictures of README and the documentation show what mpigraft prints and writes now of what is
stored for them."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from PIL import Image

from tests.builders.messages import shows
from tools import picture

STALE = "type `make pictures`, and look at it"
MOST = 80_000  # bytes of a picture: the repository keeps each that ever was


def test_the_picture_is_not_stale_and_fetches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    drawn = picture.PICTURE.read_text(encoding="utf-8")
    assert picture.picture() == drawn, STALE
    root = ElementTree.fromstring(drawn)
    assert shows(" ".join(root.itertext()).replace("\xa0", " "), "openmpi@5.0.11/ucx", "slower")
    assert "url(" not in drawn.replace("url(#", ""), "a picture in a README fetches nothing"
    assert "@font-face" not in drawn


@pytest.mark.parametrize("one", picture.PHOTOGRAPHS, ids=lambda one: one.name)
def test_a_part_of_a_page_is_not_stale_and_names_nobody(one: picture.Photograph) -> None:
    with Image.open(one.file) as kept:
        assert kept.info[picture.DIGEST] == one.digest(one.page()), STALE
        assert kept.info.keys() == {picture.DIGEST}
    assert one.file.stat().st_size < MOST


def test_a_digest_changes_with_what_is_shown_alone() -> None:
    one = picture.Photograph("any", picture.archer2, ("header", "glance"))
    page = (
        "<style>a</style><header>b</header>"
        '<section id="glance">d</section><section class="x" id="other">e</section>'
        "<script>f</script>"
    )
    before = one.digest(page)
    assert one.digest(page.replace("e</section>", "E</section>")) == before
    for shown in ("a</style>", "b</header>", "d</section>", "f</script>"):
        assert one.digest(page.replace(shown, "X" + shown)) != before
