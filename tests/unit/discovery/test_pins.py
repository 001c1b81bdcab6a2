"""The wheels that `get` knows by their content."""

from __future__ import annotations

import pytest

from mpigraft.core.errors import UsageError
from mpigraft.discovery.install import pins

A, B = "a" * 64, "b" * 64


def rows(*pairs: tuple[str, str]) -> dict[str, object]:
    return {"wheel": [{"file": file, "sha256": digest} for file, digest in pairs]}


def test_a_version_has_a_digest_for_each_architecture() -> None:
    found = pins.read(
        rows(
            ("a-1.0-py3-none-x.whl", A), ("a-1.0-py3-none-y.whl", B), ("a-1.0.1-py3-none-x.whl", B)
        )
    )
    assert found == {"a-1.0": {A, B}, "a-1.0.1": {B}}


def test_hyphens_of_a_distribution_are_underscores() -> None:
    assert pins.pinned_digests("impi-rt", "2021.18.1")
    assert not pins.pinned_digests("impi-rt", "2021.18")


@pytest.mark.parametrize(
    ("file", "digest"), [("a-1.0.tar.gz", A), ("a-1.0-py3-none-x.whl", A[1:]), ("../a-1-x.whl", A)]
)
def test_a_wrong_row_is_refused(file: str, digest: str) -> None:
    with pytest.raises(UsageError, match=r"wheels\.toml"):
        pins.read(rows((file, digest)))
