"""Settings of a campaign file, the command line, a stored plan and a site's profile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.errors import UsageError
from mpigraft.core.serialize import canonical
from mpigraft.request.job.spec import RunSpec
from mpigraft.request.options import COMMAND_LINE, asked_for
from mpigraft.request.settings import RequestedSetting
from mpigraft.request.site import read_site
from mpigraft.request.spec import (
    CampaignSpec,
    asked_campaign,
    override_spec,
    read_spec,
    spec_from,
    stored_spec,
)
from tests.builders.messages import matches

RING = """
[setting.ring]
env = { ON = 1, B = "x y" }
unset = ["UCX_TLS"]
files = { RULES = "ring.rules" }
launcher = ["--mca", "plm", "ssh"]
for = ["openmpi", "ob1-sm"]
"""


def typed(*words: str) -> tuple[RequestedSetting, ...]:
    return spec_from({"setting": list(words)}, COMMAND_LINE).setting


def test_a_file_has_a_table_for_each(tmp_path: Path) -> None:
    path = tmp_path / "campaign.toml"
    path.write_text(RING)
    (ring,) = read_spec(path).setting
    assert ring.variables == (
        ("B", "x y"), ("ON", "1"), ("UCX_TLS", None),
    )  # fmt: skip
    assert ring.paths == (("RULES", str(tmp_path / "ring.rules")),)
    assert (ring.launcher, ring.within) == (("--mca", "plm", "ssh"), ("openmpi", "ob1-sm"))


def test_a_command_line_has_a_short_form() -> None:
    (one,) = typed("big:A=1 'B=x y' -C")
    assert (one.name, one.variables) == ("big", (("A", "1"), ("B", "x y"), ("C", None)))
    assert typed("tls:UCX_TLS=self,tcp")[0].variables == (("UCX_TLS", "self,tcp"),)


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=12)


@given(st.dictionaries(st.from_regex(r"[A-D]{1,3}", fullmatch=True), TEXTS, min_size=1))
def test_a_setting_is_read_again_from_its_words_and_from_a_plan(values: dict[str, str]) -> None:
    one = RequestedSetting(tuple(f"{k}={v}" for k, v in values.items()), ("E",), name="n")
    assert typed(str(one)) == (one,)
    plan = json.loads(canonical(CampaignSpec(setting=(one,))))
    assert stored_spec(plan, "stored plan").setting == (one,)


def test_a_flag_comes_before_the_file_s_of_one_name(tmp_path: Path) -> None:
    path = tmp_path / "campaign.toml"
    path.write_text(RING + '[setting.other]\nenv = ["A=1"]\n')
    asked = asked_campaign({"setting": ["ring:C=3"]})
    other, ring = override_spec(read_spec(path), asked).setting
    assert (other.name, ring.variables) == ("other", (("C", "3"),))


@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("empty:", "setting-empty"),
        ("twice:A=1 -A", "setting-variable-twice"),
        ("word:A", "env-invalid"),
        ("secret:API_TOKEN=x", "env-secret"),
        ("other:LD_PRELOAD=/x.so", "setting-other-mpi"),
        ("other:OPAL_PREFIX=/x", "setting-other-mpi"),
        ("name:-1A", "setting-variable-name"),
        ("plain:A=1", "setting-name-reserved"),
        ("srun:A=1", "setting-name-reserved"),
        ("a b:A=1", "named-table-name"),
        ("quote:A='1", "value-invalid"),
        ("x={env=1}", "value-type"),
        ("x={envi=['A=1']}", "option-unknown-key"),
        ("x={env=['A=1'], for=['openmi']}", "setting-for-unknown"),
        ("x={launcher=['-n', '4']}", "setting-launcher-words"),
        ("x={launcher=['-x', 'A']}", "setting-launcher-words"),
        ("x={launcher=['prog']}", "setting-launcher-words"),
        ("x={env=", "named-table-not-toml"),
        ("x=3", "named-table-form"),
        ("nowhere.toml:x", "file-unusable"),
    ],
)
def test_what_cannot_be_measured_is_refused(word: str, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        typed(word)
    assert caught.value.code == code


def test_two_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError) as caught:
        typed("a:A=1", "a:B=2")
    assert caught.value.code == "named-table-twice"
    app = 'a={command="x", figure="(.)", better="lower"}'
    with pytest.raises(UsageError) as caught:
        spec_from({"app": [app, app]}, COMMAND_LINE)
    assert caught.value.code == "named-table-twice"


def test_a_wrong_key_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "campaign.toml"
    path.write_text("rounds = 3\n[setting.a]\nenv = ['A=1']\nunsett = ['B']\n")
    with pytest.raises(UsageError) as caught:
        read_spec(path)
    assert matches(
        caught.value, "option-unknown-key", source=f"{path}:4", near="did you mean unset? "
    )


def test_a_site_has_settings_by_name(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text('[setting.big]\nenv = { A = "1" }\nfiles = { R = "r.txt" }\n')
    site = read_site({"MPIGRAFT_SITE": str(path)})
    job = site.merged(asked_for(RunSpec, {"setting": ["big"]}))
    assert job.setting[0].variables == (("A", "1"),)
    assert job.setting[0].paths == (("R", str(tmp_path / "r.txt")),)
    assert site.with_defaults(CampaignSpec(setting=typed("big"))).setting == job.setting
    with pytest.raises(UsageError) as caught:
        site.merged(asked_for(RunSpec, {"setting": ["bigg"]}))
    assert matches(caught.value, "setting-missing", word="bigg", near="did you mean big? ")


def test_a_file_of_settings_is_remembered_as_their_origin(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(RING)
    (ring,) = typed(f"{path}:ring")
    assert (ring.origin, ring.name) == (path, "ring")
    with pytest.raises(UsageError) as caught:
        typed(f"{path}:rin")
    assert caught.value.code == "setting-missing"
