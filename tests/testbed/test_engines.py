"""Each engine starts an image's MPI program: alone, and as ranks of this machine's mpirun.

The words are the test bed's own, so these are long: they run when the test bed changed.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from testbed import rootfs
from testbed.engines import ENGINES, PATH, Bind, Engines, Inside
from testbed.images import Images
from tests.testbed.conftest import Need

pytestmark = [pytest.mark.testbed, pytest.mark.long]
HELLO = "/opt/app/hello"
EVERY = [*ENGINES]
WHO = pytest.mark.parametrize("as_user", [False, True], ids=["root", "user"])
# Debian's Open MPI of each release, and the image that has the same one.
OWN_IMAGE = {"bookworm": "bookworm", "trixie": "trixie"}
LAUNCH = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PMIX_MCA_psec": "native",  # munge is not here
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",  # or a note, where ranks may not share
}


def mpirun(*rank: str) -> list[str]:
    """Two ranks of this machine's Debian Open MPI, on any number of cores."""
    path = shutil.which("mpirun.openmpi", path=PATH)
    if not path or rootfs.own_suite() not in OWN_IMAGE:
        pytest.skip("needs Debian's openmpi-bin, of a release that there is an image of")
    return [path, "-n", "2", "--oversubscribe", "--bind-to", "none", *rank]


def says(rank: int, size: int) -> str:
    return f"RANK {rank} of SIZE {size} LIBRARY Open MPI v"


@WHO
@pytest.mark.parametrize("engine", EVERY)
def test_program_runs_alone(engine: str, as_user: bool, engines: Engines, need: Need) -> None:
    need(engine, as_user=as_user)
    inside = Inside(engines.image("bookworm", engine, as_user=as_user), as_user=as_user)
    done = engines.run(engines.words(engine, inside, HELLO, "3"), as_user=as_user)
    assert done.code == 3, done.text()
    assert says(0, 1) + "4.1.4" in done.text()


@WHO
def test_program_runs_from_a_sif(
    as_user: bool, engines: Engines, images: Images, need: Need
) -> None:
    need("apptainer", as_user=as_user)
    if reason := engines.fuse_for_users():
        pytest.skip(reason)
    inside = Inside(images.sif("bookworm", engines.apptainer), as_user=as_user)
    done = engines.run(engines.words("apptainer", inside, HELLO), as_user=as_user)
    assert done.ok, done.text()
    assert says(0, 1) + "4.1.4" in done.text()


def test_program_runs_from_an_oci_archive(engines: Engines, images: Images, need: Need) -> None:
    need("podman")
    loaded = engines.run(["podman", "load", "--input", images.oci("bookworm")], limit_s=300)
    assert loaded.ok, loaded.text()
    name = loaded.text().rpartition("Loaded image: ")[2].split()[0]
    words = engines.words("podman", Inside(Path("/")), "sh", "-c", f"ls /opt/*; {HELLO}")
    start = words.index("--rootfs")
    done = engines.run([*words[:start], name, *words[start + 2 :]], limit_s=300)
    assert done.ok, done.text()
    assert says(0, 1) + "4.1.4" in done.text()
    assert "/opt/emptied:\nnew\n" in done.text()
    assert "removed" not in done.text()


@pytest.mark.covering
@WHO
@pytest.mark.parametrize("engine", EVERY)
def test_ranks_of_this_machines_mpirun_are_one_world(
    engine: str, as_user: bool, engines: Engines, need: Need
) -> None:
    need(engine, as_user=as_user)
    name = OWN_IMAGE.get(rootfs.own_suite(), "bookworm")
    image = engines.image(name, engine, as_user=as_user)
    words = engines.words(engine, Inside(image, as_user=as_user), HELLO)
    done = engines.run(mpirun(*words), as_user=as_user, env=LAUNCH)
    assert done.ok, done.text()
    assert {rank for rank in range(2) if says(rank, 2) in done.text()} == {0, 1}, done.text()


@WHO
@pytest.mark.parametrize("engine", EVERY)
def test_binds_and_environment_arrive(
    engine: str, as_user: bool, engines: Engines, need: Need
) -> None:
    """A file over a file, and a folder in a folder, whose names are not plain words."""
    need(engine, as_user=as_user)
    outer, inner, file = (engines.folder / f"{part} of {engine} {as_user}" for part in "oif")
    (outer / "sub").mkdir(parents=True)
    inner.mkdir()
    inner.chmod(0o777)
    file.write_text("a bound file\n", encoding="utf-8")
    binds = (Bind(file, "/etc/debian_version"), Bind(outer, "/opt"), Bind(inner, "/opt/sub", True))
    value = "$HOME 'b' c"
    image = engines.image("bookworm", engine, as_user=as_user)
    inside = Inside(image, binds, (("VALUE", value),), as_user=as_user)
    script = 'cat /etc/debian_version; echo "$VALUE"; echo made >/opt/sub/made'
    done = engines.run(engines.words(engine, inside, "sh", "-c", script), as_user=as_user)
    assert done.ok, done.text()
    assert done.stdout.decode() == f"a bound file\n{value}\n", done.text()
    assert (inner / "made").read_text(encoding="utf-8") == "made\n"


@WHO
@pytest.mark.parametrize("engine", ["apptainer", "charliecloud"])
def test_ranks_can_share_a_user_namespace(
    engine: str, as_user: bool, engines: Engines, images: Images, need: Need
) -> None:
    """Without it the kernel lets no rank read another's memory."""
    need(engine, as_user=as_user)
    image = images.folder("bookworm")
    seen = []
    for shared in (False, True):
        inside = Inside(image, as_user=as_user, shared=shared)
        # The program keeps the ranks together: a rank cannot join one that has ended.
        script = f"readlink /proc/self/ns/user; exec {HELLO}"
        words = engines.words(engine, inside, "sh", "-c", script)
        done = engines.run(mpirun(*words), as_user=as_user, env=LAUNCH)
        assert done.ok, done.text()
        seen.append(len({line for line in done.text().splitlines() if line.startswith("user:")}))
    apart = 1 if engine == "apptainer" and not as_user else 2  # root's Apptainer makes none
    assert seen == [apart, 1]


@pytest.mark.parametrize("name", ["bullseye", "bookworm", "bookworm-mpich", "trixie"])
def test_every_program_of_an_image_runs(
    name: str, engines: Engines, images: Images, need: Need
) -> None:
    need("apptainer")
    foreign = {"attach", "hello_mpich5", "hello_abi"}  # of a wheel that no image has
    programs = sorted(p.name for p in (images.folder(name) / "opt/app").iterdir())
    for program in programs:
        words = engines.words("apptainer", Inside(images.folder(name)), f"/opt/app/{program}")
        done = engines.run(words)
        assert done.ok == (program not in foreign), f"{program}: {done.text()}"
        assert ("RANK 0 of SIZE 1 LIBRARY" in done.text()) == done.ok
