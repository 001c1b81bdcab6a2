"""The page of a profile: what it shows, and that no foreign text becomes markup."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.report.profile.page import render_profile_page
from mpigraft.report.profile.pictures import matrix_picture
from mpigraft.report.profile.text import count, profile_lines, seconds, size, size_range
from mpigraft.trace import PeerTraffic, Profile
from mpigraft.trace.profile.reading import read_profile
from mpigraft.trace.profile.values import CallSite, PeerKind
from tests.builders.messages import shows
from tests.builders.profiles import a_profile

REPORTS = Path(__file__).resolve().parents[2] / "data/profiles"


@pytest.mark.parametrize("ranks", [1, 2, 64, 500])
def test_a_page_has_all_sections_and_one_script(ranks: int) -> None:
    page = render_profile_page(a_profile(ranks))
    sections = re.findall(r'<section id="(\w+)"', page)
    assert sections == ["routines", "ranks", "peers", "sizes", "sites"]
    assert page.count("<script") == 2  # and the figures
    assert shows(page, "default-src", "none")
    assert len(page) < 500_000
    assert render_profile_page(a_profile(ranks)) == page


@pytest.mark.parametrize("path", sorted(REPORTS.glob("*[!d]")), ids=lambda path: path.name)
def test_an_imported_report_makes_a_page_of_what_it_has(path: Path) -> None:
    sections = re.findall(r'<section id="(\w+)"', render_profile_page(read_profile(path)))
    assert "routines" in sections
    assert "peers" not in sections


def test_a_profile_of_nothing_makes_a_page() -> None:
    assert shows(render_profile_page(Profile("app")), "No routine", "counted")
    assert profile_lines(Profile("app")) == ["app: -"]


def test_names_stay_text() -> None:
    evil = "<img src=x onerror=alert(1)>"
    profile = replace(
        a_profile(2), program=evil, hosts=(evil,), notes=(evil,), labels=(("mpi", evil),),
        sites=(CallSite(evil, (evil,), 1, 0.1),),
    )  # fmt: skip
    page = render_profile_page(profile)
    assert "<img" not in page
    assert "&lt;img" in page


def test_cells_of_many_ranks_are_shared_and_no_byte_is_lost() -> None:
    peers = [PeerTraffic(k, (k + 1) % 300, PeerKind.P2P, 1, 100) for k in range(300)]
    picture = matrix_picture(peers, 300, "point to point")
    assert "at most" in picture
    assert matrix_picture([], 300, "none") == ""
    assert matrix_picture([PeerTraffic(0, 1, PeerKind.P2P, 0, 0)], 2, "none") == ""


def test_steps_of_colour_are_factors_of_eight() -> None:
    peers = [PeerTraffic(0, k, PeerKind.P2P, 1, 8**k) for k in range(8)]
    picture = matrix_picture(peers, 8, "steps")
    assert re.findall(r'class="h(\d)"></path>', picture) == ["1", "2", "3", "4"]


def test_figures_as_a_person_reads_them() -> None:
    assert [seconds(x) for x in (None, 0, 2e-9, 1.5e-6, 0.0205, 12.34, 2568.4)] == [
        "-", "0 s", "2 ns", "1.50 us", "20.5 ms", "12.3 s", "2568 s",
    ]  # fmt: skip
    assert [size(x) for x in (None, 0, 1023, 1024, 1536, 5 << 40)] == [
        "-", "0", "1023", "1K", "1.5K", "5T",
    ]  # fmt: skip
    assert [count(x) for x in (None, 7, 999_999, 1_230_000)] == ["-", "7", "999999", "1.23M"]
    assert [size_range(*x) for x in ((0, 0), (1, 1), (2, 3), (512, 1023), (1024, 2047))] == [
        "0", "1", "2-3", "512-1023", "1K-2K",
    ]  # fmt: skip


@pytest.mark.parametrize("ranks", [1, 2, 64, 500])
def test_text_fits_eighty_columns(ranks: int) -> None:
    profile = a_profile(ranks)
    assert max(map(len, profile_lines(profile))) <= 80
