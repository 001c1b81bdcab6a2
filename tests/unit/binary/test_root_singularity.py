"""Environment scripts of Apptainer's images, read without a shell, with a shell as the oracle."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpigraft.binary.image.folder import FolderRoot
from mpigraft.binary.image.root import ImageConfig
from mpigraft.core.errors import UsageError
from tests.builders.messages import shows
from tests.hang import no_hang


def config(top: Path, **scripts: str) -> ImageConfig:
    """Of an image with such scripts: a_90 is 90-a.sh."""
    folder = top / ".singularity.d/env"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in scripts.items():
        letters, _, number = name.partition("_")
        (folder / f"{number}-{letters}.sh").write_text(text)
    return FolderRoot(top).config()


def test_what_docker_images_become(tmp_path: Path) -> None:
    said = config(
        tmp_path,
        docker2singularity_10='#!/bin/sh\nexport PATH="/usr/bin:/bin"\n'
        'export LANG="${LANG:-"C.UTF-8"}"\nexport EMPTY="${EMPTY:-""}"\n',
        environment_90="# Custom environment shell code should follow\n\n"
        "    export PATH=/opt/bin:$PATH\n"
        "    export LD_LIBRARY_PATH=/opt/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\n",
        base_99="if [ -z x ]; then export NEVER=1; fi\n",
    )
    assert said.environment == (
        ("PATH", "/opt/bin:/usr/bin:/bin"),
        ("LANG", "C.UTF-8"),
        ("EMPTY", ""),
        ("LD_LIBRARY_PATH", "/opt/lib"),
    )
    assert said.unread == ()


def test_what_needs_a_shell_is_reported(tmp_path: Path) -> None:
    lines = (
        "export A=$(touch /tmp/evil)",
        "export B=`date`",
        "export C=$UNKNOWN/x",
        "export D=*.so",
        "export E=a;touch x",
        "export F=a | b",
        'export G="never ends',
        "export H=~/x",
        "export I=${PATH%:*}",
        ". /opt/setup.sh",
        "unset PATH",
        "export J=${A:-${B:-${C:-${D:-${E:-${F:-${G:-${H:-x}}}}}}}}",
        "K=1 true",
        "export L=a&",
        "export -p",
    )
    said = config(tmp_path, environment_90="\n".join((*lines, "export Z=1")) + "\n")
    assert said.environment == (("Z", "1"),)
    assert said.unread == tuple(f"90-environment.sh: {line}" for line in lines)


def test_what_may_never_be_reached_is_not_read(tmp_path: Path) -> None:
    text = (
        "export A=1\nif [ -d /opt ]; then\n  export A=2\nelse\n  export B=2\nfi\n"
        "for i in 1 2; do export C=$i; done\nset() {\nexport D=1\n}\n"
        'case "$x" in\n a) export E=1;;\nesac\nexport F="x \\\ny"\nG=1\nexport G H\n'
    )
    said = config(tmp_path, environment_90=text)
    assert said.environment == (("A", "1"), ("F", "x y"), ("G", "1"))
    assert shows(said.unread, "90-environment.sh", "A=2")
    assert shows(said.unread, "90-environment.sh", "D=1")


def test_scripts_that_are_none(tmp_path: Path) -> None:
    folder = tmp_path / ".singularity.d/env"
    folder.mkdir(parents=True)
    (folder / "10-huge.sh").write_bytes(b"#" * (1 << 20))
    (folder / "20-nul.sh").write_bytes(b"export A=\0")
    (folder / "30-folder.sh").mkdir()
    (folder / "40-out.sh").symlink_to("/../../../etc/profile")
    (folder / "50-many.sh").write_text("true\n" * 5000)
    said = FolderRoot(tmp_path).config()
    assert said.environment == ()
    assert len(said.unread) == 100
    assert said.unread[:2] == (
        "10-huge.sh: not a readable script",
        "20-nul.sh: not a readable script",
    )


pieces = st.lists(
    st.sampled_from(
        ["a", "/x:", '"', "'", "\\", "$A", "${A}", "${N:-d}", "${A:+e}", "${N:+e}", " ", "#", "}",
         "=", "!", "[", "]", "{", "${A:-", "~", ";", "\n", "export B=c", "# "]
    ),
    max_size=8,
).map("".join)  # fmt: skip


@given(pieces, st.sampled_from(["", "x", "a b"]))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_as_a_shell_reads_it(tmp_path: Path, word: str, known: str) -> None:
    """A line is told, or it means what sh makes of it."""
    text = f"export A='{known}'\nexport LD_LIBRARY_PATH={word}\n".replace("$N", "$PATH")
    text = text.replace("{N:", "{LD_LIBRARY_PATH:")
    said = config(tmp_path, environment_90=text)
    value = dict(said.environment).get("LD_LIBRARY_PATH")
    if said.unread or value is None:
        return
    shell = subprocess.run(
        ["sh", "-c", f'{text}\nprintf %s. "$LD_LIBRARY_PATH"'], capture_output=True, env={}
    )
    assert (shell.returncode, shell.stdout.decode()) == (0, f"{value}."), text


@given(st.text(max_size=200))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text(tmp_path: Path, text: str) -> None:
    folder = tmp_path / ".singularity.d/env"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "90-environment.sh").write_bytes(text.encode(errors="replace"))
    FolderRoot(tmp_path).config()


@pytest.mark.parametrize("name", ["usr", ".singularity.d"])
def test_folders_without_scripts(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    assert FolderRoot(tmp_path).config() == ImageConfig()


BIG = "A=" + "x" * 100_000 + "\n"


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        (BIG + "".join(f"A{n}=$A\\x\n" for n in range(1000)), "67,108,864 bytes"),
        ("export A=" + "$HOME\\x" * 35_000, "65,536 entries"),
        ("x\n" * 70_000, "65,536 entries"),
    ],
)
def test_scripts_that_set_too_much(tmp_path: Path, text: str, claim: str) -> None:
    with pytest.raises(UsageError, match=claim) as error:
        config(tmp_path, a_10="HOME=/h\n" + text)
    assert error.value.code == "file-over-budget"
    assert str(tmp_path) in error.value.message


def test_a_value_ends_where_it_is_too_long(tmp_path: Path) -> None:
    with no_hang():
        said = config(tmp_path, a_10=BIG + "export B=" + "$A" * 60_000)
        assert said.unread == (f"10-a.sh: export B={'$A' * 200}"[:200],)
        line = "export " + "A=1 " * 50_000
        assert config(tmp_path, a_10=line).environment == (("A", "1"),)
