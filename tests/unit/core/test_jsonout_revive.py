"""What `plain` wrote is revived as it was, whatever the values."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.model import EnvRow, Evidence, Finding, LaunchRecord, Level, NetLibrary
from mpigraft.core.serialize import plain, revive


@given(st.from_type(Finding) | st.from_type(Evidence) | st.from_type(LaunchRecord))
def test_a_value_comes_back_as_it_was(value: object) -> None:
    assert revive(type(value), plain(value)) == value


def test_paths_and_none_come_back() -> None:
    for path in (Path("/opt/lib/libfabric.so.1"), None):
        library = NetLibrary("libfabric", "2.1", path, ("tcp", "shm"))
        assert revive(NetLibrary, plain(library)) == library


def test_unknown_keys_are_passed_over_and_missing_ones_take_their_default() -> None:
    said = revive(Finding, {"level": "error", "code": "a", "seen": "b", "later": 1})
    assert (said.level.value, said.why) == ("error", "")


@pytest.mark.parametrize(
    ("kind", "value"),
    [(Finding, []), (Finding, {"level": "loud", "code": "", "seen": ""}), (EnvRow, {})],
)
def test_what_cannot_be_such_a_value_is_refused(kind: type, value: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        revive(kind, value)


def test_a_field_is_read_by_its_former_name() -> None:
    old = {"level": "error", "code": "a", "seen": "b", "why": "c", "mend": "d"}
    new = {"level": "error", "code": "a", "message": "b", "why": "c", "fix": "d"}
    assert revive(Finding, old) == revive(Finding, new) == Finding(Level.ERROR, "a", "b", "c", "d")
    assert plain(revive(Finding, old)) == {**new, "evidence": []}
