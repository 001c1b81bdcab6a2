"""Files that plans are made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.overrides import libraries_fixture, site_fixture  # noqa: F401
from tests.builders.plans import on_disk


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """A libmpi, a library that it needs, a help text, and our programs."""
    return on_disk(tmp_path / "host")
