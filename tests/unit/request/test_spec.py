"""A spec from flags, a TOML file or a stored plan: the same keys, refused in the same way."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.errors import UsageError
from mpigraft.core.parsers import DOTTED
from mpigraft.core.serialize import canonical
from mpigraft.request.options import options_of
from mpigraft.request.spec import (
    CampaignSpec,
    asked_campaign,
    override_spec,
    read_spec,
    spec_from,
    stored_spec,
)
from tests.builders.messages import matches, shows
from tests.hang import no_hang


def written(folder: Path, text: str) -> Path:
    path = folder / "campaign.toml"
    path.write_text(text)
    return path


def test_a_file_says_what_flags_can(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        name = "night"
        mpi = ["openmpi", "mpich@5.0.2"]
        transport = "ofi-tcp"
        rounds = 20
        ms_per_size = 5
        timing = "osu"
        [env]
        FI_TCP_IFACE = "lo"
        """,
    )
    spec = read_spec(path)
    assert spec.mpi == ("openmpi", "mpich@5.0.2")
    assert spec.transport == ("ofi-tcp",)
    assert spec.rounds == 20
    assert spec.budget_ms == 5
    assert spec.like == "osu"
    assert spec.variables == (("FI_TCP_IFACE", "lo"),)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("rounds = [", "end of document"),
        ("\n\nrounds = = 3", "line 3"),
        ("\nround = 6", "toml:2: unknown key 'round'"),
        ("name = 'a'\n\nrounds = 'six'", "toml:3: rounds must be a whole number, not 'six'"),
        ("rounds = true", "rounds must be a whole number, not true"),
        ("rounds = 6.0", "rounds must be a whole number"),
        ("quick = 1", "quick must be true or false"),
        ("rounds = -6", "rounds is -6"),
        ("rounds = 10_001", "rounds is 10001\nwhat to do: .* at most 10,000"),
        ("rounds = 99999999999", "rounds is 99999999999"),
        ("seed = 9223372036854775808", "seed is 9223372036854775808"),
        ("max = 1e6", "max must be a whole number"),
        ("max = 5_000_000_000_000", "at most 4,398,046,511,104"),
        ("max = '5TiB'", "max is 5497558138880\nwhat to do: .* at most 4,398,"),
        (
            "max = '4XB'",
            "max must be a number of bytes, .* not '4XB'\nwhat to do: .* max = \"4MiB\"",
        ),
        ("max = '0K'", "max is 0\nwhat to do: give a number above 0"),
        ("min = ''", "min must be a number of bytes, .* not ''"),
        ("min = " + 5000 * "9", "not a TOML file"),
        ("x = " + 3000 * "[" + 3000 * "]", "not a TOML file"),
        ("ms_per_size = nan", "ms_per_size is nan"),
        ("ms_per_size = inf", "ms_per_size is inf"),
        ("limit = inf", "limit is inf"),
        ("\nlimit = -nan", "toml:2: limit is"),
        ("\nlimit = 0", "toml:2: limit is 0"),
        ("rounds = 0", "toml:1: rounds is 0"),
        ("[env]\nA = 1\n'B' = true", "toml:3: env.B must be a text or a number, not true"),
        ("B = 1\n[env]\nB = [1]", "toml:1: unknown key"),
        ("[env]\nA = 1\n[env.B]\nC = 1", "toml:3: env.B must be a text or a number, not {"),
        ("name = 'B'\nenv = { A = 1, B = false }", "toml:2: env.B must be"),
        ("env.A = 1\nenv.B = 2026-01-01", "toml:2: env.B must be"),
        ("mpi = [1, 2]", "list of texts"),
        ("buffers = 'disk'", "one of: host, cuda, rocm"),
    ],
)
def test_a_bad_file_is_refused_with_its_name_and_place(
    tmp_path: Path, text: str, seen: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError, match=seen) as caught:
        read_spec(path)
    assert str(path) in str(caught.value)
    assert caught.value.fix or matches(caught.value, "not-toml")


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        (".".join("a" * 40) + " = 1", "a key of more than 32 parts on line 2"),
        (f"[{'.'.join('a' * 40)}]", "a key of more than 32 parts on line 2"),
        ("x = {" + " . ".join(["'a b'", '"."'] * 20) + " = 1}", "a key of more than 32 parts"),
        ("#" * (1 << 20), "more than 1,048,576 bytes of TOML"),
    ],
)
def test_a_file_over_budget_is_refused(tmp_path: Path, text: str, claim: str) -> None:
    path = written(tmp_path, "\n" + text)
    with pytest.raises(UsageError, match=f"{re.escape(str(path))} has {claim}") as caught:
        read_spec(path)
    assert caught.value.code == "file-over-budget"


@pytest.mark.parametrize(
    "text",
    [
        ".".join("a" * 32) + " = 1",
        "x = '" + ".".join(["a b"] * 40) + "'",
        "x" * (1 << 19),
        '"' * (1 << 19),
        "'" * (1 << 19),
        "x " * (1 << 18),
        "x." * 31 + " " * (1 << 19),
    ],
)
def test_long_texts_are_searched_once(tmp_path: Path, text: str) -> None:
    with no_hang():
        assert DOTTED.search(text) is None


def test_a_file_that_is_not_text_or_not_there_is_refused(tmp_path: Path) -> None:
    binary = tmp_path / "b.toml"
    binary.write_bytes(b"\xff\x00\xfe")
    for path in (binary, tmp_path / "none.toml", tmp_path):
        with pytest.raises(UsageError):
            read_spec(path)


def test_flags_are_laid_over_the_file() -> None:
    file = CampaignSpec(rounds=10, mpi=("mpich",), validate=True)
    spec = override_spec(
        file, asked_campaign({"rounds": 6, "mpi": None, "name": "", "validate": False})
    )
    assert spec.rounds == 6
    assert not spec.name
    assert spec.mpi == ("mpich",)
    assert not spec.validate


def test_flags_undo_what_a_file_says() -> None:
    file = CampaignSpec(validate=False, quick=True, buffers="cuda", min_size=8)
    back = {"validate": True, "quick": False, "buffers": "host", "min": 1}
    assert override_spec(file, asked_campaign(back)) == CampaignSpec()
    assert override_spec(file, asked_campaign(dict.fromkeys(back))) == file
    assert override_spec(file, asked_campaign({"mpi": [], "env": ()})) == file


@pytest.mark.parametrize(
    ("key", "flag"),
    [
        ("min", "--min"),
        ("max", "--max"),
        ("rounds", "--rounds"),
        ("ms_per_size", "--ms-per-size"),
        ("limit", "--limit"),
    ],
)
def test_a_flag_of_0_or_less_is_refused_by_its_name(key: str, flag: str) -> None:
    for number in (0, 0.0, -1) if key in ("ms_per_size", "limit") else (0, -1):
        with pytest.raises(UsageError, match=f"^{flag} is {number:g}\n") as caught:
            asked_campaign({key: number})
        assert "command line" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8", 8),
        ("8B", 8),
        ("64K", 65536),
        ("4 MiB", 4 << 20),
        ("4MB", 4 << 20),
        ("4G", 4 << 30),
        ("1TiB", 1 << 40),
    ],
)
def test_sizes_have_units(tmp_path: Path, text: str, size: int) -> None:
    """As mpigraft-bench reads them, by 1024; the same in a file and on the command line."""
    assert read_spec(written(tmp_path, f"max = '{text}'\n")).max_size == size
    assert asked_campaign({"max": text}).value.max_size == size


def test_a_size_on_the_command_line_is_refused_in_the_words_of_its_flag() -> None:
    with pytest.raises(UsageError, match=r"^--max must be .* not '4XB'\nwhat to do: .*--max 4MiB$"):
        asked_campaign({"max": "4XB"})


@pytest.mark.parametrize(
    ("key", "given", "values"),
    [
        ("mpi", ["openmpi@5,mpich@5"], ("openmpi@5", "mpich@5")),
        ("mpi", ["/opt/a,b/lib/libmpi.so"], ("/opt/a,b/lib/libmpi.so",)),
        ("transport", ["ob1-sm,ofi-tcp", "ucx,ob1-sm"], ("ob1-sm", "ofi-tcp", "ucx")),
        ("layout", ["1x2,1x4:numa"], ("1x2", "1x4:numa")),
        ("ranks_per_node", ["2, 8", "16"], (2, 8, 16)),
        ("mpi", ["openmpi , mpich", " intel"], ("openmpi", "mpich", "intel")),
        ("bind_to", ["core,none"], ("core", "none")),
    ],
)
def test_one_flag_may_have_several_values(
    key: str, given: list[str], values: tuple[object, ...]
) -> None:
    spec = asked_campaign({key: given}).value
    assert getattr(spec, key) == values


@pytest.mark.parametrize(
    ("key", "given", "why"),
    [
        ("transport", "ob1-sm,", "--transport is empty"),
        ("layout", ",1x2", "--layout is empty"),
        ("mpi", "openmpi, ,mpich", "--mpi is empty"),
        ("nodes", "1,two", "--nodes must be a whole number or several, not '1,two'"),
        ("nodes", "1,1.5", "for example --nodes 2"),
        ("nodes", "1,0", "--nodes is 0"),
        ("threads", "9" * 400, "--threads must be a whole number"),
    ],
)
def test_a_list_with_a_wrong_value_is_refused(key: str, given: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        asked_campaign({key: [given]})
    assert shows(str(caught.value), why)


def test_settings_of_a_table_are_texts_and_numbers(tmp_path: Path) -> None:
    path = written(tmp_path, "[env]\nA = 'x'\nB = 2\nC = 0.5\n")
    assert read_spec(path).variables == (("A", "x"), ("B", "2"), ("C", "0.5"))


def test_settings_need_a_name_and_never_carry_a_secret() -> None:
    assert CampaignSpec(env=("B=2", "A=x=y")).variables == (("A", "x=y"), ("B", "2"))
    for word in ("FI_TCP_IFACE", "=3", "A B=3", "A;rm=1"):
        with pytest.raises(UsageError, match="NAME=VALUE"):
            _ = CampaignSpec(env=(word,)).variables
    with pytest.raises(UsageError, match="secret"):
        _ = CampaignSpec(env=("API_TOKEN=planted",)).variables


words = st.text(min_size=1, max_size=8)


@given(
    mpi=st.lists(words).map(tuple),
    rounds=st.integers(0, 999),
    budget=st.floats(0, 100, allow_nan=False),
    quick=st.booleans(),
)
def test_a_stored_spec_comes_back_the_same(
    mpi: tuple[str, ...], rounds: int, budget: float, quick: bool
) -> None:
    spec = CampaignSpec(
        mpi=mpi, rounds=rounds, budget_ms=budget, quick=quick, looks=(9, 14), like="osu",
        min_size=8, max_size=64, limit_s=60.0, limits=("osu=9",), engine_options=("--nv",),
    )  # fmt: skip
    assert stored_spec(json.loads(canonical(spec)), "stored") == spec


def test_keys_of_a_campaign_file_are_the_names_of_the_flags_of_bench() -> None:
    for key, one in options_of(CampaignSpec).items():
        first = (one.rules.names or (one.flag,))[0]
        assert first.partition("/")[0].removeprefix("--").replace("-", "_") == key


@pytest.mark.parametrize("key", ["budget_ms", "looks", "like", "limit_s", "max_size", "limits"])
def test_a_campaign_file_has_no_names_of_fields(tmp_path: Path, key: str) -> None:
    with pytest.raises(UsageError, match=f"unknown key '{key}'"):
        read_spec(written(tmp_path, f"{key} = 9\n"))


def test_a_stored_request_of_an_older_version_is_read(tmp_path: Path) -> None:
    stored = {"set": ["A=1"], "guest": ["native", "container"], "image": "app.sif"}
    spec = stored_spec(stored, "the submission")
    assert (spec.env, spec.guest) == (("A=1",), ("native", "own"))
    assert read_spec(written(tmp_path, "guest = 'native, container'\n")).guest == spec.guest
    with pytest.raises(UsageError, match="unknown key 'set'"):
        spec_from({"set": ["A=1"]}, "a file")
