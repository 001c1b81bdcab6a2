"""Options of an engine's own, as a site's profile has them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from mpigraft.core.model import EnvRow, GuestKind, Scope
from mpigraft.graft.engines.options import with_engine_options
from mpigraft.graft.engines.registry import engine_words
from tests.builders.plans import Image, label, plan, seat


@pytest.mark.parametrize("engine", ["apptainer", "podman", "charliecloud", "bwrap"])
def test_a_sites_options_stand_before_the_image(tmp_path: Path, engine: str) -> None:
    image = Image.at(tmp_path / "image")
    for name in ("dev", "proc", "sys", "tmp"):
        (image.folder / name).mkdir(exist_ok=True)
    bare = plan(image.label, engine, binds=(), devices=(), place="/mnt")
    of = seat(cwd="/tmp", graft=str(tmp_path), root=True)
    asked = ("--device", f"{engine}=vendor.com/gpu=all", "none=--no")
    made = with_engine_options(bare, asked)
    words = engine_words(made, of)
    at = words.index("--device")
    assert words[at + 1] == "vendor.com/gpu=all"
    without = engine_words(bare, of)
    assert words[:at] + words[at + 2 :] == without
    assert at < len(without) - (1 if engine != "bwrap" else 0)
    assert made.key != bare.key, "a proof without them is no proof with them"
    assert with_engine_options(bare, ()) is bare


def test_with_a_gpu_apptainers_libraries_are_found() -> None:
    """It leads to them by LD_LIBRARY_PATH, which plans drop or set."""
    dropped = EnvRow("LD_LIBRARY_PATH", None, Scope.RANK, "plan")
    other = EnvRow("OPAL_PREFIX", None, Scope.RANK, "plan")
    of = partial(plan, label("/i.sif", GuestKind.SIF))
    due = "/.singularity.d/libs"
    made = with_engine_options(of("apptainer", environment=(dropped, other)), ("--nv",))
    assert [row.value for row in made.environment] == [due, None]
    own = EnvRow("LD_LIBRARY_PATH", "/own", Scope.RANK, "guest")
    made = with_engine_options(of("apptainer", environment=(own,)), ("--rocm",))
    assert made.environment[0].value == f"/own:{due}"
    for engine, words in (("podman", ("--nv",)), ("apptainer", ("--writable-tmpfs",))):
        assert with_engine_options(of(engine, environment=(own,)), words).environment == (own,)


def test_apptainers_variables_for_gpus_count_as_its_options() -> None:
    row = EnvRow("LD_LIBRARY_PATH", None, Scope.RANK, "plan")
    bare = plan(label("/i.sif", GuestKind.SIF), "apptainer", environment=(row,))
    by_option = with_engine_options(bare, ("--nv",))
    assert by_option != bare
    for environ in ({"APPTAINER_NV": "1"}, {"SINGULARITY_NV": "true", "APPTAINER_ROCM": "0"}):
        assert with_engine_options(bare, (), environ) == by_option
        assert with_engine_options(bare, ("--nv",), environ) == by_option
