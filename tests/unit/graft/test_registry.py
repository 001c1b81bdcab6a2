"""Images by name: what is fetched by whom, and what is said where it cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpigraft.core.errors import MissingError, UsageError
from mpigraft.graft.guest import registry
from tests.builders.messages import matches, shows

PULLED = """#!/bin/sh
echo "$0 $*" >>"$LOG"
case "$1 $2" in
"image exists") exit 1 ;;
esac
[ -z "$FAIL" ] || { echo "first line"; echo "Error: me:geheim@host refused"; exit 1; } >&2
for word; do case $word in *.part) echo sif >"$word" ;; esac; done
"""


@pytest.fixture
def engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in PATH for programs that note how they were called."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "home"))
    return folder


def program(folder: Path, name: str) -> None:
    (folder / name).write_text(PULLED)
    (folder / name).chmod(0o755)


def log(folder: Path) -> list[str]:
    file = folder.parent / "log"
    return file.read_text().splitlines() if file.exists() else []


def test_apptainer_makes_a_sif_once(engines: Path) -> None:
    program(engines, "apptainer")
    program(engines, "podman")
    found = registry.fetched("docker://host/app:1")
    assert Path(found).read_text() == "sif\n"
    assert registry.fetched("docker://host/app:1") == found
    (line,) = log(engines)
    assert shows(line, f"{engines}/apptainer --silent build")
    assert shows(line, "docker://host/app:1")
    assert registry.fetched("docker://host/app:2") != found


def test_a_registry_of_this_machine_is_asked_without_tls(engines: Path) -> None:
    program(engines, "apptainer")
    registry.fetched("docker://localhost:5000/app:1")
    assert " --no-https " in log(engines)[0]
    registry.fetched("docker://localhost.far.away:5000/app:1")
    assert " --no-https " not in log(engines)[1]


def test_podman_pulls_what_it_has_not(engines: Path) -> None:
    program(engines, "podman")
    assert registry.fetched("docker://host/app:1") == "podman:host/app:1"
    assert shows(log(engines)[1], "podman pull --quiet docker://host/app:1")


@pytest.mark.parametrize("spec", ["docker://host/app", "oras://host/app", "docker-daemon:app:1"])
def test_a_missing_engine_is_named(engines: Path, spec: str) -> None:
    with pytest.raises(MissingError, match="nothing here can fetch") as missing:
        registry.fetched(spec)
    assert "Apptainer" in missing.value.fix
    assert ("podman" in str(missing.value)) is spec.startswith("docker://")


@pytest.mark.parametrize(
    ("spec", "advice"),
    [
        ("docker://host/app:1", "podman login"),
        ("oras://host/app:1", "apptainer registry login oras://"),
        ("library://me/apps/app:1", "apptainer remote add"),
        ("docker-daemon:app:1", "docker images"),
    ],
)
def test_the_advice_is_that_of_the_scheme(
    engines: Path, monkeypatch: pytest.MonkeyPatch, spec: str, advice: str
) -> None:
    with pytest.raises(UsageError) as invalid:
        registry.fetched(f"{spec.partition(':')[0]}://-x")
    assert matches(invalid.value, "image-name-invalid", example=f"{spec.partition(':')[0]}:")
    monkeypatch.setenv("FAIL", "1")
    program(engines, "apptainer")
    with pytest.raises(MissingError) as failed:
        registry.fetched(spec)
    assert advice in failed.value.fix
    assert ("podman" in failed.value.fix) is spec.startswith("docker://")


def test_an_engine_that_fails_has_the_last_word_without_passwords(
    engines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIL", "1")
    for name in ("podman", "apptainer"):
        program(engines, name)
        with pytest.raises(MissingError) as failed:
            registry.fetched("docker://host/app:1")
        assert matches(
            failed.value, "image-not-fetched", engine=name, image="docker://host/app:1",
            output="Error: host refused",
        )  # fmt: skip
    assert not list((engines.parent / "home").rglob("*.part"))


@pytest.mark.parametrize("name", ["me:geheim@host/app", "geheim@host:5000/app:1"])
def test_passwords_stay_out_of_names_and_messages(name: str) -> None:
    with pytest.raises(UsageError, match="must not contain a user") as no:
        registry.fetched(f"docker://{name}")
    assert "geheim" not in str(no.value)


@pytest.mark.parametrize("name", ["", "-x", "/a", "a b", "a\nb"])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(UsageError, match="invalid image name"):
        registry.fetched(f"docker://{name}")


def test_a_digest_is_no_password(engines: Path) -> None:
    program(engines, "podman")
    spec = "docker://debian:12@sha256:" + "0" * 64
    assert registry.fetched(spec) == f"podman:{spec.removeprefix('docker://')}"
    assert registry.shown(spec) == spec


def test_archives_by_podmans_names_are_their_paths(tmp_path: Path) -> None:
    file = tmp_path / "a:b.tar"
    file.write_text("")
    assert registry.plain_path(f"oci-archive:{file}") == str(file)
    assert registry.plain_path(f"docker-archive:{tmp_path}/x.tar:app") == f"{tmp_path}/x.tar"
    assert registry.plain_path("oci-archive:x.tar") == "x.tar"
    assert registry.plain_path("x.tar") == "x.tar"
