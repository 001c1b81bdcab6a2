"""Kept evidence is of the same contents, programs, settings and places, or it is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mpigraft.core import fingerprint
from mpigraft.core.model import Allocation, Layout
from mpigraft.evidence import keys as kept_evidence
from mpigraft.evidence.keys import evidence_key
from mpigraft.launch import IN_GUEST
from mpigraft.launch.hosts.allocation import THIS_HOST
from tests.builders.plans import label, plan
from tests.builders.probes import LAYOUT, configuration, with_transport


def test_evidence_is_kept_for_the_same_contents_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "home"))
    boot = tmp_path / "boot_id"
    boot.write_text("first\n")
    monkeypatch.setattr(fingerprint, "BOOT", str(boot))
    programs = cast(Any, SimpleNamespace(digest="d"))
    asking = configuration("openmpi@5.0.11", "ofi-lnx")
    key = evidence_key(asking, LAYOUT, programs)
    assert key == evidence_key(asking, LAYOUT, programs)
    others = [
        evidence_key(replace(asking, key="other"), LAYOUT, programs),
        evidence_key(asking, Layout(ranks_per_node=4), programs),
        evidence_key(with_transport(asking, signs=()), LAYOUT, programs),
        evidence_key(with_transport(asking, env=()), LAYOUT, programs),
        evidence_key(with_transport(asking, probe_env=()), LAYOUT, programs),
        evidence_key(asking, LAYOUT, cast(Any, SimpleNamespace(digest="e"))),
    ]
    (tmp_path / ".openmpi").mkdir()
    (tmp_path / ".openmpi" / "mca-params.conf").write_text("btl = self,tcp\n")
    others.append(evidence_key(asking, LAYOUT, programs))
    boot.write_text("second\n")
    others.append(evidence_key(asking, LAYOUT, programs))
    bare = replace(asking, transport=None, mpi=None)  # neither is known: a key all the same
    others.append(evidence_key(bare, LAYOUT, programs))
    monkeypatch.setattr(fingerprint, "BOOT", str(tmp_path / "no boot_id"))
    others.append(evidence_key(asking, LAYOUT, programs))
    assert len({key, *others}) == len(others) + 1


def test_evidence_of_one_graft_is_none_of_another() -> None:
    programs = cast(Any, SimpleNamespace(digest="d"))
    asking = configuration("openmpi@5.0.11", "ofi-lnx")
    guest = label("/images/app")
    grafts = [None, *(plan(guest, "bwrap", key=key) for key in ("one", "another"))]
    keys = {evidence_key(replace(asking, graft=graft), LAYOUT, programs) for graft in grafts}
    assert len(keys) == len(grafts)


def test_evidence_is_kept_by_the_libraries_that_no_other_key_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A campaign's configuration has their contents in its own key; a guest's are the image's."""
    monkeypatch.setenv("HOME", str(tmp_path))
    libmpi = tmp_path / "libmpi.so.40"
    monkeypatch.setattr(kept_evidence, "mpi_libraries", lambda _: (libmpi,))
    programs = cast(Any, SimpleNamespace(digest="d"))
    asking = replace(configuration("openmpi@5.0.11", "ofi-lnx"), libraries=())
    assert asking.mpi is not None
    own = replace(asking, mpi=replace(asking.mpi, source=IN_GUEST))
    named = replace(asking, libraries=(("libmpi.so.40", "0" * 64),))
    for one, counts in ((asking, True), (own, False), (named, False)):
        keys = set()
        for content in ("before", "after"):
            libmpi.write_text(content)
            keys.add(evidence_key(one, LAYOUT, programs))
        assert (len(keys) == 2) is counts


def test_what_is_proven_of_some_nodes_is_not_of_others() -> None:
    asked = configuration("openmpi@5.0.11", "ob1-tcp")
    programs = cast(Any, SimpleNamespace(digest="d"))
    job = Allocation(("n1", "n2"), "Slurm job 7", job="7")
    others = (job, replace(job, hosts=("n1", "n3")), replace(job, job="8"), THIS_HOST)
    keys = [evidence_key(asked, LAYOUT, programs, nodes) for nodes in others]
    assert len({*keys}) == len(keys)
    renamed = replace(THIS_HOST, hosts=("else",))  # this host alone is known by its boot
    assert evidence_key(asked, LAYOUT, programs, renamed) == keys[-1]
