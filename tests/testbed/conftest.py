"""Images and engines, made once a session."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from mpigraft.model import Family
from tests.testbed.engines import Engines
from tests.testbed.images import Images

Need = Callable[..., None]


@pytest.fixture(scope="session")
def images(
    cache_folder: Path, as_root: tuple[str, ...], mpis: Mapping[Family, Path]
) -> Iterator[Images]:
    images = Images(cache_folder, as_root, mpis)
    try:
        images.make_all()
        yield images
    finally:
        images.close()


@pytest.fixture(scope="session")
def engines(cache_folder: Path, as_root: tuple[str, ...], images: Images) -> Iterator[Engines]:
    engines = Engines(cache_folder, as_root, images)
    yield engines
    engines.close()


@pytest.fixture
def need(engines: Engines) -> Need:
    """Skip a test, and say why, if an engine does not work here.

    Under `make test`, which has installed all that tests need, one that is missing is no skip.
    """

    def check(engine: str, *, as_user: bool = False) -> None:
        reason = engines.available(as_user=as_user)[engine]
        if not reason:
            return
        who = "an ordinary user" if as_user else "root"
        if "MPIGRAFT_TEST_ALL" in os.environ and reason.endswith("is not installed"):
            pytest.fail(f"{reason}, which set-up should have seen to", pytrace=False)
        pytest.skip(f"as {who}: {reason}")

    return check
