"""Environments: what a launch may see, what its ranks get, and what nobody else may read."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core import env
from mpigraft.core.errors import UsageError
from mpigraft.core.model import EnvRow, Scope
from mpigraft.core.process import command
from tests.builders.messages import shows

SECRETS = (
    "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "MYSQL_PWD", "PGPASSWORD", "SLURM_JWT", "GITHUB_PAT",
    "FI_CXI_AUTH_KEY", "API_KEY", "apikey", "SSH_PRIVATE_KEY", "PMIX_COOKIE", "HF_TOKEN",
    "OMPI_MCA_my_password", "UCX_SECRET", "CRAY_CREDENTIALS", "BEARER", "PASSPHRASE", "SIGNING_KEY",
)  # fmt: skip
INNOCENT = (
    "PATH", "PWD", "OLDPWD", "LD_LIBRARY_PATH", "FI_PROVIDER", "UCX_TLS", "I_MPI_FABRICS", "KEYS",
    "OMPI_MCA_pml", "MONKEY", "PATTERN", "KEYBOARD", "FI_LNX_PROV_LINKS",
)  # fmt: skip


def rank(name: str, value: str | None) -> EnvRow:
    return EnvRow(name, value, Scope.RANK, "test")


# ------------------------------------------------------------------ base and rows


def test_base_is_an_allow_list_without_secrets() -> None:
    seen = env.base({
        "PATH": "/bin", "HOME": "/h", "OMPI_MCA_pml": "ob1", "FI_PROVIDER": "tcp", "MY_TOKEN": "t",
        "LD_PRELOAD": "x.so", "LD_LIBRARY_PATH": "/l", "SLURM_JOB_ID": "1", "SLURM_JWT": "ey",
        "PMIX_RANK": "0", "SLURM_AUTH": "a",
    })  # fmt: skip
    assert seen == {"HOME": "/h", "PATH": "/bin", "SLURM_JOB_ID": "1"}


def test_base_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Mars")
    monkeypatch.setenv("OMPI_MCA_stray", "1")
    assert env.base()["TZ"] == "Mars"
    assert "OMPI_MCA_stray" not in env.base()


def test_rows_apply_in_order_and_only_in_their_scope() -> None:
    rows = [
        EnvRow("A", "1", Scope.LAUNCHER, "x"),
        EnvRow("A", "2", Scope.LAUNCHER, "y"),
        EnvRow("B", None, Scope.DAEMON, "x"),
        rank("C", "3"),
    ]
    start = {"B": "b", "C": "c"}
    assert env.apply(start, rows, Scope.LAUNCHER) == {"A": "2", "B": "b", "C": "c"}
    assert env.apply(start, rows, Scope.LAUNCHER, Scope.DAEMON) == {"A": "2", "C": "c"}
    assert env.apply(start, [EnvRow("Z", None, Scope.RANK, "x")], Scope.RANK) == start
    assert start == {"B": "b", "C": "c"}


# ------------------------------------------------------------------ the innermost env


def test_no_rows_no_env() -> None:
    assert env.rank_argv([EnvRow("A", "1", Scope.LAUNCHER, "x")], ("p", "a")) == ("p", "a")


def test_the_last_row_of_a_name_wins() -> None:
    rows = [rank("A", "1"), rank("B", "2"), rank("A", None), rank("B", "3")]
    assert env.rank_argv(rows, ("p",)) == (env.ENV, "-u", "A", "B=3", "p")


NAMES = st.from_regex(re.compile(r"[A-Za-z_][A-Za-z0-9_.%()-]{0,20}"), fullmatch=True)
VALUES = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=40)


@given(rows=st.dictionaries(NAMES, st.none() | VALUES, min_size=1, max_size=6))
def test_a_rank_sees_exactly_what_the_rows_say(rows: dict[str, str | None]) -> None:
    """Whatever is in a value: blanks, quotes, newlines, equals signs, dashes."""
    before = {"PATH": os.environ["PATH"], "STAYS": "yes"}
    wanted = env.apply(before, [rank(n, v) for n, v in rows.items()], Scope.RANK)
    argv = env.rank_argv([rank(n, v) for n, v in rows.items() if n != "PATH"], ("env", "-0"))
    done = command.run_command(argv, env=before)
    assert done.ok, done.text()
    seen = dict(e.split("=", 1) for e in done.stdout.decode().split("\0") if e)
    wanted["PATH"] = before["PATH"]
    assert seen == wanted


@pytest.mark.parametrize("name", ["", "A=B", "-i", "--ignore-environment"])
def test_names_that_env_would_misread(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name"):
        env.rank_argv([rank(name, "1")], ("p",))


def test_a_program_that_env_would_misread() -> None:
    with pytest.raises(UsageError, match="symbolic link"):
        env.rank_argv([rank("A", "1")], ("/opt/x=y/bin/p",))
    assert env.rank_argv([], ("/opt/x=y/bin/p",)) == ("/opt/x=y/bin/p",)
    assert env.rank_argv([rank("A", "1")], ("p", "--x=y"))[-1] == "--x=y"


# ------------------------------------------------------------------ secrets


@pytest.mark.parametrize("name", SECRETS)
def test_secret_names(name: str) -> None:
    assert env.SECRET_NAME.search(name)
    assert env.shown({name: "planted-value", "FI_X": "y"}).get(name, env.STRUCK) == env.STRUCK
    assert "planted-value" not in env.redact("out planted-value put", {name: "planted-value"})


@pytest.mark.parametrize("name", INNOCENT)
def test_innocent_names(name: str) -> None:
    assert not env.SECRET_NAME.search(name)


def test_shown_is_an_allow_list() -> None:
    assert env.shown({"FI_PROVIDER": "tcp", "PATH": "/bin", "HOME": "/h", "EDITOR": "vi"}) == {
        "FI_PROVIDER": "tcp",
        "PATH": "/bin",
    }


def test_a_secret_in_an_innocent_variable_is_struck_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITE_TOKEN", "planted-here")
    seen = env.shown(
        {"FI_NOTE": "a planted-here b", "UCX_NOTE": "ghp_there", "MY_PAT": "ghp_there"}
    )
    assert seen == {"FI_NOTE": f"a {env.STRUCK} b", "UCX_NOTE": env.STRUCK}


def test_redaction_takes_the_longest_first_and_leaves_short_ones() -> None:
    environ = {"A_TOKEN": "secret", "B_TOKEN": "secret-and-more", "C_AUTH": "none", "D": "plain!"}
    text = "secret-and-more secret none plain!"
    assert shows(env.redact(text, environ), f"{env.STRUCK} {env.STRUCK}")


def test_each_line_of_a_key_is_struck_out() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQ\n-----END KEY-----\n"
    said = env.redact("error near kqhkiG9w0BAQ of the key", {"SSH_PRIVATE_KEY": key})
    assert shows(said, env.STRUCK)


def test_redaction_uses_this_process_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_TOKEN", "tok-1234567")
    done = command.run_command(
        [sys.executable, "-c", "import os; print(os.environ['PLANTED_TOKEN'])"]
    )
    assert "tok-1234567" in done.text()
    assert env.redact(done.text()) == f"{env.STRUCK}\n"


OTHER = st.characters(codec="utf-8", exclude_characters=env.STRUCK)


@given(secret=st.text(OTHER, min_size=6, max_size=30), around=st.text(max_size=20))
def test_no_secret_survives(secret: str, around: str) -> None:
    if len(secret.strip()) >= 6:
        assert secret not in env.redact(around + secret + around, {"X_TOKEN": secret})


def test_a_name_that_holds_a_secret_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "planted-1234")
    env.refuse_secrets("quick", "FI_TCP_IFACE=lo")
    with pytest.raises(UsageError, match="secret-looking") as caught:
        env.refuse_secrets("quick", "X=planted-1234")
    assert "planted" not in str(caught.value)


def test_an_author_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_AUTHOR_NAME", "openmpi")
    assert env.redact("openmpi@5.0.11") == "openmpi@5.0.11"


def test_ranks_get_the_env_of_the_system_whatever_stands_in_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "env").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    row = EnvRow("A", "1", Scope.RANK, "user")
    assert env.rank_argv([row], ("prog",))[0].startswith("/")
    assert not env.rank_argv([row], ("prog",))[0].startswith(str(tmp_path))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("all;token=hunter22,x", f"all;token={env.STRUCK},x"),
        (
            "--api_key=abcdef1 PASSWORD='hunter22'",
            f"--api_key={env.STRUCK} PASSWORD='{env.STRUCK}'",
        ),
        ("http://me:pw@proxy:8080/x", f"http://{env.STRUCK}@proxy:8080/x"),
        ("token=none", "token=none"),
        ("x --api-key hunter22 y", f"x --api-key {env.STRUCK} y"),
        ("Authorization: Bearer hunter22", f"Authorization: Bearer {env.STRUCK}"),
        ("the token expired: password needed", "the token expired: password needed"),
        ("unexpected token: identifier", "unexpected token: identifier"),
        ("tcp://node:1234/a@b", "tcp://node:1234/a@b"),
        ("tokens=5", "tokens=5"),
    ],
)
def test_a_secret_inside_of_a_value_is_struck_out(text: str, shown: str) -> None:
    assert env.redact(text, {}) == shown
    assert env.redact(shown, {}) == shown
