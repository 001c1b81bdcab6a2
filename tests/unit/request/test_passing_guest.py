"""Which of a user's variables a guest is given, and what is said of the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mpigraft.core.model import Bind, BindKind, GuestKind
from mpigraft.graft.engines import apptainer, mounts, podman
from mpigraft.request import environment
from mpigraft.request.environment import UserEnvironment, filter_environment
from tests.builders.messages import shows
from tests.builders.plans import label, plan, seat

USERS = {  # that look like a tool's, and are not
    "EBEAM": "5", "EBUS": "1", "CONDAX": "1", "MODULES_N": "4", "BASHFOO": "1", "SPACK_X": "1",
    "EB": "1", "EBROOT": "1", "MODULE": "m", "SHELLY": "1", "PS9": "1", "HOMEBREW": "x",
    "DISPLAYED": "1", "LMOD": "1", "XDGX": "1", "PYENV": "1", "MY_PATHS": "/nowhere", "N": "",
    "SPACK_ROOTS": "1", "_X": "1", "PWDX": "1", "APPTAINER_BINDPATH": "/a:/mnt",
    "SINGULARITY_BINDPATH": "/a",  # a site's modules set it: the engine reads it, and no search
}  # fmt: skip
TOOLS = (
    "EBROOTGCC", "EBVERSIONGCC", "EBDEVELGCC", "EBEXTSLISTPYTHON", "EASYBUILD_PREFIX",
    "CONDA_PREFIX", "CONDA_PREFIX_1", "_CE_CONDA", "_CE_M", "_CONDA_EXE", "_CONDA_ROOT",
    "MAMBA_EXE", "MAMBA_ROOT_PREFIX", "VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT", "PYENV_ROOT",
    "PYTHONHOME", "LMOD_CMD", "__LMOD_REF_COUNT_PATH", "_ModuleTable001_", "_ModuleTable_Sz_",
    "_LMFILES_", "_LMFILES_001", "LOADEDMODULES", "MODULESHOME", "MODULES_CMD", "MODULE_VERSION",
    "MODULE_VERSION_STACK", "__MODULES_LMALTNAME", "MODULES_LMPREREQ", "CPATH_modshare",
    "__Init_Default_Modules", "MODULERCFILE", "SPACK_ROOT", "SPACK_ENV", "SPACK_ENV_VIEW",
    "SPACK_LOADED_HASHES", "SPACK_USER_CACHE_PATH", "SPACK_DISABLE_LOCAL_CONFIG", "_sp_shell",
    "BASH", "BASH_ENV", "BASHOPTS", "SHELLOPTS", "SHELL", "SHLVL", "_", "PWD", "OLDPWD", "PS1",
    "HOSTNAME", "PROMPT_COMMAND", "XDG_DATA_DIRS", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY",
    "XAUTHORITY", "SSH_TTY", "SSH_CONNECTION",
)  # fmt: skip


def nowhere(path: str) -> bool:
    raise AssertionError(f"{path}: only a ...PATH is looked at")


def given(environ: dict[str, str], same: Any = nowhere) -> tuple[tuple[str, ...], dict[str, str]]:
    """Names that a guest whose image sets LANG is given, and why others are not."""
    into, found = (
        filter_environment(environ).for_guest().reaching(("OMPI_*", "TERM"), ["LANG"], same)
    )
    return into, dict(found.dropped)


def test_a_users_own_variables_reach_a_guest() -> None:
    assert given(USERS) == (tuple(sorted(USERS)), {})


def test_what_tools_and_shells_keep_of_this_machine_does_not() -> None:
    into, dropped = given({**dict.fromkeys(TOOLS, "/x"), "MINE": "1"})
    assert into == ("MINE",)
    assert sorted(dropped) == sorted(TOOLS)
    assert all(shows(why, "--env NAME=VALUE") for why in dropped.values())


def test_variables_dropped_before_stay_in_the_list() -> None:
    _, dropped = given({"PMI_RANK": "1", "LD_PRELOAD": "/x", "EBROOTGCC": "/x"})
    assert set(dropped) == {"PMI_RANK", "LD_PRELOAD", "EBROOTGCC"}


def test_what_matches_a_pattern_of_the_plan_goes_in_anyway() -> None:
    environ = {"OMPI_MCA_coll_tuned_x": "1", "OMPI_MCA_host_PATH": "/none", "TERM": "xterm"}
    assert given(environ) == ((), {})


@pytest.mark.parametrize(
    "name", ["PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "LD_BIND_NOW"]
)
def test_what_the_guests_own_programs_search_by_stays_out(name: str) -> None:
    into, dropped = given({name: "/tmp"}, lambda _: True)
    assert into == ()
    assert dropped.keys() == {name}
    assert shows(dropped[name], "search by it", "--env NAME=VALUE")


def test_what_the_image_sets_stays_the_images() -> None:
    into, dropped = given({"LANG": "de_DE"})
    assert into == ()
    assert dropped.keys() == {"LANG"}
    assert shows(dropped["LANG"], "image sets it", "--env NAME=VALUE")


@pytest.mark.parametrize("name", ["MY.VAR", "a-b", "1A", "A*", "[x]", "", "A B"])
def test_a_name_that_is_none_for_some_engine_stays_out(name: str) -> None:
    into, dropped = given({name: "1"})
    assert into == ()
    assert shows(dropped[name], "engine", "such a name")


def test_a_function_of_bash_stays_out() -> None:
    _, dropped = given({"BASH_FUNC_ml%%": "() { :; }"})
    assert shows(dropped["BASH_FUNC_ml%%"], "script")


def test_no_flag_is_named_that_refuses_a_secret(tmp_path: Path) -> None:
    environ = {"SSH_AUTH_SOCK": "/tmp/s", "MY_TOKEN_PATH": str(tmp_path), "TOKEN_PATH": "/none"}
    _, dropped = given(environ, lambda _: False)
    assert shows(dropped["SSH_AUTH_SOCK"], "secret")
    assert shows(dropped["MY_TOKEN_PATH"], f"--bind {tmp_path}")
    assert all("--env" not in why for why in dropped.values())


def test_with_this_machines_own_root_all_goes_in_that_has_a_name() -> None:
    environ = {**USERS, "PATH": "/b", "EBROOTGCC": "/x", "A.B": "1", "X_PATH": "/none", "LANG": "C"}
    found = filter_environment(environ).for_guest()
    into, after = found.reaching((), ["LANG"], None)
    assert set(into) == environ.keys() - {"A.B"}
    assert [name for name, _ in after.dropped] == ["A.B"]


def test_a_guest_of_this_machines_root_is_known_by_its_kind() -> None:
    mine = filter_environment({"PYTHONPATH": "/p", "MINE_PATH": "/none"})
    own = plan(label("/usr/bin/app", GuestKind.PROGRAM), "bwrap")
    assert mine.into(own, seat())[0] == ("MINE_PATH", "PYTHONPATH")
    assert mine.into(plan(label("/image"), "bwrap"), seat())[0] == ()


def test_the_image_of_a_plan_and_its_binds_count(tmp_path: Path) -> None:
    mine = filter_environment({"A": "1", "B": "2", "D_PATH": str(tmp_path), "E_PATH": "/usr"})
    of = plan(label("/image", environment=(("A", "0"),)), "podman")
    bound = seat(extra=(Bind(str(tmp_path), str(tmp_path), BindKind.FOLDER),))
    into, after = mine.into(of, bound)
    assert into == ("B", "D_PATH")
    assert [name for name, _ in after.dropped] == ["A", "E_PATH"]


# ------------------------------------------------------------------ ...PATH


def test_a_path_goes_in_when_each_entry_is_the_same_in_the_guest() -> None:
    inside = {"/scratch/a", "/scratch/b"}.__contains__
    assert given({"A_PATH": "/scratch/a:/scratch/b:"}, inside)[0] == ("A_PATH",)
    assert given({"A_PATH": "/scratch/a:/else"}, inside)[0] == ()
    assert given({"A_PATH": ""}, inside)[0] == ("A_PATH",)


def test_a_path_that_stays_out_is_named_with_what_passes_it(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "the other"
    one.mkdir()
    other.mkdir()
    _, dropped = given({"A_PATH": f"{one}:{other}:{one}"}, lambda _: False)
    why, _, what_passes = dropped["A_PATH"].partition("; ")
    assert shows(why, one, "1 more")
    assert shows(what_passes, f"--bind {one} --bind '{other}'", "--env A_PATH=...")


LONG = "/" + "x" * 300


def test_a_folder_at_the_top_is_none_of_a_systems() -> None:
    _, dropped = given({"A_PATH": "/tmp"}, lambda _: False)
    assert shows(dropped["A_PATH"], "--bind /tmp")


def test_a_relative_folder_is_not_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my/own").mkdir(parents=True)
    _, dropped = given({"A_PATH": "my/own"}, lambda _: False)
    assert "--bind" not in dropped["A_PATH"]


@pytest.mark.parametrize("entry", ["/usr", "/etc", "/", "/none", "relative", LONG])
def test_no_bind_is_named_for_what_is_not_here_or_a_systems(entry: str) -> None:
    _, dropped = given({"A_PATH": entry}, lambda _: False)
    there = entry in ("/usr", "/etc", "/")
    begin = "the guest does not have" if there else f"there is no {entry} on"
    assert dropped["A_PATH"].startswith(begin)
    assert dropped["A_PATH"].partition("; ")[2].startswith("--env")  # and no --bind


def test_many_folders_are_not_all_named(tmp_path: Path) -> None:
    for name in "abcde":
        (tmp_path / name).mkdir()
    due = {n: ":".join(str(tmp_path / c) for c in "abcde"[:n]) for n in (4, 5)}
    _, dropped = given({f"N{n}_PATH": value for n, value in due.items()}, lambda _: False)
    assert dropped["N4_PATH"].count("--bind") == 4
    assert "--bind" not in dropped["N5_PATH"]


def test_a_folder_that_is_made_later_is_known_to_be_waited_for(tmp_path: Path) -> None:
    made, due = tmp_path / "made", tmp_path / "due"
    made.mkdir()
    environ = {
        "A_PATH": f"{made}:{due}:",
        "B_PATH": "below",
        "C": "/no",
        "PATH": "/none",
        "EBROOTGCC": "/absent",
    }
    found = filter_environment(environ).reaching((), (), lambda _: False)[1]
    assert found.absent == (str(due), str(Path.cwd() / "below"), "/none")
    assert UserEnvironment((), (), (), (("A_PATH", "why"),)).absent == ()


def test_a_reason_that_many_share_appears_once() -> None:
    found = UserEnvironment((), (), (), (("A", "x"), ("B", "y"), ("C", "x")))
    assert found.why() == [("x", ["A", "C"]), ("y", ["B"])]


# ------------------------------------------------------------------ the same file inside


def tree(tmp_path: Path) -> Path:
    for name in ("scratch/data/sub", "scratch/deep", "home/me", "lustre/data"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "scratch/to-home").symlink_to(tmp_path / "home/me")
    (tmp_path / "scratch/near").symlink_to("data")
    (tmp_path / "scratch/deep/up").symlink_to("../data")
    (tmp_path / "scratch/loop").symlink_to("loop")
    (tmp_path / "work").symlink_to("lustre")
    return tmp_path


def same(host: Path, path: str, *binds: tuple[str, str], cwd: str = "/tmp") -> bool:
    rows = [Bind(str(host / a), str(host / b), BindKind.FOLDER) for a, b in binds]
    return mounts.same_inside(str(host / path) if path else "", rows, cwd)


def test_a_folder_is_the_same_where_it_or_one_above_is_bound(tmp_path: Path) -> None:
    host = tree(tmp_path)
    scratch = ("scratch", "scratch")
    assert same(host, "scratch", scratch)
    assert same(host, "scratch/data", scratch)
    assert same(host, "scratch/data/../data", scratch)
    assert not same(host, "home/me", scratch)
    assert not same(host, "scratch/none", scratch)
    assert not same(host, "scratch/data")


def test_the_working_folder_is_no_exception(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert not mounts.same_inside(str(tmp_path), (), str(tmp_path))
    assert not mounts.same_inside(".", (), str(tmp_path))


def test_a_folder_that_is_bound_elsewhere_or_over_is_not_the_same(tmp_path: Path) -> None:
    host = tree(tmp_path)
    assert not same(host, "scratch/data", ("scratch/data", "home/me"))
    over = (("scratch", "scratch"), ("home/me", "scratch/data"))
    assert not same(host, "scratch/data", *over)
    assert same(host, "scratch/deep", *over)


def test_links_are_followed_as_ranks_do(tmp_path: Path) -> None:
    host = tree(tmp_path)
    scratch, home = ("scratch", "scratch"), ("home", "home")
    assert same(host, "scratch/near", scratch)
    assert same(host, "scratch/near/sub", scratch)
    assert same(host, "scratch/../home/me", scratch, home)
    assert not same(host, "scratch/../home/me", scratch)
    assert same(host, "scratch/deep/up", scratch)
    assert not same(host, "scratch/to-home", scratch)
    assert same(host, "scratch/to-home", scratch, home)
    assert not same(host, "scratch/loop", scratch)


def test_a_link_that_is_bound_itself_is_what_it_leads_to(tmp_path: Path) -> None:
    host = tree(tmp_path)
    assert same(host, "work/data", ("work", "work"))
    assert not same(host, "work/data", ("lustre", "lustre"))


def test_a_relative_entry_is_below_the_working_folder(tmp_path: Path) -> None:
    host = tree(tmp_path)
    rows = [Bind(str(host / "scratch"), str(host / "scratch"), BindKind.FOLDER)]
    assert mounts.same_inside("data", rows, str(host / "scratch"))
    assert not mounts.same_inside("data", rows, str(host / "lustre"))
    assert not mounts.same_inside("a\0b", rows, str(host / "scratch"))


# ------------------------------------------------------------------ what an engine binds itself


def test_apptainers_configuration_and_its_variable_bind(tmp_path: Path) -> None:
    program = tmp_path / "bin/apptainer"
    conf = tmp_path / "etc/apptainer/apptainer.conf"
    for file in (program, conf):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    conf.write_text(
        "#bind path = /no\nbind path = /scratch\n  bind path=/a:/b:ro\nmount tmp = yes\n"
    )
    own = (("APPTAINER_BIND", "/x,/y:/z"), ("SINGULARITY_BINDPATH", "relative,/w"))
    found = apptainer.own_binds(seat(program=str(program), environment=own))
    pairs = [(bind.source, bind.target) for bind in found]
    assert pairs[-5:] == [("/scratch", "/scratch"), ("/a", "/b"), ("/x", "/x"), ("/y", "/z"),
                          ("/w", "/w")]  # fmt: skip
    assert ("/var/tmp", "/var/tmp") in pairs
    conf.write_text("mount tmp = no\n")
    found = apptainer.own_binds(seat(program=str(program)))
    assert [bind.target for bind in found] == ["/proc", "/sys", "/dev"]
    users = tmp_path / "user.conf"
    users.write_text("bind path = /mine\nmount dev = no\n")
    of_user = (("APPTAINER_CONFIG_FILE", str(users)),)
    found = apptainer.own_binds(seat(program=str(program), environment=of_user))
    assert [bind.target for bind in found] == ["/proc", "/sys", "/tmp", "/var/tmp", "/mine"]


def test_what_the_engine_makes_is_no_file_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    here = Bind(str(tmp_path), str(tmp_path), BindKind.FOLDER)
    own = Bind("", str(tmp_path), BindKind.FOLDER)
    assert mounts.same_inside(str(tmp_path / "file"), (here,), "/")
    assert not mounts.same_inside(str(tmp_path / "file"), (own,), "/")


def test_podmans_configuration_binds(tmp_path: Path) -> None:
    conf = tmp_path / "containers.conf"
    conf.write_text('[containers]\nvolumes = ["/scratch:/scratch", "/a:/b:ro", "named:/c"]\n')
    where = seat(environment=(("CONTAINERS_CONF", str(conf)),))
    found = podman.own_binds(where)
    pairs = [(bind.source, bind.target) for bind in found]
    assert pairs[-2:] == [("/scratch", "/scratch"), ("/a", "/b")]
    conf.write_text("no toml")
    assert podman.own_binds(where) == found[:-2]


def test_every_word_of_the_table_is_tried() -> None:
    """A name that was added to the table is added to the list above."""
    whose = {
        w for w, names in environment.HOSTS_OWN if any(names.fullmatch(name) for name in TOOLS)
    }
    assert whose == {w for w, _ in environment.HOSTS_OWN}
