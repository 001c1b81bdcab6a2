"""What EasyBuild's module does, the module in the other language does too."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.build.modules import (
    LUA,
    TCL,
    ModuleText,
    Statement,
    read_module,
    render_lua,
    render_tcl,
    write_both,
    write_settings,
)

# Both are of EasyBuild 5.4.1.
EASYBUILDS_LUA = """help([==[

Description
===========
carries the bytes
]==])

whatis([==[Description: carries the bytes]==])

local root = "/opt/x/software/libfabric/2.1.0-gnu"

conflict("libfabric")
depends_on("libuv/1.50.0-gnu")

prepend_path("CMAKE_PREFIX_PATH", root)
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("MANPATH", pathJoin(root, "share", "man"))
setenv("EBROOTLIBFABRIC", root)
setenv("EBVERSIONLIBFABRIC", "2.1.0")

-- Built with EasyBuild version 5.4.1
"""
EASYBUILDS_TCL = """#%Module
proc ModulesHelp { } {
    puts stderr {

Description
===========
carries the bytes
    }
}

module-whatis {Description: carries the bytes}

set root /opt/x/software/libfabric/2.1.0-gnu

conflict libfabric

if { ![ is-loaded libuv/1.50.0-gnu ] } {
    module load libuv/1.50.0-gnu
}

prepend-path\tCMAKE_PREFIX_PATH\t\t$root
prepend-path\tLD_LIBRARY_PATH\t\t$root/lib
prepend-path\tMANPATH\t\t$root/share/man
setenv\tEBROOTLIBFABRIC\t\t"$root"
setenv\tEBVERSIONLIBFABRIC\t\t"2.1.0"

# Built with EasyBuild version 5.4.1
"""
ROOT = "/opt/x/software/libfabric/2.1.0-gnu"
DOES = (
    Statement("conflict", "libfabric"),
    Statement("load", "libuv/1.50.0-gnu"),
    Statement("prepend", "CMAKE_PREFIX_PATH", ROOT),
    Statement("prepend", "LD_LIBRARY_PATH", f"{ROOT}/lib"),
    Statement("prepend", "MANPATH", f"{ROOT}/share/man"),
    Statement("set", "EBROOTLIBFABRIC", ROOT),
    Statement("set", "EBVERSIONLIBFABRIC", "2.1.0"),
)


@pytest.mark.parametrize("text", [EASYBUILDS_LUA, EASYBUILDS_TCL])
def test_what_easybuilds_module_does_is_read(text: str) -> None:
    module = read_module(text)
    assert module.statements == DOES
    assert module.text == "Description\n===========\ncarries the bytes"


names = st.from_regex(r"[A-Za-z][A-Za-z0-9_./+-]{0,12}", fullmatch=True)
values = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), max_size=12)
paths = st.builds(Statement, st.sampled_from(["prepend", "append", "set"]), names, values)
others = st.builds(Statement, st.sampled_from(["load", "conflict"]), names)


@given(st.lists(paths | others))
def test_both_languages_are_read_as_they_were_meant(statements: list[Statement]) -> None:
    module = ModuleText("", tuple(statements))
    assert read_module(render_lua(module)).statements == module.statements
    assert read_module(render_tcl(module)).statements == module.statements


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    read_module(text)
    read_module(f"#%Module\n{text}")


def test_the_other_language_is_written_beside(tmp_path: Path) -> None:
    place = tmp_path / "2.1.0-gnu"
    place.with_name("2.1.0-gnu.lua").write_text(EASYBUILDS_LUA)
    write_both(place, LUA)
    assert read_module(place.read_text()).statements == DOES
    place.with_name("2.1.0-gnu.lua").unlink()
    write_both(place, TCL)
    assert read_module(place.with_name("2.1.0-gnu.lua").read_text()).statements == DOES


def test_settings_load_their_mpi(tmp_path: Path) -> None:
    place = tmp_path / "OpenMPI-ofi-lnx/5.0.7-gnu"
    links = "shm+cxi:cxi0|shm+cxi:cxi1"
    module_of_mpi = (Path("/opt/all"), "OpenMPI/5.0.7-gnu")
    write_settings(place, module_of_mpi, {"FI_LNX_PROV_LINKS": links}, ["proven"])
    for ending in (LUA, TCL):
        module = read_module(place.with_name(place.name + ending).read_text())
        assert module.statements == (
            Statement("prepend", "MODULEPATH", "/opt/all"),
            Statement("load", "OpenMPI/5.0.7-gnu"),
            Statement("set", "FI_LNX_PROV_LINKS", links),
        )
