"""mpigraft-gpu-select gives each rank what is its own on its node, and becomes the program."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpigraft.launch.gpu_select import encode_word
from mpigraft.native.programs import GPU_SELECT
from tests.native.native_world import compile_program

SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
SHOW = ("sh", "-c", 'echo "${A-unset} ${B-unset}"')


@pytest.fixture(scope="module", params=["prebuilt", "sanitized"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if request.param == "prebuilt":
        programs: Path = request.getfixturevalue("programs")
        return programs / GPU_SELECT
    return compile_program(
        GPU_SELECT, tmp_path_factory.mktemp("gpu_select") / "gpu_select", *SANITIZED
    )


def sit(
    program: Path, *words: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    own = {"PATH": "/usr/bin:/bin", **(env or {})}
    return subprocess.run([program, *words], env=own, capture_output=True, text=True, timeout=30)


def test_each_rank_gets_the_value_of_its_number(program: Path) -> None:
    words = ("--rank", "NOBODY,LOCAL", "--set", "A=4/5/2", "--set", "B=0,1//3", "--", *SHOW)
    said = [sit(program, *words, env={"LOCAL": str(n), "B": "old"}).stdout for n in range(3)]
    assert said == ["4 0,1\n", "5 unset\n", "2 3\n"]


def test_the_first_variable_that_is_set_counts(program: Path) -> None:
    words = ("--rank", "X,Y", "--set", "A=a/b", "--", *SHOW)
    assert sit(program, *words, env={"X": "1", "Y": "0"}).stdout == "b unset\n"


def test_the_program_takes_its_place(program: Path) -> None:
    words = ("--rank", "X", "--set", "A=/", "--", "sh", "-c", "exit 7")
    assert sit(program, *words, env={"X": "0"}).returncode == 7
    gone = sit(program, "--rank", "X", "--", "/no/such", env={"X": "0"})
    assert (gone.returncode, gone.stderr) == (
        127,
        "mpigraft-gpu-select: /no/such: No such file or directory\n",
    )
    assert sit(program, "--rank", "X", "--", "/", env={"X": "0"}).returncode == 126


@pytest.mark.parametrize(
    ("words", "rank", "said"),
    [
        (("--rank", "X,Y", "--set", "A=1", "--", "true"), None, "none of X,Y is set"),
        (("--rank", "X", "--set", "A=1/2", "--", "true"), "2", "no value for rank 2"),
        (("--rank", "X", "--set", "A=1", "--", "true"), "-0", "which is no rank's number"),
        (("--rank", "X", "--set", "A=1", "--", "true"), "99999999999999999999", "no rank's number"),
        (("--rank", "X", "--set", "=1", "--", "true"), "0", "is not VARIABLE=VALUE"),
        (("--rank", "X", "--set", "A", "--", "true"), "0", "is not VARIABLE=VALUE"),
        (("--rank", "X", "--other", "A", "--", "true"), "0", "--other is not known"),
        (("--rank", "X%+", "--", "true"), "0", "--rank goes on"),
        (("--", "true", "%4"), "0", "is no encoded word"),
        (("--", "true", "%4g"), "0", "is no encoded word"),
        (("--", "true", "%00"), "0", "is no encoded word"),
        (("--", "true", "%3a"), "0", "is no encoded word"),
        (("--", "true", "a%+"), "0", "nothing follows"),
        (("--stdin", "1", "--", "true"), "0", "--stdin 1 wants --folder"),
        (("--stdin", "1", "--folder", "/", "--", "true"), "0", "none of 0, all, none"),
        (("--stdin", "0", "--folder", "/", "--", "true"), "0", "wants --world"),
        (("--stdin", "0", "--folder", "/", "--world", "Y", "--", "true"), "0", "in the world"),
        (("--stdin", "all", "--folder", "/no/such", "--", "true"), "0", "No such file"),
        (("--set", "A=1", "--", "true"), "0", "it is called as"),
        (("--rank", "X", "--set", "A=1", "--"), "0", "it is called as"),
        (("--rank", "X", "--set", "A=1", "true"), "0", "true is not known|it is called as"),
        ((), "0", "it is called as"),
    ],
)  # fmt: skip
def test_what_it_cannot_do_it_says(
    program: Path, words: tuple[str, ...], rank: str | None, said: str
) -> None:
    ended = sit(program, *words, env={"X": rank} if rank is not None else {})
    assert ended.returncode == 2
    assert any(part in ended.stderr for part in said.split("|"))


@settings(max_examples=25)
@given(st.lists(st.text("ab0,-. :=", max_size=4), min_size=1, max_size=6))
def test_any_values_arrive_as_they_are(program: Path, values: list[str]) -> None:
    last = len(values) - 1
    ended = sit(
        program, "--rank", "X", "--set", f"A={'/'.join(values)}", "--", *SHOW, env={"X": str(last)}
    )
    assert ended.stdout == f"{values[last] or 'unset'} unset\n"


def arguments(program: Path, words: list[str]) -> list[str]:
    """What `words` are to a program behind mpigraft-gpu-select."""
    pieces = [piece for word in words for piece in encode_word(word)]
    show = ("/bin/sh", "-c", 'printf "%%s\\0" "$@"'.replace("%%", "%25"), "sh")
    done = subprocess.run([program, "--", *show, *pieces], capture_output=True, timeout=30)
    assert done.returncode == 0, done.stderr
    return [os.fsdecode(word) for word in done.stdout.split(b"\0")[:-1]]


@settings(max_examples=60)
@given(st.lists(st.binary(max_size=12).filter(lambda b: b"\0" not in b), min_size=1, max_size=6))
def test_any_words_arrive_as_they_were(program: Path, words: list[bytes]) -> None:
    given_words = [os.fsdecode(word) for word in words]
    assert arguments(program, given_words) == given_words


def test_words_of_any_length_arrive(program: Path) -> None:
    words = ["x" * 70_000, "é" * 60_000, "", "\n" * 100_000, ":"]
    assert arguments(program, words) == words
