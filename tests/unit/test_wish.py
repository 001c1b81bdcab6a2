"""A wish from flags, a TOML file or a stored plan: the same keys, refused in the same way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.errors import UsageError
from mpigraft.jsonout import canonical
from mpigraft.wish import Wish, merged, read_wish, wish_from


def written(folder: Path, text: str) -> Path:
    path = folder / "campaign.toml"
    path.write_text(text)
    return path


def test_a_file_says_what_flags_can(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        name = "night"
        mpi = ["openmpi", "mpich@5.0.2"]
        transport = "ofi-tcp"
        rounds = 20
        budget_ms = 5
        [set]
        FI_TCP_IFACE = "lo"
        """,
    )
    wish = read_wish(path)
    assert wish.mpi == ("openmpi", "mpich@5.0.2")
    assert wish.transport == ("ofi-tcp",)
    assert wish.rounds == 20
    assert wish.budget_ms == 5
    assert wish.settings == (("FI_TCP_IFACE", "lo"),)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("rounds = [", "end of document"),
        ("\n\nrounds = = 3", "line 3"),
        ("\nround = 6", "toml:2: unknown key 'round'"),
        ("name = 'a'\n\nrounds = 'six'", "toml:3: rounds must be int"),
        ("rounds = true", "rounds must be int"),
        ("quick = 1", "quick must be bool"),
        ("rounds = -6", "negative"),
        ("mpi = [1, 2]", "list of texts"),
        ("buffers = 'disk'", "one of host, cuda, rocm"),
    ],
)
def test_a_bad_file_is_refused_with_its_name_and_place(
    tmp_path: Path, text: str, seen: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError, match=seen) as caught:
        read_wish(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_text_or_not_there_is_refused(tmp_path: Path) -> None:
    binary = tmp_path / "b.toml"
    binary.write_bytes(b"\xff\x00\xfe")
    for path in (binary, tmp_path / "none.toml", tmp_path):
        with pytest.raises(UsageError):
            read_wish(path)


def test_flags_are_laid_over_the_file() -> None:
    file = Wish(rounds=10, mpi=("mpich",), validate=True)
    wish = merged(file, {"rounds": 6, "mpi": None, "quick": False, "validate": False})
    assert wish.rounds == 6
    assert wish.mpi == ("mpich",)
    assert not wish.validate


def test_settings_need_a_name_and_never_carry_a_secret() -> None:
    assert Wish(set=("B=2", "A=x=y")).settings == (("A", "x=y"), ("B", "2"))
    for word in ("FI_TCP_IFACE", "=3", "A B=3", "A;rm=1"):
        with pytest.raises(UsageError, match="NAME=VALUE"):
            _ = Wish(set=(word,)).settings
    with pytest.raises(UsageError, match="secret"):
        _ = Wish(set=("API_TOKEN=planted",)).settings


words = st.text(min_size=1, max_size=8)


@given(
    mpi=st.lists(words).map(tuple),
    rounds=st.integers(0, 999),
    budget=st.floats(0, 100, allow_nan=False),
    quick=st.booleans(),
)
def test_a_stored_wish_comes_back_the_same(
    mpi: tuple[str, ...], rounds: int, budget: float, quick: bool
) -> None:
    wish = Wish(mpi=mpi, rounds=rounds, budget_ms=budget, quick=quick)
    assert wish_from(json.loads(canonical(wish)), "stored") == wish
