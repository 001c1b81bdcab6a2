"""PMI plugins of a Slurm: those that srun lists and that cannot load are told apart."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mpigraft.discovery.sources import pmi
from mpigraft.discovery.sources.candidate import Host
from tests.builders.messages import shows

ELF = Path("/bin/sh").read_bytes()  # any that can be read; what is looked for stands behind it
NAMES = ("pmix", "none", "pmi2")


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A Slurm whose settings name a plugin folder."""
    (tmp_path / "slurm.conf").write_text(f"ClusterName=x\n plugindir = {tmp_path}/a:{tmp_path}/b\n")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    return Host(environ={"SLURM_CONF": str(tmp_path / "slurm.conf")}, root=tmp_path)


def plugin(folder: Path, name: str, *words: str) -> None:
    data = ELF + b"".join(b"\0" + word.encode() for word in words) + b"\0"
    (folder / f"mpi_{name}.so").write_bytes(data)


def loadable(host: Host) -> tuple[tuple[str, ...], str]:
    return pmi.loadable(Path(sys.executable), NAMES, host)


def test_a_plugin_that_is_not_found_stays(host: Host) -> None:
    assert loadable(host) == (NAMES, "")


def test_a_plugin_that_opens_what_is_not_there_is_left_out(host: Host, tmp_path: Path) -> None:
    place = tmp_path / "opt/pmix/lib"
    plugin(tmp_path / "b", "pmix", str(place), "libpmix.so", "/stepd.%d")
    plugin(tmp_path / "b", "pmi2", "/nowhere/lib")
    names, reason = loadable(host)
    assert names == ("none", "pmi2")
    assert shows(reason, "mpi_pmix.so", f"{place}/libpmix.so")
    place.mkdir(parents=True)
    (place / "libpmix.so").write_bytes(ELF)
    assert loadable(host) == (NAMES, "")


def test_a_whole_path_is_understood_too(host: Host, tmp_path: Path) -> None:
    plugin(tmp_path / "a", "pmix", f"{tmp_path}/pmix/libpmix.so")
    names, reason = loadable(host)
    assert "pmix" not in names
    assert shows(reason, f"{tmp_path}/pmix/libpmix.so")


def test_a_plugin_without_a_place_asks_the_loader(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pmi, "OPENED", "libnowhere.so.9")
    plugin(tmp_path / "a", "pmix", "libnowhere.so.9")
    names, reason = loadable(host)
    assert names == ("none", "pmi2")
    assert shows(reason, "opens", "libnowhere.so.9", "not found")
    monkeypatch.setattr(pmi, "OPENED", "libc.so.6")
    assert loadable(host) == (NAMES, "")


def test_what_is_no_library_is_not_judged(host: Host, tmp_path: Path) -> None:
    (tmp_path / "a/mpi_pmix.so").write_bytes(b"libpmix.so")
    assert loadable(host) == (NAMES, "")
    assert pmi.loadable(tmp_path / "absent", NAMES, host) == (NAMES, "")
