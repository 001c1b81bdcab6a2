"""Plans that are written down: as a shell script, as a CDI document; and the table of devices."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpigraft.core.errors import UsageError
from mpigraft.core.model import Bind, BindKind, EngineContext, EnvRow, GraftPlan, GuestKind, Scope
from mpigraft.graft.engines import cdi, wrapper
from mpigraft.graft.engines.registry import engine_words
from mpigraft.graft.injection.plan import PLACE_ON_HOST, path_stamps
from mpigraft.knowledge import devices
from tests.builders.messages import shows
from tests.builders.plans import LIBRARY, Image, label, plan, seat

SH = "/bin/sh"
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
NAMES = TEXT.filter(lambda text: text not in {"", ".", ".."} and "/" not in text)
TELL = '#!/bin/sh\nprintf "%s\\0" "$@" >"$0.said"\nexit 7\n'


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that writes down its words."""
    made = tmp_path_factory.mktemp("engine") / "engine"
    made.write_text(TELL)
    made.chmod(0o755)
    return made


def ran(script: str, engine: Path, cwd: Path, *words: str) -> tuple[int, list[str]]:
    """Exit code of the script under a real sh, and the words that the engine was given."""
    said = Path(f"{engine}.said")
    said.unlink(missing_ok=True)
    file = engine.with_name("wrapper")
    file.write_bytes(script.encode("utf-8", "surrogateescape"))
    done = subprocess.run([SH, file, *words], cwd=cwd, capture_output=True, timeout=60)
    if not said.exists():
        return done.returncode, [done.stderr.decode()]
    return done.returncode, said.read_bytes().decode("utf-8", "surrogateescape").split("\0")[:-1]


def apptainer(
    engine: Path, guest: str = "/image.sif", **changes: Any
) -> tuple[GraftPlan, EngineContext]:
    made = plan(label(guest, GuestKind.SIF), "apptainer", environment=(), **changes)
    here = str(engine.parent)
    return made, seat(program=str(engine), graft=here, cwd=here, environment=())


@given(TEXT, NAMES, st.lists(TEXT, max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_hostile_texts_come_through_a_real_shell(
    engine: Path, value: str, name: str, words: list[str]
) -> None:
    made, where = apptainer(engine, f"/i/{name}")
    made = replace(made, environment=(EnvRow("K", value, Scope.RANK, "user"),), mpi=value)
    try:
        due = engine_words(made, replace(where, ranks_per_node=0))
        script = wrapper.wrapper_script(made, where)
    except UsageError:
        assert "\r\n" in name or wrapper.CWD in f"/i/{name}"
        return
    code, said = ran(script, engine, engine.parent, *words)
    if words and "=" in words[0]:  # env would set a variable, and start the next word
        assert code == 2
        return
    assert code == 7
    assert (str(engine), *said) == (*due, "/usr/bin/env", f"K={value}", *words)


@pytest.mark.parametrize(
    "text", ["", "'", "''", "a'b", "\\", "$HOME", "`id`", "\n", "-n", "é", "*"]
)
def test_quoted_words_are_one_word(text: str) -> None:
    done = subprocess.run(
        [SH, "-c", f'printf "%s\\0" {wrapper.quoted(text)}'], capture_output=True, check=True
    )
    assert done.stdout.decode() == f"{text}\0"


def test_optional_devices_are_looked_for_where_the_script_runs(
    engine: Path, tmp_path: Path
) -> None:
    later = Bind(str(tmp_path / "xpmem"), "/dev/xpmem", BindKind.DEVICE, required=False)
    script = wrapper.wrapper_script(*apptainer(engine, devices=(later,)))
    word = f"type=bind,source={later.source},destination=/dev/xpmem,ro"
    assert word not in ran(script, engine, engine.parent)[1]
    (tmp_path / "xpmem").write_text("")
    assert word in ran(script, engine, engine.parent)[1]


def test_ranks_start_where_they_were_launched_if_they_can(engine: Path, tmp_path: Path) -> None:
    made, where = apptainer(engine)
    below = engine.parent / "be low'"
    below.mkdir(exist_ok=True)
    script = wrapper.wrapper_script(made, where)
    _, said = ran(script, engine, below)
    assert said[said.index("--cwd") + 1] == str(below)
    code, said = ran(script, engine, Path("/usr"))
    assert code == 2
    assert shows(said[0], "start from below")


def test_a_removed_graft_is_reported(engine: Path, tmp_path: Path) -> None:
    made, where = apptainer(engine)
    script = wrapper.wrapper_script(made, replace(where, graft=str(tmp_path / "gone")))
    code, said = ran(script, engine, engine.parent)
    assert code == 3
    assert "is missing" in said[0]


def test_a_script_does_not_start_a_guest_that_changed(engine: Path, tmp_path: Path) -> None:
    """The graft was made for other files."""
    image = tmp_path / "it's.sif"
    image.write_text("image")
    made, where = apptainer(engine, str(image), inputs=path_stamps([str(image)]))
    script = wrapper.wrapper_script(made, where)
    assert ran(script, engine, engine.parent)[0] == 7
    image.write_text("another one")
    code, said = ran(script, engine, engine.parent)
    assert code == 3
    assert shows(said[0], "changed", "plan again")


def test_a_script_says_what_the_engine_needs_of_its_environment(engine: Path) -> None:
    made = plan(label("name", GuestKind.PODMAN), "podman", environment=())
    own = seat(environment=(("CONTAINERS_CONF", "/c c"),))
    assert shows(wrapper.wrapper_script(made, own), "export", "CONTAINERS_CONF=", "/c")


def test_a_script_needs_no_engine(engine: Path) -> None:
    made = plan(
        label(str(engine), GuestKind.PROGRAM, env_program=""),
        "none",
        binds=(),
        place=PLACE_ON_HOST,
        environment=(EnvRow("MPIGRAFT_X", "1", Scope.RANK, "plan"),),
    )
    script = wrapper.wrapper_script(made, seat(program="", graft=str(engine.parent)))
    assert ran(script, engine, Path("/"), str(engine), "a b") == (7, ["a b"])


def test_words_that_a_script_cannot_hold_are_refused(engine: Path) -> None:
    for bad in ("/a\0b", f"/a{wrapper.CWD}"):
        with pytest.raises(UsageError):
            wrapper.wrapper_script(*apptainer(engine, bad))


# CDI: the rules of the published schema (schema.json and defs.json of the specification)
STRINGS = {"type": "array", "items": {"type": "string"}}
MOUNT = {
    "type": "object",
    "properties": {
        "hostPath": {"type": "string", "pattern": "^/"},
        "containerPath": {"type": "string", "pattern": "^/"},
        "options": STRINGS,
        "type": {"type": "string"},
    },
    "additionalProperties": False,
    "required": ["hostPath", "containerPath"],
}
NODE = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "hostPath": {"type": "string"},
        "type": {"type": "string"},
        "permissions": {"type": "string"},
    },
    "additionalProperties": False,
    "required": ["path"],
}
SCHEMA = {
    "type": "object",
    "properties": {
        "cdiVersion": {"const": "0.5.0"},
        "kind": {"type": "string"},
        "devices": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "containerEdits": {
                        "type": "object",
                        "minProperties": 1,
                        "properties": {
                            "env": STRINGS,
                            "mounts": {"type": "array", "items": MOUNT},
                            "deviceNodes": {"type": "array", "items": NODE},
                        },
                        "additionalProperties": False,
                    },
                },
                "additionalProperties": False,
                "required": ["name", "containerEdits"],
            },
        },
    },
    "additionalProperties": False,
    "required": ["cdiVersion", "kind", "devices"],
}
PART = r"[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?"
NAME = r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?"


def test_a_cdi_document_is_one(tmp_path: Path) -> None:
    image = Image.at(tmp_path / "image")
    made = plan(image.label, "podman")
    made = replace(made, devices=(*made.devices, Bind("/dev/null", "/dev/n", BindKind.DEVICE)))
    found = cdi.cdi_document(made, Path("/grafts/k"))
    jsonschema.validate(found, SCHEMA)
    assert re.fullmatch(f"{PART}/{PART}", found["kind"])
    (device,) = found["devices"]
    assert re.fullmatch(NAME, device["name"])
    edits = device["containerEdits"]
    assert edits["env"] == ["OPAL_PREFIX=/.mpigraft"]
    assert edits["deviceNodes"] == [{"path": "/dev/n", "hostPath": "/dev/null"}]
    mounts = {m["containerPath"]: m for m in edits["mounts"]}
    assert mounts[LIBRARY]["hostPath"] == "/grafts/k/lib/libmpi.so.40"
    assert "ro" in mounts[LIBRARY]["options"]
    assert "rw" in mounts["/.mpigraft/ranks"]["options"]
    assert "/dev/nosuch" not in mounts
    with pytest.raises(UsageError, match="without an engine"):
        cdi.cdi_document(replace(made, place=PLACE_ON_HOST), Path("/grafts/k"))


# devices.toml


def row(**changes: Any) -> dict[str, Any]:
    values = {"id": "a", "path": "/dev/a", "kind": "device", "why": "w", "source": "s"}
    return {k: v for k, v in {**values, **changes}.items() if v is not None}


def test_the_table_of_devices_is_well_formed() -> None:
    found = {b.source: b for b in devices.device_binds()}
    assert {"/dev/cxi0", "/dev/cxi7", "/dev/infiniband", "/dev/xpmem"} <= set(found)
    assert found["/dev/shm"].required
    assert all(b.target == b.source and b.why for b in found.values())
    assert all(Path(b.source).exists() for b in found.values() if b.required)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"path": "dev/a"}, "path"),
        ({"path": "/dev/../a"}, "path"),
        ({"path": "/dev/a{n}"}, "count"),
        ({"count": 2}, "count"),
        ({"path": "/dev/a{n}", "count": 65}, "count"),
        ({"path": "/dev/a{n}", "count": 0}, "count"),
        ({"path": "/dev/a{n}", "count": True}, "count"),
        ({"kind": "file"}, "kind"),
        ({"why": None}, "why"),
        ({"source": None}, "source"),
        ({"extra": 1}, "extra"),
    ],
)
def test_a_wrong_row_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=f"devices.toml, row a, key {said}"):
        devices.read({"device": [row(**changes)]})


def test_two_rows_of_one_name_or_path_are_refused() -> None:
    with pytest.raises(UsageError, match="two rows are called a"):
        devices.read({"device": [row(), row(path="/dev/b")]})
    with pytest.raises(UsageError, match="another row has /dev/a"):
        devices.read({"device": [row(), row(id="b")]})
