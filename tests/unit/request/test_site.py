"""A site's profile: what it says, who may change it, and what is wrong with it, with the line."""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.errors import UsageError
from mpigraft.request import CampaignSpec, JobPlacement, RunSpec, asked_for, site
from tests.builders.messages import matches, shows


def read(folder: Path, text: str) -> site.Site:
    path = folder / "site.toml"
    path.write_text(text)
    return site.read_site({"MPIGRAFT_SITE": str(path)})


def values_of(found: site.Site) -> dict[str, Any]:
    """What [run] says, by key."""
    return {key: found.value(key) for key, _ in found.lines if key in site.KEYS}


def merged(found: site.Site, **options: object) -> RunSpec:
    return found.merged(asked_for(RunSpec, options))


def test_no_profile_says_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(site, "PLACE", tmp_path / "none.toml")
    found = site.read_site({})
    assert found == site.Site(tmp_path / "none.toml")
    due = RunSpec(mpi="intel", sources=(("mpi", "command line"),))
    assert merged(found, mpi="intel", ranks=None) == due


def test_one_that_was_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="MPIGRAFT_SITE"):
        site.read_site({"MPIGRAFT_SITE": str(tmp_path / "none.toml")})


def test_every_value_has_its_line(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        '# ours\n[run]\nmpi = "openmpi@5"\n\nranks = 4\nbind = ["/scratch"]\nproof = true\n'
        'env = { A_B = "1", C = 2 }\n[policy]\nfixed = ["mpi"]\n',
    )
    where = str(tmp_path / "site.toml")
    assert values_of(found) == {
        "mpi": "openmpi@5", "ranks": 4, "bind": ("/scratch",), "proof": True,
        "env": ("A_B=1", "C=2"),
    }  # fmt: skip
    assert dict(found.lines) == {
        "mpi": f"{where}:3", "ranks": f"{where}:5", "bind": f"{where}:6", "proof": f"{where}:7",
        "env": f"{where}:8",
    }  # fmt: skip
    assert found.fixed == ("mpi",)


def test_flags_go_over_the_sites_values_and_lists_are_added(tmp_path: Path) -> None:
    found = read(tmp_path, '[run]\nmpi = "openmpi"\nbind = ["/a"]\nenv = ["X=1"]\n')
    spec = merged(found, mpi="mpich", bind=["/b"], env=None, ranks=2)
    assert (spec.mpi, spec.binds, spec.settings) == ("mpich", ("/a", "/b"), ("X=1",))
    assert spec.where == JobPlacement(ranks=2)
    sources = dict(spec.sources)
    assert sources["mpi"] == sources["ranks"] == "command line"
    assert shows(sources["bind"], "site.toml:3", "command line")
    assert sources["env"].endswith("site.toml:4")


@pytest.mark.parametrize(
    ("key", "value"), [("mpi", "mpich"), ("bind", ["/b"]), ("proof", False), ("ranks", 3)]
)
def test_what_is_fixed_is_not_changed(tmp_path: Path, key: str, value: Any) -> None:
    found = read(tmp_path, f'[run]\nmpi = "openmpi"\nranks = 2\n[policy]\nfixed = ["{key}"]\n')
    with pytest.raises(UsageError, match="not left to users"):
        merged(found, **{key: value})
    same = merged(found, **{key: values_of(found).get(key)})
    assert replace(same, sources=()) == replace(merged(found), sources=())


def test_a_fixed_mpi_is_not_left_out_either(tmp_path: Path) -> None:
    found = read(tmp_path, '[run]\nmpi = "openmpi"\n[policy]\nfixed = ["mpi"]\n')
    with pytest.raises(UsageError, match="--replace nothing is not left") as no:
        merged(found, replace="nothing")
    assert matches(no.value, "site-fixes-replace", where="site.toml:2", listed="openmpi")
    assert merged(found, replace="libfabric").replace == "libfabric"
    open_ = read(tmp_path, '[run]\nmpi = "openmpi"\n')
    assert merged(open_, replace="nothing").replace == "nothing"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[run]\nmpi = "x"\nmpu = "y"\n', ":3: unknown key 'mpu'"),
        ('[run]\n\nranks = "4"\n', ":3: ranks must be a whole number"),
        ("[run]\nranks = 0\n", ":2: ranks is 0"),
        ("[run]\nranks = true\n", ":2: ranks must be"),
        ("[run]\nproof = 1\n", ":2: proof must be true or false"),
        ('[run]\nbind = "/scratch"\n', ":2: bind must be a list of texts"),
        ("[run]\nmpi = 5\n", ":2: mpi must be a text, or a list of texts"),
        ("[run]\nmpi = []\n", ":2: mpi must be a text, or a list of texts"),
        ('[run]\nmpi = ["a", "a"]\n', ":2: mpi must be a text, or a list of texts, each once"),
        ('[run]\nmpi = ["a", ""]\n', ":2: mpi must be a text"),
        ('[run]\nengine_option = ["nv"]\n', ":2: engine_option = ['nv'] is not a list"),
        ('[run]\nengine_option = { docker = ["--nv"] }\n', ":2: engine 'docker' is unknown"),
        ('[run]\nengine_option = { none = ["--nv"] }\n', ":2: engine 'none' is unknown"),
        ('[run]\nengine_option = { podman = "--nv" }\n', ":2: podman must be a list of texts"),
        ('[run]\n[run.engine_option]\npodman = ["nv"]\n', ":2: podman = ['nv'] is not a list"),
        ('[run]\nengine_option = { bwrap = ["-a", "--"] }\n', ":2: bwrap = ['-a', '--'] is not"),
        ('[images]\ngromacs = "apps/g.sif"\n', ":2: gromacs must be an absolute path"),
        ("[images]\ngromacs = 5\n", ":2: gromacs must be an absolute path"),
        ('[images]\n"a/b" = "/g.sif"\n', "'a/b' cannot be an image's alias"),
        ('[images]\n"a:b" = "/g.sif"\n', "'a:b' cannot be an image's alias"),
        ('[run]\nenv = ["NOVALUE"]\n', ":2: --env 'NOVALUE' is not NAME=VALUE"),
        ('[run]\nenv = { MY_TOKEN = "1" }\n', ":2: --env MY_TOKEN: the name looks like a secret"),
        ('# a\n\n[rum]\nmpi = "x"\n', ":3: unknown key 'rum'"),
        ('\nrun = "x"\n', ":2: unknown key 'run'"),
        ("[policy]\nfree = []\n", ":2: unknown key 'free'"),
        ('[policy]\nfixed = ["mpu"]\n', ":2: fixed names 'mpu'"),
        ('[policy]\nfixed = "mpi"\n', ":2: fixed must be a list"),
        ("[run\n", "not a TOML file"),
        ("a = \x01\n", "not a TOML file"),
    ],
)
def test_an_error_names_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text)
    assert str(tmp_path / "site.toml") in caught.value.message
    assert said in caught.value.message


def test_a_list_of_mpis_is_the_sites_and_a_flag_goes_over_it(tmp_path: Path) -> None:
    found = read(tmp_path, '[run]\nmpi = ["cray-mpich", "openmpi@5"]\n')
    assert merged(found).mpi_names == ("cray-mpich", "openmpi@5")
    spec = merged(found, mpi="mpich")
    assert spec.mpi_names == ("mpich",)
    assert spec.source("mpi") == "command line"
    fixed = read(tmp_path, '[run]\nmpi = ["a", "b"]\n[policy]\nfixed = ["mpi"]\n')
    with pytest.raises(UsageError) as no:
        merged(fixed, mpi="b")
    assert matches(no.value, "site-fixes-option", where="site.toml:2", to_value="to a, b")
    assert fixed.fixed_where == {"mpi": f"{tmp_path / 'site.toml'}:2"}


def test_options_of_engines_come_as_they_are_written(tmp_path: Path) -> None:
    text = '[run.engine_option]\napptainer = ["--nv"]\npodman = ["--ulimit", "nofile=1:2"]\n'
    found = read(tmp_path, text)
    due = ("apptainer=--nv", "podman=--ulimit", "podman=nofile=1:2")
    assert merged(found).engine_options == due
    assert merged(found, engine_option=["--rocm"]).engine_options == (*due, "--rocm")
    with pytest.raises(UsageError, match=r"--engine-option = \['rocm'\] is not a list of options"):
        merged(found, engine_option=["rocm"])


def test_a_campaign_in_a_container_has_the_sites_engine_and_its_options(tmp_path: Path) -> None:
    text = '[run]\nengine = "podman"\nengine_option = { podman = ["--ulimit", "host"] }\n'
    found = read(tmp_path, text)
    spec = found.with_defaults(CampaignSpec(image="app.sif", engine_options=("--privileged",)))
    assert spec.engine == "podman"
    assert spec.engine_options == ("podman=--ulimit", "podman=host", "--privileged")
    assert found.with_defaults(CampaignSpec(image="app.sif", engine="bwrap")).engine == "bwrap"
    assert found.with_defaults(CampaignSpec()).engine_options == ()


def test_a_campaign_in_a_container_has_the_sites_binds(tmp_path: Path) -> None:
    found = read(tmp_path, f'[run]\nbind = ["{tmp_path}:/data:ro", "{tmp_path}/none"]\n')
    spec = found.with_defaults(CampaignSpec(image="app.sif", bind=("/own",)))
    assert spec.bind == (f"{tmp_path}:/data:ro", "/own"), "what is not here is left out"
    assert found.with_defaults(CampaignSpec(bind=("/own",))).bind == ("/own",)


def test_an_alias_stands_for_an_image(tmp_path: Path) -> None:
    text = '[images]\ngromacs = "/apps/g.sif"\n"lmp-2" = "docker://site/lmp:2"\n'
    found = read(tmp_path, text)
    where = str(tmp_path / "site.toml")
    assert found.image("gromacs") == ("/apps/g.sif", f"{where}:2")
    assert found.image("lmp-2") == ("docker://site/lmp:2", f"{where}:3")
    for word in ("./gromacs", "/gromacs.sif", "", "docker://x", str(tmp_path)):
        assert found.image(word) == (word, "")
    with pytest.raises(UsageError, match="lmp: no such file") as no:
        found.image("lmp")
    assert matches(no.value, "image-missing", or_alias=f"or an image of {where}: gromacs, lmp-2")
    assert shows(found.known_images(), where, "gromacs", "lmp-2")
    assert merged(found, image="gromacs").sources == (("image", "command line"),)
    assert site.Site(tmp_path).known_images() == ""


def test_a_file_that_anybody_may_write_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text("[run]\n")
    path.chmod(0o666)
    with pytest.raises(UsageError, match="not safe to use"):
        site.read_site({"MPIGRAFT_SITE": str(path)})


@pytest.mark.parametrize("make", ["folder", "huge"])
def test_what_is_no_small_file_is_refused(tmp_path: Path, make: str) -> None:
    path = tmp_path / "site.toml"
    if make == "folder":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(10 * 1024**3)
    with pytest.raises(UsageError):
        site.read_site({"MPIGRAFT_SITE": str(path)})


@given(st.text(max_size=200))
def test_any_text_is_a_profile_or_is_refused(tmp_path_factory: Any, text: str) -> None:
    folder = tmp_path_factory.getbasetemp()
    path = folder / "any.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with contextlib.suppress(UsageError):  # nothing else may come out
        found = site.read_site({"MPIGRAFT_SITE": str(path)})
        assert isinstance(found, site.Site)


@given(
    st.dictionaries(
        st.sampled_from(["mpi", "transport", "engine"]),
        st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=12),
    )
)
def test_texts_come_back_as_they_were_written(
    tmp_path_factory: Any, values: dict[str, str]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    lines = [f"{k} = '''{v}'''" for k, v in values.items() if "'" not in v]
    path = folder / "texts.toml"
    path.write_text("\n".join(["[run]", *lines, ""]))
    found = site.read_site({"MPIGRAFT_SITE": str(path)})
    assert values_of(found) == {k: v for k, v in values.items() if "'" not in v}


def test_a_campaign_uses_the_sites_builds_unless_it_names_its_own(tmp_path: Path) -> None:
    found = read(tmp_path, '[bench]\nosu = ["/apps/osu", "/apps/osu2"]\nimb = "/apps/imb"\n')
    spec = found.with_defaults(CampaignSpec(osu=("/mine",)))
    assert (spec.osu, spec.imb) == (("/mine",), ("/apps/imb",))
    assert found.with_defaults(CampaignSpec()).osu == ("/apps/osu", "/apps/osu2")
    with pytest.raises(UsageError, match=r"site\.toml:3: 'osu' is not an absolute path"):
        read(tmp_path, '[bench]\nimb = "/a"\nosu = "osu"\n')
    with pytest.raises(UsageError, match=r"site\.toml:2.*unknown key"):
        read(tmp_path, '[bench]\napp = "x"\n')


PAGE = Path(__file__).parents[3] / "docs/howto/site.md"


def test_the_page_of_profiles_has_the_keys_and_flags_of_the_code(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", text, re.MULTILINE))
    assert rows.keys() == set(site.KEYS)
    for key, flags in rows.items():
        assert f"`{site.flag_of_key(key)}`" in flags, key
    builds = re.search(r"^`\[bench\]` has (.*?):", text, re.MULTILINE)
    assert builds
    assert re.findall(r"`(\w+)`", builds[1]) == [*site.BENCH]
    example = text.partition("```toml\n")[2].partition("```")[0]
    assert values_of(read(tmp_path, example)).keys() <= rows.keys()
    tables = re.findall(r"^\[(\w+)[].]", example, re.MULTILINE)
    assert tables == list(site.TABLES)
