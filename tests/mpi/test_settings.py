"""Settings on the real MPIs: their arms, the files that reach ranks, and what is in effect."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mpigraft.bench.settings_in_effect import with_effects
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Machine, SettingState
from mpigraft.request.options import COMMAND_LINE
from mpigraft.request.spec import spec_from
from tests.builders.messages import matches
from tests.mpi.campaigns import SHORT, mpigraft, short
from tests.mpi.test_run import run

pytestmark = pytest.mark.mpi

SM = ("--mpi", "openmpi@5", "--transport", "ob1-sm")


def effects(machine: Machine, mpi: str, transport: str, word: str) -> dict[str, SettingState]:
    setting = spec_from({"setting": [word]}, COMMAND_LINE).setting
    asked = short(
        machine, mpi=(mpi,), transport=(transport,), layout=("1x2",), setting=setting
    )  # fmt: skip
    (found,) = with_effects(asked).effects.values()
    return {one.variable: one.state for one in found}


@pytest.mark.parametrize(
    ("mpi", "transport", "word", "states"),
    [
        (
            "openmpi@5", "ob1-sm", "a:OMPI_MCA_smsc=^cma OMPI_MCA_btl_vader_eager_limit=4095 -A",
            {
                "A": "in effect",
                "OMPI_MCA_btl_vader_eager_limit": "in effect",  # 5.0.11 keeps it as a synonym
                "OMPI_MCA_smsc": "in effect",
            },
        ),
        (
            "mpich@5", "shm-ofi-tcp",
            "a:MPIR_CVAR_BCAST_INTRA_ALGORITHM=binomial FI_TCP_ZEROCOPY_SIZE=11 FI_TCP_X=1",
            {
                "FI_TCP_X": "unknown to this version",
                "FI_TCP_ZEROCOPY_SIZE": "read",
                "MPIR_CVAR_BCAST_INTRA_ALGORITHM": "read",  # MPI_T has a number for it
            },
        ),
        (
            "mpich@5", "shm-ucx", "a:UCX_RNDV_THRESH=65k",
            {"UCX_RNDV_THRESH": "read"},
        ),
        (
            "openmpi@5", "ob1-sm",
            "a:OMPI_MCA_btl_sm_eager_limit=abc OMPI_MCA_btl_sm_max_send_size=64k",
            {
                "OMPI_MCA_btl_sm_eager_limit": "not taken",  # 5.0.11 holds 0
                "OMPI_MCA_btl_sm_max_send_size": "in effect",
            },
        ),
        ("intel", "shm-ofi-tcp", "a:I_MPI_ADJUST_BCAST=1", {"I_MPI_ADJUST_BCAST": "read"}),
    ],
)  # fmt: skip
def test_what_is_in_effect_is_what_the_mpi_says(
    machine: Machine, mpi: str, transport: str, word: str, states: dict[str, str]
) -> None:
    assert effects(machine, mpi, transport, word) == states


def test_mpich_takes_a_file_of_collective_algorithms(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text("{}\n")
    name = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"
    word = f"a={{files={{{name}='{tmp_path}/c.json'}}}}"
    assert effects(machine, "mpich@5", "shm-ofi-tcp", word) == {name: "in effect"}


@pytest.mark.parametrize(
    ("mpi", "transport", "name", "near"),
    [
        ("openmpi@5", "ob1-sm", "OMPI_MCA_btl_vader_single_copy_mechanism", ""),
        ("openmpi@5", "ob1-sm", "MCA_OMPI_pml", "did you mean OMPI_MCA_pml? "),
        ("mpich@5", "shm-ucx", "UCX_RNDV_TRESH", "did you mean UCX_RNDV_THRESH? "),
        ("mpich@5", "shm-ofi-tcp", "MPIR_CVAR_BCAST_INTRA_ALGORITM", ""),
        ("intel", "shm-ofi-tcp", "I_MPI_ADJUST_ALREDUCE", ""),
    ],
)
def test_a_name_that_a_version_does_not_have_is_refused(
    machine: Machine, mpi: str, transport: str, name: str, near: str
) -> None:
    with pytest.raises(UsageError) as caught:
        effects(machine, mpi, transport, f"a:{name}=1")
    assert matches(caught.value, "setting-name-unknown", name=name, near=near)


def test_a_campaign_has_an_arm_for_each_setting(fresh_home: Path, tmp_path: Path) -> None:
    rules = tmp_path / "ring.rules"
    rules.write_text("0\n")
    file = tmp_path / "campaign.toml"
    file.write_text(
        "[setting.ring]\n"
        'env = { OMPI_MCA_coll_tuned_use_dynamic_rules = "1" }\n'
        'files = { OMPI_MCA_coll_tuned_dynamic_rules_filename = "ring.rules" }\n'
    )
    store = ("--store", tmp_path / "store")
    words = (*SM, "--layout", "1x2", "--rounds", "6", "--name", "arms")
    eager = ("--setting", "eager:OMPI_MCA_btl_sm_eager_limit=8192")
    planned = mpigraft(*store, "bench", file, *SHORT, *words, *eager, "--dry-run", "--full")
    assert {"copy", str(rules)} <= {*planned.stdout.split()}
    done = mpigraft(*store, "bench", file, *SHORT, *words, *eager)
    assert done.returncode == 0, done.stderr
    told = json.loads(mpigraft(*store, "results", "show", "arms", "--json").stdout)
    arms = {one["id"].partition("+")[2]: one for one in told["configurations"]}
    assert set(arms) == {"", "ring", "eager"}
    states = {
        name: {s["variable"]: s["state"] for s in one["settings"]} for name, one in arms.items()
    }
    assert states == {
        "": {},
        "eager": {"OMPI_MCA_btl_sm_eager_limit": "in effect"},
        "ring": {
            "OMPI_MCA_coll_tuned_use_dynamic_rules": "in effect",
            "OMPI_MCA_coll_tuned_dynamic_rules_filename": "read",
        },
    }
    compared = json.loads(mpigraft(*store, "compare", "arms", "--json").stdout)
    assert (compared["across"], compared["baseline"]) == ("settings", "plain")
    every = json.loads(
        mpigraft(*store, "compare", "arms", "--json", "--across", "configurations").stdout
    )
    assert every["baseline"] == "openmpi@5.0.11/ob1-sm"
    more = ("bench", "--resume", "arms", "--rounds", "12", "--dry-run")
    longer = mpigraft(*store, *more)
    assert longer.returncode == 0, longer.stderr
    rules.write_text("# other rules\n0\n")
    changed = mpigraft(*store, *more)
    assert changed.returncode == 2
    assert "resume-other-configurations" in changed.stderr


def test_a_job_gets_a_copy_of_a_file_and_a_change_of_it_counts(
    fresh_home: Path, tmp_path: Path
) -> None:
    rules = tmp_path / "r.txt"
    file = tmp_path / "s.toml"
    file.write_text('[setting.a]\nenv = { OWN = "1" }\nfiles = { RULES = "r.txt" }\n')
    show = ("sh", "-c", 'cat "$RULES"; echo "$OWN"')
    words = ("--mpi", "openmpi@5", "-n", 1, "--no-proof", "--setting", f"{file}:a", "--", *show)
    for text in ("first\n", "second\n"):
        rules.write_text(text)
        for _ in range(2):  # the second time from what was kept
            ended = run(*words, env=dict(os.environ))
            assert (ended.returncode, ended.stdout) == (0, f"{text}1\n"), ended.stderr
    file.write_text(file.read_text().replace('"1"', '"2"'))
    assert run(*words, env=dict(os.environ)).stdout == "second\n2\n"


def test_jobs_of_a_setting_with_an_unknown_name_are_not_submitted(
    fresh_home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "campaign.toml"
    words = ("submit", file, "--nodes", "2", "--dry-run", "--scheduler", "slurm")
    text = 'mpi = "openmpi@5"\ntransport = "ob1-sm"\nnodes = 2\n[setting.a]\nenv = ["{}=1"]\n'
    file.write_text(text.format("OMPI_MCA_smcs"))
    refused = mpigraft("--store", tmp_path / "store", *words)
    assert refused.returncode == 2
    assert "[setting-name-unknown]" in refused.stderr
    file.write_text(text.format("OMPI_MCA_smsc"))
    done = mpigraft("--store", tmp_path / "store", *words)
    assert done.returncode == 0, done.stderr
