"""What libraries and tools print, read: device, components, family."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.model import Family
from mpigraft.discovery.sources import install

OMPI_INFO = """package:Open MPI
mca:btl:self:version:"mca:2.1.0"
mca:btl:self:version:"component:5.0.11"
mca:btl:sm:version:"component:5.0.11"
mca:pml:ob1:version:"component:5.0.11"
mca:mca:base:param:mca_param_files:value:x
mca:btl:self:param:y
"""


def test_components() -> None:
    assert install.components_of(OMPI_INFO) == (("btl", ("self", "sm")), ("pml", ("ob1",)))


@given(st.text(max_size=300))
def test_any_text_has_components_or_none(text: str) -> None:
    names = [name for name, _ in install.components_of(text)]
    assert names == sorted(set(names))


NAMES = st.text("abcdefghijklmnopqrstuvwxyz_0123456789", min_size=1, max_size=8)


@given(st.dictionaries(NAMES, st.sets(NAMES, min_size=1), max_size=4))
def test_components_are_those_that_were_printed(wanted: dict[str, set[str]]) -> None:
    text = "".join(
        f'mca:{framework}:{name}:version:"{word}:1.0"\n'
        for framework, found_names in wanted.items()
        for name in found_names
        for word in ("mca", "api", "component")
    )
    assert dict(install.components_of(text)) == {k: tuple(sorted(v)) for k, v in wanted.items()}


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ("MPICH Device:       ch4:ucx ofi\n", "ch4:ucx,ofi"),
        ("MPICH Device:\tch4:ofi\nMPICH configure: x", "ch4:ofi"),
        ("MPICH Version: 4", ""),
    ],
)
def test_devices(text: str, device: str) -> None:
    assert install.device_of(text) == device


@given(st.text(max_size=200))
def test_any_text_is_a_known_mpi_or_none(text: str) -> None:
    known = install.identify(text)
    assert known is None or (known[0] in set(Family) and known[1])
