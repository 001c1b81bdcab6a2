"""Applications in a campaign file and on the command line, and what is wrong with them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.errors import UsageError
from mpigraft.core.serialize import canonical
from mpigraft.request.apps import App
from mpigraft.request.options import COMMAND_LINE, options_of
from mpigraft.request.spec import (
    CampaignSpec,
    asked_campaign,
    override_spec,
    read_spec,
    spec_from,
    stored_spec,
)

DOCS = Path(__file__).resolve().parents[3] / "docs/reference"
LJ = """
rounds = 3
osu = ["builds/osu", "/opt/osu"]

[app.lj]
command = "./lj -in 'a b.lmp'"
figure = 'Performance: ([\\d.]+)'
unit = "ns/day"
better = "higher"

[app."wall.time"]
command = ["./lj", "-q"]
json = "t.wall"
better = "lower"
folder = "cases/small"
"""


def read(folder: Path, text: str) -> CampaignSpec:
    path = folder / "campaign.toml"
    path.write_text(text)
    return read_spec(path)


def test_a_file_has_a_table_for_each(tmp_path: Path) -> None:
    spec = read(tmp_path, LJ)
    lj, wall = spec.app
    assert (lj.name, lj.command) == ("lj", ("./lj", "-in", "a b.lmp"))
    assert (wall.name, wall.command) == ("wall.time", ("./lj", "-q"))
    assert lj.metric_key == "figure [ns/day] higher"
    assert (lj.folder, wall.folder) == (str(tmp_path), str(tmp_path / "cases/small"))
    assert spec.osu == (str(tmp_path / "builds/osu"), "/opt/osu")


def test_a_plan_keeps_them(tmp_path: Path) -> None:
    spec = read(tmp_path, LJ)
    assert stored_spec(json.loads(canonical(spec)), "stored plan") == spec


def test_the_command_line_has_the_same_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    word = 'lj={command="lj", figure="t=(.)", better="lower"}'
    spec = override_spec(read(tmp_path, LJ), asked_campaign({"app": [word], "imb": ["imb"]}))
    assert [(a.name, a.better) for a in spec.app] == [("wall.time", "lower"), ("lj", "lower")]
    assert spec.imb == (str(tmp_path / "imb"),)
    assert spec.app[1].folder == str(tmp_path)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (('"higher"', '"more"'), r"campaign\.toml:9: better.*more"),
        (("better", "bettr"), r"campaign\.toml:9.*bettr"),
        (("([\\d.]+)", "[\\d.]+"), r"campaign\.toml:5.*one group"),
        (("([\\d.]+)", "([\\d.+)"), r"campaign\.toml:5.*no regular expression"),
        (('"ns/day"', '"[ns]"'), r"campaign\.toml:5.*unit"),
        (("[app.lj]", '[app."l j"]'), r"campaign\.toml:5.*'l j'"),
        (("json = ", "output = "), r"campaign\.toml:11.*either figure or json"),
        (('better = "lower"', ""), r"campaign\.toml:11.*better has to be"),
        (("command = [", "files = ["), r"campaign\.toml:11.*no command"),
        (("./lj -in '", "./lj -in "), r"campaign\.toml:6.*quotation"),
        (('better = "higher"', 'better = "higher"\nsuccess = "("'), r"success = '\('"),
        (('better = "higher"', 'better = "higher"\nenv = ["A"]'), r"'A', which is not NAME=VALUE"),
        (('better = "higher"', 'better = "higher"\nenv.MY_TOKEN = "x"'), r"MY_TOKEN.*secret"),
        (('better = "higher"', 'better = "higher"\nenv.FI_PROVIDER = "tcp"'), r"--env FI_PROVIDER"),
        (('better = "higher"', 'better = "higher"\nenv.LD_PRELOAD = "x"'), r"LD_PRELOAD"),
        (('better = "higher"', 'better = "higher"\nenv.A = true'), r"true"),
    ],
)
def test_an_error_names_file_and_line(
    change: tuple[str, str], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as no:
        read(tmp_path, LJ.replace(*change))
    assert re.search(problem, str(no.value)), no.value


def test_an_application_has_an_environment_of_its_own(tmp_path: Path) -> None:
    text = LJ.replace('unit = "ns/day"', 'env = { A = 1, B = "x=y" }\nmodules = "md/2"')
    lj = read(tmp_path, text).app[0]
    assert (lj.env, lj.modules) == (("A=1", "B=x=y"), ("md/2",))
    assert spec_from({"app": [str(lj)]}, COMMAND_LINE).app == (lj,)


@pytest.mark.parametrize("word", ["lj", "lj=", "=3", "lj=3", "lj={command=}", "lj={}", "a b={}"])
def test_a_word_that_is_no_application_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match="--app"):
        spec_from({"app": [word]}, COMMAND_LINE)


LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
TEXTS = st.text(max_size=5)
JSON = st.recursive(LEAVES, lambda c: st.lists(c, max_size=3) | st.dictionaries(TEXTS, c))


@given(JSON | st.lists(st.text(max_size=20)))
def test_whatever_a_file_has_is_read_or_refused(value: object) -> None:
    try:
        spec_from({"app": value}, "campaign.toml")
    except UsageError:
        return


def test_every_key_is_documented() -> None:
    page = (DOCS / "campaign-file.md").read_text()
    assert [key for key in options_of(CampaignSpec) if f"`{key}`" not in page] == []
    page = (DOCS / "suites.md").read_text()
    assert [key for key in options_of(App) if key != "name" and f"`{key}`" not in page] == []
