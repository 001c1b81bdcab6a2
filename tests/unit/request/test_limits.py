"""Limits of launches: which one counts, and what is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpigraft.core.errors import UsageError
from mpigraft.request import CampaignSpec, asked_campaign, override_spec, read_spec
from mpigraft.request.limits import narrowest_limit
from mpigraft.request.options import option_words

LIMITS = ("osu=120", "osu:bw=300", "osu:bw,window=8=30", "app=50", "app:lj=70")


@pytest.mark.parametrize(
    ("key", "own_s", "seconds"),
    [
        ("osu:latency", 0.0, 120.0),
        ("osu:bw", 0.0, 300.0),
        ("osu:bw,window=64", 0.0, 300.0),
        ("osu:bw,window=8", 0.0, 30.0),
        ("imb:PingPong", 0.0, 600.0),
        ("native", 0.0, 600.0),
        ("app:lj", 90.0, 70.0),
        ("app:md", 90.0, 90.0),
        ("app:md", 0.0, 50.0),
    ],
)
def test_the_narrowest_limit_counts(key: str, own_s: float, seconds: float) -> None:
    assert narrowest_limit(LIMITS, key, own_s, 600.0) == seconds


def read(folder: Path, text: str) -> CampaignSpec:
    path = folder / "c.toml"
    path.write_text(text)
    return read_spec(path)


def test_a_campaign_file_has_a_table_of_them_and_flags_take_its_place(tmp_path: Path) -> None:
    spec = read(tmp_path, '[limit_of]\nosu = 120\n"osu:alltoall" = 0.5\n')
    assert spec.limits == ("osu=120", "osu:alltoall=0.5")
    assert override_spec(spec, asked_campaign({"limit_of": ["imb=9"]})).limits == ("imb=9",)
    assert list(option_words(spec))[:2] == ["--limit-of", "osu=120"]


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "true", '"x"', "[1]", "1e10"])
def test_what_is_no_number_of_seconds_is_refused_with_its_line(tmp_path: Path, value: str) -> None:
    with pytest.raises(UsageError, match=r"c\.toml:2: limit_of"):
        read(tmp_path, f"\nlimit_of = {{ osu = {value} }}\n")


@pytest.mark.parametrize("word", ["osu", "osu=", "=3", "osu=x", "osu=0"])
def test_a_flag_that_is_no_limit_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match="--limit-of"):
        asked_campaign({"limit_of": [word]})
