"""Real guests under real host MPIs: what the check says is what happens.

A covering set of the pairs is tried every day, all of them in the long run.

Every pair is started whatever the check says of it. One that fits has to run, one that is refused
has to fail, and the exceptions stand in LISTED with their cause. The outcome is
docs/reference/grafts.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from testbed import documents
from testbed.engines import Engines
from testbed.images import Images
from testbed.pairs import Outcome, Pair, Tried, covering, pairs, untouched

DOCUMENT = Path(__file__).resolve().parents[2] / "docs/reference/grafts.md"
BEGIN, END = "<!-- made by the tests: begin -->\n", "<!-- made by the tests: end -->\n"
OF_ENGINE = "engine-"  # codes of what is refused of one engine alone
# Pairs of which check and run disagree, each with its cause: {part of a pair's name: cause}.
LISTED: Mapping[str, str] = {
    "bookworm-mpich-app/hello_f08-intel@2021-mpi": "mpi_f08 has no ABI across families and "
    "compilers: what this program calls happens to agree",
    "trixie-app/hello-openmpi@5.0.11-libfabric": "UCX would open modules of another release, "
    "which this program does not need",
}

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]
outcomes: dict[str, Outcome] = {}


@pytest.fixture(scope="module")
def tried(outside: Mapping[str, str]) -> Iterator[Tried]:
    """With the engines of the tests in PATH, and grafts of their own."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in outside.items():
            patch.setenv(name, value)
        yield Tried()


@pytest.fixture(scope="module", autouse=True)
def guests_stay_as_they_are(images: Images) -> Iterator[None]:
    folders = [images.folder(name) for name in ("bookworm", "bullseye")]
    before = [untouched(folder) for folder in folders]
    yield
    assert [untouched(folder) for folder in folders] == before, "something wrote into a guest"


def _image(images: Images, engines: Engines, pair: Pair) -> Path:
    if pair.form == "sif":
        return images.sif(pair.image, engines.apptainer)
    return images.oci(pair.image) if pair.form == "oci" else images.folder(pair.image)


COVERING = covering()
PAIRS = [
    pytest.param(
        pair, id=pair.name, marks=pytest.mark.daily if pair in COVERING else pytest.mark.long
    )
    for pair in pairs()
]


@pytest.mark.parametrize("pair", PAIRS)
def test_what_the_check_says_is_what_happens(
    pair: Pair, images: Images, engines: Engines, tried: Tried
) -> None:
    if reason := engines.available()[pair.engine]:
        pytest.skip(reason)
    if tried.host(pair.host) is None:
        pytest.skip(f"no {pair.host} on this machine")
    outcome = tried.outcome(pair, _image(images, engines, pair))
    outcomes[pair.name] = outcome
    if listed(pair):
        assert not outcome.agrees, "it is listed as an exception and is none"
        return
    said = f"refused ({', '.join(outcome.refused)})" if outcome.refused else "fits"
    assert outcome.agrees, f"check: {said}; run: {outcome.why or 'it ran'}"


def listed(pair: Pair) -> str:
    return next((why for part, why in LISTED.items() if part in pair.name), "")


@pytest.mark.long
def test_the_table_in_the_docs_is_what_was_seen() -> None:
    """Only where every pair could be tried: Debian 12, whose own MPIs are the table's."""
    if len(outcomes) < len(pairs()):
        pytest.skip(f"{len(outcomes)} of {len(pairs())} pairs were tried here")
    documents.hold(DOCUMENT, BEGIN, rows(), END)


def rows() -> Iterator[str]:
    """The table: one row for a program under a host MPI, with each engine that it was tried on."""
    yield "| guest | program | host MPI | replaced | check | engine: outcome |"
    yield "| --- | --- | --- | --- | --- | --- |"
    grouped: dict[tuple[str, ...], list[Outcome]] = {}
    for outcome in outcomes.values():
        pair = outcome.pair
        key = (pair.image, pair.program, pair.host, pair.replace)
        grouped.setdefault(key, []).append(outcome)
    for (image, program, host, what), found in sorted(grouped.items()):
        codes = dict.fromkeys(code for o in found for code in o.refused)
        refused = [code for code in codes if not code.startswith(OF_ENGINE)]
        check = f"refused: {', '.join(refused)}" if refused else "fits"
        check += " (host's glibc goes in)" if any(o.glibc for o in found) else ""
        ran = "; ".join(_outcome(o) for o in found)
        yield f"| {image} | {program} | {host} | {what} | {check} | {ran} |"


def _outcome(outcome: Outcome) -> str:
    pair = outcome.pair
    form = "" if pair.form == "folder" else f" ({pair.form.upper()})"
    said = "runs" if outcome.ran else f"fails: {outcome.why}"
    if own := [code for code in outcome.refused if code.startswith(OF_ENGINE)]:
        said = f"refused ({', '.join(own)}), {said}"
    cause = f" [listed: {listed(pair)}]" if listed(pair) else ""
    return f"{pair.engine}{form}: {said}{cause}".replace("|", "\\|")
