"""What a configuration's modules change, with the real module command on module files of ours."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core import parsers
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import EnvRow, MpiInstall, Scope
from mpigraft.discovery import modules
from mpigraft.discovery.sources.candidate import Host
from mpigraft.discovery.sources.modules import changes_of, environment_of
from tests.builders.configuration import a_machine
from tests.builders.probes import install

LMOD = Path("/usr/share/lmod/lmod/libexec/lmod")

# As the programming environment of a Cray: one network at a time, and the MPI that goes with it.
FILES = {
    "craype-network-ofi.lua": 'family("craype_network")\nsetenv("CRAYPE_NETWORK_TARGET", "ofi")\n',
    "craype-network-ucx.lua": 'family("craype_network")\nsetenv("CRAYPE_NETWORK_TARGET", "ucx")\n',
    "cray-mpich/8.1.29.lua": """
conflict("cray-mpich-ucx")
setenv("CRAY_MPICH_DIR", "/opt/cray/pe/mpich/8.1.29/ofi/gnu/12.3")
setenv("MPICH_OFI_STARTUP_CONNECT", "1")
setenv("MPICH_API_TOKEN", "do not tell")
prepend_path("LD_LIBRARY_PATH", "/opt/cray/pe/mpich/8.1.29/ofi/gnu/12.3/lib")
prepend_path("MANPATH", "/opt/cray/pe/mpich/8.1.29/man")
""",
    "cray-mpich-ucx/8.1.29.lua": """
conflict("cray-mpich")
setenv("CRAY_MPICH_DIR", "/opt/cray/pe/mpich/8.1.29/ucx/gnu/12.3")
prepend_path("LD_LIBRARY_PATH", "/opt/cray/pe/mpich/8.1.29/ucx/gnu/12.3/lib")
""",
    "quiet.lua": "",
}


@pytest.fixture
def bare(tmp_path: Path) -> Host:
    """A machine with Lmod and these module files, none of them loaded."""
    for name, text in FILES.items():
        file = tmp_path / "modulefiles" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    environ = {
        "HOME": str(tmp_path),
        "PATH": "/usr/bin:/bin",
        "MODULEPATH": str(tmp_path / "modulefiles"),
        "LMOD_CMD": str(LMOD),
        "LD_LIBRARY_PATH": "/opt/site/lib",
    }
    return Host(environ=environ)


@pytest.fixture
def cray(bare: Host) -> Host:
    """The same with OFI's modules loaded, as a login shell there has them."""
    return modules.host_with_modules(("craype-network-ofi", "cray-mpich"), bare)


def ranks(rows: tuple[EnvRow, ...]) -> dict[str, str | None]:
    assert {row.source for row in rows} <= {"module"}
    both = [
        {row.name: row.value for row in rows if row.scope is scope}
        for scope in (Scope.LAUNCHER, Scope.RANK)
    ]
    assert both[0] == both[1]
    return both[1]


needs_lmod = pytest.mark.skipif(  # under `make test`, which installs it, its want is a failure
    not LMOD.exists() and "MPIGRAFT_TEST_ALL" not in os.environ, reason="needs Debian's lmod"
)
SWITCH = ("-craype-network-ofi", "-cray-mpich", "craype-network-ucx", "cray-mpich-ucx")


def assert_prefix(given: dict[str, str | None], network: str) -> None:
    """Take out what leads to Cray MPICH over a network."""
    prefix = given.pop("CRAY_MPICH_DIR")
    assert prefix == f"/opt/cray/pe/mpich/8.1.29/{network}/gnu/12.3"
    assert given.pop("LD_LIBRARY_PATH") == f"{prefix}/lib:/opt/site/lib"


@needs_lmod
def test_what_loading_sets(bare: Host) -> None:
    given = ranks(modules.module_rows(("cray-mpich/8.1.29",), bare))
    assert_prefix(given, "ofi")
    assert given == {"MPICH_OFI_STARTUP_CONNECT": "1"}


@needs_lmod
def test_from_ofi_to_ucx_by_modules(cray: Host) -> None:
    """Cray MPICH over UCX, no program linked anew; what OFI's module had set is gone."""
    given = ranks(modules.module_rows(SWITCH, cray))
    assert_prefix(given, "ucx")
    assert given == {"CRAYPE_NETWORK_TARGET": "ucx", "MPICH_OFI_STARTUP_CONNECT": None}
    after = modules.host_with_modules(SWITCH, cray).environ
    assert after["LOADEDMODULES"] == "craype-network-ucx:cray-mpich-ucx/8.1.29"
    assert not [name for name in after if "OFI_STARTUP" in name]


@needs_lmod
def test_a_module_that_is_loaded_already_still_says_what_it_sets(cray: Host, bare: Host) -> None:
    names = ("craype-network-ofi", "cray-mpich")
    assert modules.module_rows(names, cray) == modules.module_rows(names, bare)
    assert modules.module_rows(("quiet",), cray) == ()


@needs_lmod
@pytest.mark.parametrize(
    ("names", "says"),
    [
        (("nowhere",), "module load nowhere: .*unknown"),
        (("cray-mpich", "cray-mpich-ucx"), "cray-mpich"),  # they conflict
        (("cray-mpich", "-nowhere"), None),  # nothing to unload is no error
        (("quiet", "-quiet"), None),
    ],
)
def test_a_load_that_fails_quotes_the_module_command(
    bare: Host, names: tuple[str, ...], says: str | None
) -> None:
    if says is None:
        modules.module_rows(names, bare)
        return
    with pytest.raises(MissingError, match=says) as caught:
        modules.module_rows(names, bare)
    assert "spider" in caught.value.fix


def test_without_a_module_command(tmp_path: Path) -> None:
    host = Host(environ={"HOME": str(tmp_path), "PATH": str(tmp_path)})
    with pytest.raises(MissingError, match="no module command to load cray-mpich"):
        modules.module_rows(("cray-mpich",), host)


def command(folder: Path, body: str) -> Host:
    tool = folder / "modulecmd"
    tool.write_text(f"#!/bin/sh\n{body}\n")
    tool.chmod(0o755)
    return Host(environ={"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(folder)})


def test_environment_modules_speak_the_same(tmp_path: Path) -> None:
    """What modulecmd 5.2 prints for Python, kept."""
    host = command(
        tmp_path,
        "cat <<'END'\nimport os\nos.environ['LD_LIBRARY_PATH'] = '/opt/x/lib'\n"
        "os.environ['XX'] = '1'\nos.environ['LOADEDMODULES'] = 'x/1'\n_mlstatus = True\nEND",
    )
    assert ranks(modules.module_rows(("x",), host)) == {"LD_LIBRARY_PATH": "/opt/x/lib", "XX": "1"}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("exit 1", "module load x: exit code 1"),
        ("echo no such thing >&2; exit 1", "module load x: no such thing"),
        ("echo '_mlstatus = False'", "module load x: exit code 0"),
        ("true", "module x is not loaded after `module load x`"),
        ("printf '\\377\\000'", "module x is not loaded"),
    ],
)
def test_a_module_command_that_fails_or_lies(tmp_path: Path, body: str, says: str) -> None:
    with pytest.raises(MissingError, match=says):
        modules.module_rows(("x",), command(tmp_path, body))


def test_what_a_module_command_prints_is_read_and_not_run(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    host = command(
        tmp_path,
        f"cat <<'END'\nimport os\nos.system('touch {trap}')\n"
        "os.environ['LOADEDMODULES'] = 'x/1'\nos.environ['A'] = os.environ['HOME']\nEND",
    )
    assert modules.module_rows(("x",), host) == ()
    assert not trap.exists()


# ------------------------------------------------------------------ words and keys


def test_words_of_a_set() -> None:
    words = ("-cray-mpich", "cray-mpich-ucx/8.1.29")
    assert modules.parse(f"{words[0]}, {words[1]},") == words
    assert modules.label(SWITCH) == ",".join(SWITCH[2:])
    assert modules.label(("-cray-mpich",)) == "-cray-mpich"


@pytest.mark.parametrize("text", ["", " , ", "--force", "a b", "-", "a;b", "$(id)", "a\nb", "/x"])
def test_what_is_no_module_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        modules.parse(text)


@given(st.text())
def test_any_text_is_words_or_a_usage_error(text: str) -> None:
    try:
        words = modules.parse(text)
    except UsageError:
        return
    assert words
    assert modules.parse(",".join(words)) == words
    assert not any(word.startswith("--") for word in words)


def rank(name: str, value: str | None) -> EnvRow:
    return EnvRow(name, value, Scope.RANK, "module")


def test_a_key_holds_values_and_contents_and_no_places(tmp_path: Path) -> None:
    file = tmp_path / "params.conf"
    file.write_text("pml = cm\n")
    rows = (
        rank("A", "1"),
        rank("GONE", None),
        rank("ROOT", "/opt/one"),
        rank("FILE", str(file)),
        EnvRow("A", "1", Scope.LAUNCHER, "module"),
    )
    first = modules.row_content(rows)
    assert [name for name, _ in first] == ["A", "GONE", "ROOT", "FILE"]
    assert str(tmp_path) not in str(first)
    elsewhere = modules.row_content((*rows[:2], rank("ROOT", "/opt/two"), *rows[3:]))
    assert elsewhere == first
    file.write_text("pml = ob1\n")
    assert modules.row_content(rows) != first
    assert modules.row_content((rank("A", "2"), *rows[1:])) != first
    assert modules.row_content((rank("GONE", ""),)) != modules.row_content((rank("GONE", None),))


# ------------------------------------------------------------------ Python of a module command


def test_the_last_of_a_name_counts() -> None:
    said = "import os\nos.environ['A'] = ''\ndel os.environ['A']\nos.environ['B'] = 'b'\n"
    assert changes_of(said) == {"A": None, "B": "b"}
    assert environment_of(said) == {"B": "b"}


def test_more_output_than_is_parsed_is_no_module_without_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = 'os.environ["A"] = "a"\n' * 9
    assert changes_of(said) == {"A": "a"}
    monkeypatch.setattr(parsers, "MAX_MARKS", 20)
    with pytest.raises(parsers.TooMuch):
        changes_of(said)


@given(st.text())
def test_any_text_changes_something_or_nothing(text: str) -> None:
    for name, value in changes_of(text).items():
        assert isinstance(name, str)
        assert value is None or isinstance(value, str)


@given(st.dictionaries(st.text(min_size=1), st.one_of(st.none(), st.text())))
def test_what_is_written_is_read(changes: Mapping[str, str | None]) -> None:
    lines = [
        f"del os.environ[{name!r}]" if value is None else f"os.environ[{name!r}] = {value!r}"
        for name, value in changes.items()
    ]
    assert changes_of("import os\n" + "\n".join(lines)) == changes


# ------------------------------------------------------------------ MPIs that modules bring


@needs_lmod
def test_sets_of_modules_bring_mpis_of_their_own(
    bare: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Discover is told what is in PATH and in the variables; only MPIs chosen by these remain."""
    base = install("openmpi@4.1.4", source="debian", libmpi=Path("/usr/lib/libmpi.so.40"))

    def seen(host: Host, devices: object) -> tuple[tuple[MpiInstall, ...], tuple[()]]:
        place = Path(host.environ["CRAY_MPICH_DIR"])
        mine = install("cray-mpich@8.1.29", source="cray", prefix=place, libmpi=place / "libmpi.so")
        return (base, mine), ()

    monkeypatch.setattr("mpigraft.discovery.inventory.discover_mpis", seen)
    machine = a_machine(base)
    ofi, ucx = "craype-network-ofi,cray-mpich", "craype-network-ucx,cray-mpich-ucx"
    found = modules.module_mpis(machine, (ofi, ucx), bare).mpis
    assert [m.id.partition("(")[2] for m in found] == [f"{ofi})", f"{ucx})"]
    assert [m.prefix.parts[-3] for m in found] == ["ofi", "ucx"]
    for mpi, network in zip(found, ("ofi", "ucx"), strict=True):
        set_by = {r.name: r.value for r in mpi.environment if r.source == "module"}
        assert set_by["CRAYPE_NETWORK_TARGET"] == network
    assert modules.module_mpis(machine, (), bare) is machine


@needs_lmod
def test_a_set_that_brings_no_mpi_is_refused(bare: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    base = install("openmpi@4.1.4", source="debian", libmpi=Path("/usr/lib/libmpi.so.40"))
    monkeypatch.setattr("mpigraft.discovery.inventory.discover_mpis", lambda *_: ((base,), ()))
    with pytest.raises(MissingError, match="quiet: they bring no MPI"):
        modules.module_mpis(a_machine(base), ("quiet",), bare)
