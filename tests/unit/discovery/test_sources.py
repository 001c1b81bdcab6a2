"""Where MPIs are found, on machines with much software and none of it started."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core import cache
from mpigraft.core.model import EnvRow, Family, Scope
from mpigraft.discovery.sources import cray, debian, easybuild, modules, path, spack
from mpigraft.discovery.sources.candidate import Candidate, Host, find_libmpi
from mpigraft.discovery.sources.registry import SOURCES
from tests.builders.machine_trees import launcher, plant, put
from tests.builders.messages import shows

pytestmark = pytest.mark.usefixtures("home")


def rank(rows: Iterable[EnvRow]) -> dict[str, str | None]:
    return {r.name: r.value for r in rows if r.scope is Scope.RANK}


def prefixes(found: Iterable[Candidate], root: Path) -> list[str]:
    return [str(c.prefix.relative_to(root)) for c in found]


# ------------------------------------------------------------------ Cray PE


def test_cray_gives_the_loaded_one_then_one_of_each_version_and_network(tmp_path: Path) -> None:
    found = list(cray.find(plant("slingshot-amd", tmp_path)))
    below = [name.removeprefix("opt/cray/pe/mpich/") for name in prefixes(found, tmp_path)]
    due = "8.1.27/ofi/gnu/9.1 8.1.23/ofi/crayclang/10.0 8.1.27/ofi/gnu/9.1 8.1.27/ucx/gnu/9.1"
    assert below == [*due.split(), "9.0.1/ofi/gnu/12.3"]
    assert found[0].origin.startswith("CRAY_")
    assert {c.family for c in found} == {Family.CRAY_MPICH}
    assert found[-1].libmpi is not None
    assert "gnu_123" in found[-1].libmpi.name
    assert found[-1].version == "9.0.1"


def test_cray_libraries_come_before_the_systems_default(tmp_path: Path) -> None:
    first = next(iter(cray.find(plant("slingshot-amd", tmp_path))))
    top = tmp_path / "opt/cray/pe/mpich/8.1.27/ofi/gnu/9.1"
    assert (rank(first.environment)["LD_LIBRARY_PATH"] or "").split(":") == [
        f"{top}/lib-abi-mpich",
        f"{top}/lib",
        f"{tmp_path}/opt/cray/pe/libsci/lib",
        f"{tmp_path}/opt/cray/libfabric/lib64",
    ]


def test_no_cray_is_no_error(tmp_path: Path) -> None:
    assert list(cray.find(Host({}, tmp_path))) == []


# ------------------------------------------------------------------ Spack, EasyBuild


def test_spack_by_its_database(tmp_path: Path) -> None:
    found = list(spack.find(plant("software", tmp_path)))
    assert prefixes(found, tmp_path) == [
        "sw/spack/opt/spack/openmpi-5.0.5-abcdefg",
        "sw/spack/opt/spack/impi-defghij/mpi/2021.12",
    ]
    assert [(c.family, c.version) for c in found] == [
        (Family.OPENMPI, "5.0.5"),
        (Family.INTEL, "2021.12.1"),
    ]
    assert shows(found[0].origin, "openmpi/abcdefg")


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["database", "installs", "spec", "name", "path", "version", "a"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_database_gives_candidates_or_none(document: Any) -> None:
    wrapped = {"database": {"installs": {"h": {"spec": document, "path": "/x"}, "i": document}}}
    for database in (document, {"database": document}, wrapped):
        assert isinstance(list(spack._candidates(Path("/tree"), database)), list)


def test_a_spack_in_path_is_a_spack(tmp_path: Path) -> None:
    host = plant("software", tmp_path)
    launcher(tmp_path / "sw/spack/bin/spack", "0.23")
    found = spack.find(Host({"PATH": str(tmp_path / "sw/spack/bin")}, tmp_path / "x"))
    assert len(list(found)) == 2
    assert host.environ["SPACK_ROOT"]


def test_easybuild_by_what_is_loaded_and_by_its_folders(tmp_path: Path) -> None:
    found = list(easybuild.find(plant("software", tmp_path)))
    assert prefixes(found, tmp_path) == [
        "sw/eb/software/OpenMPI/5.0.3-GCC-13.3.0",
        "sw/eb/software/OpenMPI/4.1.6-GCC-13.2.0",
        "sw/eb/software/OpenMPI/5.0.3-GCC-13.3.0",
        "sw/eb/software/impi/2021.13.0/mpi/2021.13",
    ]
    assert [c.version for c in found] == ["5.0.3", "4.1.6", "5.0.3", "2021.13.0"]
    assert all(c.libmpi for c in found)


# ------------------------------------------------------------------ modules


def test_modules_without_a_module_command_are_read(tmp_path: Path) -> None:
    found = {c.origin.split(":")[0]: c for c in modules.find(plant("software", tmp_path))}
    assert len(found) == 3
    openmpi = found["module openmpi/5.0.5"]
    assert openmpi.libmpi
    assert shows(
        str(openmpi.libmpi), tmp_path / "sw/spack", "openmpi-5.0.5-abcdefg", "libmpi.so.40"
    )
    assert found["module mpi/mpich-x86_64"].prefix == tmp_path / "sw/mpich"
    broken = found["module mpich/4.0"]
    assert broken.libmpi is None
    assert shows(broken.reason, "mpich/4.0", "no libmpi")


def module_command(tmp_path: Path, host: Host, script: str) -> Host:
    tool = tmp_path / "bin/lmod"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    return Host({**host.environ, "LMOD_CMD": str(tool), "PATH": "/usr/bin:/bin"}, host.root)


def test_what_a_load_sets_goes_to_the_ranks(tmp_path: Path) -> None:
    top = tmp_path / "sw/spack/opt/spack/openmpi-5.0.5-abcdefg"
    host = module_command(
        tmp_path,
        plant("software", tmp_path),
        f"""[ "$1 $2 $3" = "python load openmpi/5.0.5" ] || exit 1
echo $$ >> {tmp_path}/asked
cat <<'END'
import os
os.environ["PATH"] = "{top}/bin:/usr/bin";
os.environ["LD_LIBRARY_PATH"] = "/opt/ucx/lib";
os.environ["OMPI_MCA_pml"] = "ucx";
os.environ["LOADEDMODULES"] = "openmpi/5.0.5";
os.environ["_ModuleTable001_"] = "x";
os.environ["CPATH"] = "{top}/include";
os.environ["SITE_API_KEY"] = "hush";
del os.environ["OTHER"]
END""",
    )
    for _ in range(2):
        found = {c.origin.split(":")[0]: c for c in modules.find(host)}
        openmpi = found["module openmpi/5.0.5"]
        given = rank(openmpi.environment)
        assert given.pop("LD_LIBRARY_PATH", "") == f"{top}/lib:/opt/ucx/lib"
        assert given == {"PATH": f"{top}/bin:/usr/bin", "OMPI_MCA_pml": "ucx"}
        assert openmpi.bins[0] == top / "bin"
    assert len((tmp_path / "asked").read_text().split()) == 1  # the second answer was kept


def test_a_load_that_fails_is_a_row_that_says_why(tmp_path: Path) -> None:
    host = module_command(
        tmp_path, plant("software", tmp_path), "echo 'Lmod error: no gcc' >&2; exit 1"
    )
    found = {c.origin.split(":")[0]: c for c in modules.find(host)}
    assert shows(found["module mpich/4.0"].reason, "mpich/4.0", "Lmod error", "no gcc")
    assert found["module openmpi/5.0.5"].libmpi is not None  # its file names the prefix


@pytest.mark.parametrize(
    ("names", "family"),
    [
        ("openmpi OpenMPI gnu12-openmpi hpcx-ompi openmpi-x86_64", Family.OPENMPI),
        ("impi intel-oneapi-mpi", Family.INTEL),
        ("cray-mpich", Family.CRAY_MPICH),
        ("mvapich2", Family.MVAPICH),
        ("mpich", Family.MPICH),
        ("cray-mpich-abi gompi mpi4py openmpisomething HDF5", None),
    ],
)
def test_names_of_modules(names: str, family: Family | None) -> None:
    for name in names.split():
        assert modules.family_of(name) is family, name


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=20), max_size=5))
def test_what_python_would_set_is_what_is_read(sets: dict[str, str]) -> None:
    text = "import os\n" + "".join(f"os.environ[{k!r}] = {v!r};\n" for k, v in sets.items())
    assert modules.environment_of(text) == sets


@given(st.text(max_size=200))
def test_any_text_sets_something_or_nothing(text: str) -> None:
    assert isinstance(modules.environment_of(text), dict)
    assert all(p.is_absolute() for p in modules.named_prefixes(text))


def test_nothing_is_run_of_what_a_module_command_prints(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    text = f"open({str(mark)!r}, 'w')\nos.environ['A'] = open({str(mark)!r}, 'w').name\n"
    assert modules.environment_of(text) == {}
    assert not mark.exists()


# ------------------------------------------------------------------ PATH, Debian


def test_an_mpi_in_path_is_found_by_its_prefix(tmp_path: Path) -> None:
    launcher(tmp_path / "a/bin/mpirun", "anything")
    put(tmp_path, {"a/lib/libmpi.so.40": "?"})
    host = Host({"PATH": f"{tmp_path}/none:{tmp_path}/a/bin", "LD_LIBRARY_PATH": "/own:"}, tmp_path)
    (found,) = path.find(host)
    assert found.prefix == tmp_path / "a"
    assert rank(found.environment) == {"LD_LIBRARY_PATH": f"{tmp_path}/a/lib:/own"}


def test_a_view_of_links_leads_to_the_real_prefix(tmp_path: Path) -> None:
    launcher(tmp_path / "real/bin/mpirun", "anything")
    put(tmp_path, {"real/lib/libmpi.so.12": "?", "view/bin/mpirun": "-> ../../real/bin/mpirun"})
    (found,) = path.find(Host({"PATH": f"{tmp_path}/view/bin"}, tmp_path))
    assert found.prefix == tmp_path / "real"


def test_a_launcher_without_a_library_is_a_broken_mpi(tmp_path: Path) -> None:
    launcher(tmp_path / "a/bin/mpirun", "mpirun (Open MPI) 4.1.6")
    (found,) = path.find(Host({"PATH": f"{tmp_path}/a/bin"}, tmp_path))
    assert (found.family, found.version, found.libmpi) == (Family.OPENMPI, "4.1.6", None)


def test_a_launcher_of_something_else_is_no_mpi(tmp_path: Path) -> None:
    launcher(tmp_path / "pals/bin/mpirun", "mpiexec version 1.2.12 revision 7")
    assert list(path.find(Host({"PATH": f"{tmp_path}/pals/bin"}, tmp_path))) == []


def debian_tree(root: Path, chosen: str) -> Host:
    """Both packages installed, `chosen` by the alternatives, /bin a link as since Debian 12."""
    says = {"openmpi": "mpirun (Open MPI) 4.1.4", "mpich": "HYDRA build details:\n Version: 4.0.2"}
    for name, text in says.items():
        for program in ("mpirun", "mpicc"):
            launcher(root / f"usr/bin/{program}.{name}", text)
    launcher(root / "usr/bin/mpiexec.hydra", says["mpich"])
    libraries = "usr/lib/x86_64-linux-gnu"
    files = {
        f"{libraries}/libmpi.so.40": "?",
        f"{libraries}/libmpich.so.12": "?",
        "usr/bin/mpirun": f"-> ../../etc/alternatives/mpirun-{chosen}",
        f"etc/alternatives/mpirun-{chosen}": f"-> {root}/usr/bin/mpirun.{chosen}",
        "bin": "-> usr/bin",
    }
    put(root, files)
    return Host({"PATH": f"{root}/usr/bin:{root}/bin"}, root)


@pytest.mark.parametrize(
    ("chosen", "family", "library"),
    [
        ("openmpi", Family.OPENMPI, "libmpi.so.40"),
        ("mpich", Family.MPICH, "libmpich.so.12"),
    ],
)
def test_debians_alternatives_say_whose_mpirun_is(
    tmp_path: Path, chosen: str, family: Family, library: str
) -> None:
    found = list(path.find(debian_tree(tmp_path, chosen)))
    first = next(c for c in found if c.suffix)
    assert (first.family, first.suffix) == (family, f".{chosen}")
    assert first.libmpi == tmp_path / f"usr/lib/x86_64-linux-gnu/{library}"
    assert [
        c.origin for c in found if "bin/bin" in c.origin or f"{tmp_path}/bin/" in c.origin
    ] == []


def test_debians_packages_lie_side_by_side(tmp_path: Path) -> None:
    found = list(debian.find(debian_tree(tmp_path, "openmpi")))
    assert [(c.family, c.suffix) for c in found] == [
        (Family.OPENMPI, ".openmpi"),
        (Family.MPICH, ".mpich"),
    ]


# ------------------------------------------------------------------ libraries


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("libmpi.so.40", Family.OPENMPI),
        ("libmpi.so.20", Family.OPENMPI),
        ("libmpi.so.12", Family.MPICH),
        ("libmpich.so.12", Family.MPICH),
        ("libmpi_cray.so.12", Family.CRAY_MPICH),
        ("libmpi_gnu_123.so.12", Family.CRAY_MPICH),
    ],
)
def test_names_of_libraries(tmp_path: Path, name: str, family: Family) -> None:
    put(tmp_path, {f"lib/{name}": "?", "lib/libmpi.so": "?", "lib/libmpi_abi.so.1": "?"})
    assert find_libmpi(tmp_path, family) == tmp_path / "lib" / name
    assert find_libmpi(tmp_path) == tmp_path / "lib" / name


def test_other_libraries_are_none(tmp_path: Path) -> None:
    names = ("libmpi.so", "libmpi_cxx.so.40", "libmpifort.so.12", "libmpi_abi.so.1")
    put(tmp_path, {f"lib/{name}": "?" for name in names})
    assert find_libmpi(tmp_path) is None


def test_a_damaged_answer_in_the_cache_is_no_answer(tmp_path: Path) -> None:
    host = plant("software", tmp_path)
    list(modules.find(host))
    for file in (cache.folders().cache).rglob("*.json"):
        file.write_text(json.dumps({"key": "x"}))
    assert len(list(modules.find(host))) == 3


# ------------------------------------------------------------------ places out of bounds

WORDS = st.lists(
    st.sampled_from(["/", ":", "a", ".", "..", "é", "\udce9", "x" * 300]), max_size=6
).map("".join)
VARIABLES = (
    "PATH", "MODULEPATH", "CRAY_MPICH_DIR", "CRAY_LD_LIBRARY_PATH", "SPACK_ROOT", "HOME",
    "EBROOTOPENMPI", "EASYBUILD_PREFIX", "EESSI_SOFTWARE_PATH", "LD_LIBRARY_PATH",
)  # fmt: skip


@given(environ=st.dictionaries(st.sampled_from(VARIABLES), WORDS))
def test_no_environment_ends_a_source(
    tmp_path_factory: pytest.TempPathFactory, environ: dict[str, str]
) -> None:
    host = Host(environ, tmp_path_factory.getbasetemp() / "no-such-machine")
    for find in SOURCES.values():
        assert isinstance(list(find(host)), list)


@pytest.mark.root
def test_folders_of_other_users_are_passed_over(tmp_path: Path) -> None:
    """Started as nobody: root may look everywhere."""
    closed = tmp_path / "closed"
    put(closed, {"bin/mpirun": "#!/bin/sh", "lib/libmpi.so.40": "?", "modules/openmpi/5": "x"})
    closed.chmod(0o700)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    values = {"PATH": f"{closed}/bin", "MODULEPATH": f"{closed}/modules", "SPACK_ROOT": str(closed),
              "CRAY_MPICH_DIR": str(closed), "EASYBUILD_PREFIX": str(closed)}  # fmt: skip
    host = Host(values, closed)
    child = os.fork()
    if child == 0:
        try:
            os.setuid(65534)
            found = [c for find in SOURCES.values() for c in find(host) if c.libmpi]
            os._exit(0 if not found else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
