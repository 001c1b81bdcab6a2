"""The facts behind check as data, and that the page of docs has every finding."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mpigraft
from mpigraft.core.errors import UsageError
from mpigraft.core.messages import message_of
from mpigraft.graft.check.fit import FIRST, REST
from mpigraft.knowledge import load_document
from mpigraft.knowledge.fit import rows as fit
from mpigraft.knowledge.reader import read_table
from mpigraft.launch.launchers.registry import LAUNCHERS
from tools.document_findings import uses

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/reference/check.md").read_text(encoding="utf-8")
SOURCES = sorted((Path(mpigraft.__file__).parent / "graft/check").glob("*.py"))


def test_every_finding_is_on_the_page_with_its_level() -> None:
    made = {
        use.code: {message_of(use.code).level}
        for use in uses()
        if use.path in SOURCES and use.kind == "Finding"
    }
    assert len(made) > 30
    rows = dict(re.findall(r"^\| (`[a-z0-9`, -]+`) \| (\w+) \|", PAGE, re.MULTILINE))
    told = {code: level for codes, level in rows.items() for code in re.findall(r"[\w-]+", codes)}
    assert {code: {told.get(code)} for code in made} == made
    elsewhere = {"host-over-guest", "guest-serves", "private-copy"}  # codes given as arguments
    assert set(told) - set(made) == elsewhere | {"cxx-symbols", "fortran-symbols"}


def test_every_part_is_on_the_page() -> None:
    rows = re.findall(r"^\| (\w+) \| ", PAGE, re.MULTILINE)
    assert [name for name in rows if name in {**FIRST, **REST}] == [*FIRST, *REST]


# ------------------------------------------------------------------ fit.toml


def test_every_launcher_is_known() -> None:
    assert {world.launcher for world in fit.fit_facts().worlds} == {*LAUNCHERS, "srun"}


@pytest.mark.parametrize(
    ("launcher", "family", "release", "spoken", "alone"),
    [
        ("prrte", "openmpi", "5.0.7", (), False),
        ("prrte", "openmpi", "4.1.4", ("pmix",), True),
        ("prrte", "mpich", "4.0.2", ("pmi1",), True),
        ("prrte", "mpich", "4.2.0", ("pmi1", "pmix"), False),
        ("orte", "openmpi", "5.0.11", (), False),
        ("orte", "intel", "2021.18.1", (), True),
        ("hydra", "mpich", "5.0.2", (), False),
        ("hydra", "intel", "2021.18.1", (), False),
        ("hydra", "openmpi", "5.0.11", (), True),
        ("srun", "openmpi", "4.1.4", ("pmix",), False),
        ("srun", "mpich", "4.0.2", ("pmi2",), False),
        ("srun", "mpich", "4.0.2", ("pmi1",), False),  # PMI-2 of Slurm speaks it too
        ("srun", "openmpi", "4.1.4", ("pmi1",), None),
        ("hydra", "cray-mpich", "8.1.29", (), None),
        ("orte", "openmpi", "3.1.6", (), None),
    ],
)
def test_who_starts_whom(
    launcher: str, family: str, release: str, spoken: tuple[str, ...], alone: bool | None
) -> None:
    known = fit.known_world(launcher, family, release, spoken)
    assert (known.alone if known else None) is alone


@pytest.mark.parametrize(
    ("symbol", "module", "compilers"),
    [
        ("__mpi_f08_types_MOD_mpi_comm", "mpi_f08", {"gfortran"}),
        ("__mpi_sizeofs_MOD_mpi_sizeof_ch", "mpi_f08", set()),
        ("mpi_f08_types_mp_eq_", "mpi_f08", {"Intel Fortran"}),
        ("_QMmpi_f08Pmpi_init", "mpi", {"Flang"}),
        ("mpi_sizeof_ch$mpi_sizeofs_", "mpi", {"Cray Fortran"}),
        ("mpi_f08_MP_mpi_init", "mpi", {"NAG Fortran"}),
        ("mpi_init_f08_", "mpi", set()),
        ("__solver_MOD_step", "mpi", set()),
    ],
)
def test_compilers_by_the_names_that_they_give(
    symbol: str, module: str, compilers: set[str]
) -> None:
    assert fit.compilers_of_symbols([symbol], module) == compilers


def test_compilers_by_their_libraries() -> None:
    assert fit.compilers_of_libraries(["libgfortran.so.5", "libm.so.6"]) == {"gfortran"}
    assert fit.compilers_of_libraries(["libflang_rt.runtime.so", "libifcoremt.so.5"]) == {
        "Flang",
        "Intel Fortran",
    }
    assert fit.compilers_of_libraries(["libfi.so.2", "libfabric.so.1", "libf.so"]) == set()


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("compiler", {"mangled": "("}),
        ("compiler", {"mangled": "no_group"}),
        ("compiler", {"runtime": ["("]}),
        ("compiler", {"sources": []}),
        ("compiler", {"odd": 1}),
        ("world", {"family": ["lam"]}),
        ("world", {"pmi": "pmi3"}),
        ("world", {"when": "5"}),
        ("gpu", {"vendor": 3}),
    ],
)
def test_a_wrong_row_is_named(kind: str, change: dict[str, object]) -> None:
    data = {key: [dict(row) for row in rows] for key, rows in load_document("fit.toml").items()}
    data[kind][0].update(change)
    with pytest.raises(UsageError, match=rf"fit\.toml, {kind} 1, key {next(iter(change))}"):
        read_table(fit.FitFacts, data, "fit.toml")


VALUES = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["name", "runtime", "family", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["compiler", "world", "gpu", "x"]), VALUES))
def test_any_table_is_read_or_refused(data: dict[str, Any]) -> None:
    try:
        found = read_table(fit.FitFacts, data, "fit.toml")
    except UsageError:
        return
    assert found.compilers == ()  # nothing that was drawn is a whole row
