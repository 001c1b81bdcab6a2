"""Packages of a distribution whose MPI does not work: named from dpkg's database in an image."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpigraft.binary.image.folder import FolderRoot
from mpigraft.core.model import Family, Level, Replace
from mpigraft.graft.guest.os_release import debian_packages, os_release
from tests.builders.fits import own, part, verdict
from tests.builders.guests import C_SYMBOLS, a_guest, a_program, an_abi, library
from tests.builders.messages import matches

UBUNTU = 'PRETTY_NAME="Ubuntu"\nID=ubuntu\nVERSION_ID="{}"\n'


def image(
    folder: Path, release: str, packages: dict[str, str], status: str = "install ok installed"
) -> Path:
    """A folder with os-release and dpkg's database."""
    (folder / "etc").mkdir()
    (folder / "etc/os-release").write_text(UBUNTU.format(release))
    (folder / "var/lib/dpkg").mkdir(parents=True)
    (folder / "var/lib/dpkg/status").write_text(
        "\n".join(
            f"Package: {name}\nStatus: {status}\nArchitecture: amd64\n"
            f"Version: {version}\nDescription: an MPI\n with: colons\n"
            for name, version in packages.items()
        )
    )
    return folder


OPENMPI_25 = {"libopenmpi40": "5.0.7-1", "libpmix2t64": "5.0.6-5"}


@pytest.mark.parametrize(
    ("release", "packages", "broken"),
    [
        ("25.04", OPENMPI_25, "libopenmpi40 5.0.7-1"),
        ("25.04", {"libopenmpi40": "5.0.7-1"}, ""),  # without the distribution's PMIx
        ("25.04", OPENMPI_25 | {"libopenmpi40": "5.0.8-1"}, ""),
        ("24.10", OPENMPI_25, ""),
        ("24.04", {"libmpich12": "4.2.0-5build3"}, "libmpich12 4.2.0-5build3"),
        ("24.04", {"libmpich12t64": "4.2.0-5build3"}, "libmpich12t64 4.2.0-5build3"),
        ("24.04", {"libmpich12": "4.2.0-5.1"}, ""),  # the repaired one
        ("24.10", {"libmpich12": "4.2.0-5build3"}, ""),
        ("24.04", {"libmpich-dev": "4.2.0-5build3"}, ""),
    ],
)
def test_broken_packages_are_named(
    tmp_path: Path, release: str, packages: dict[str, str], broken: str
) -> None:
    root = FolderRoot(image(tmp_path, release, packages))
    uses = library("libmpi.so.12", exported=C_SYMBOLS, needed=("libfabric.so.1", "libc.so.6"))
    guest = a_guest(a_program(("libmpi.so.12",)), uses, library("libfabric.so.1"), base=root)
    mpi = own(Family.MPICH, "4.2.0", pmi=("pmi1", "pmi2"))
    kept = verdict(
        guest, an_abi("mpich@5.0.2", library("libfabric.so.1")), own=mpi, replace=Replace.LIBFABRIC
    )
    replaced = verdict(guest, an_abi("mpich@5.0.2"), own=mpi)
    for fit, level in ((kept, Level.WARNING), (replaced, Level.INFO)):
        found = [f for f in part(fit, "pmi").findings if f.code == "package-broken"]
        assert len(found) == bool(broken)
        if broken:
            assert found[0].level is level
            assert matches(found[0], "package-broken", package=broken, os=f"ubuntu {release}")
            assert part(fit, "pmi").message.endswith(found[0].message)


def test_only_installed_packages_count(tmp_path: Path) -> None:
    root = FolderRoot(
        image(tmp_path, "24.04", {"libmpich12": "4.2.0-5build3"}, "deinstall ok config-files")
    )
    assert os_release(root) == "ubuntu 24.04"
    assert debian_packages(root) == {}
