"""What launchers are told of several programs of one world."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpigraft.core.errors import UsageError
from mpigraft.core.model import Allocation, Group, Layout
from tests.unit.launch.test_launchers import NAMED, SLURM, command

SERVERS = (Group(1, ("serve", "it's", "%t")), Group(3, ("ocean",)))


@pytest.mark.parametrize("allocation", [NAMED, SLURM], ids=["named", "slurm"])
@pytest.mark.parametrize(
    ("kind", "first", "at"),
    [
        ("prrte", "--map-by slot:OVERSUBSCRIBE --bind-to none --app /f/programs", "--host {}:{} "),
        ("orte", "--map-by slot --bind-to none --oversubscribe --app /f/programs", "--host {}:{} "),
        ("hydra", "-ppn 4 -bind-to none -configfile /f/programs", ""),
    ],
)
def test_several_programs_are_reported_for_each_node_in_a_file(
    kind: str, first: str, at: str, allocation: Allocation
) -> None:
    """Of Open MPI with their host each: in a job of Slurm --host n1:4,n2:4 counts no slots."""
    found = command(kind, Layout(2, 4, bind="none"), groups=SERVERS, allocation=allocation)
    assert " ".join(found.words).endswith(first)
    lines = "".join(
        f"{at.format(host, count)}-n {count} /bin/sh /f/program{number}\n"
        for host in ("n1", "n2")
        for number, count in enumerate((1, 3))
    )
    assert found.files == (
        (Path("/f/programs"), lines),
        (Path("/f/program0"), "exec serve 'it'\"'\"'s' %t\n"),
        (Path("/f/program1"), "exec ocean\n"),
    )


@pytest.mark.parametrize("changes", [{"layout": Layout(1, 4, bind="none")}, {"reads": False}])
def test_on_one_node_and_in_a_guest_several_programs_are_reported_with_colons(
    changes: dict[str, Any],
) -> None:
    """A guest's own launcher sees no file of this machine."""
    values = {"layout": Layout(2, 4, bind="none"), "groups": SERVERS, **changes}
    parts = ["-n 1 serve it's %t", "-n 3 ocean"] * values["layout"].nodes
    found = command("hydra", **values)
    assert " ".join(found.words).endswith(f" {' : '.join(parts)}")
    assert found.files == ()
    first = command("prrte", **values).words
    assert " ".join(first).count(" : --host ") == len(parts) - 1


def test_with_masks_the_file_of_ranks_says_the_hosts() -> None:
    found = command("prrte", Layout(2, 4), groups=SERVERS, masks=((0,), (1,), (2,), (3,)))
    names = [path.name for path, _ in found.files]
    assert names == ["ranks", "programs", "program0", "program1"]
    assert "--host" not in found.files[1][1]
    assert found.words[-2:] == ("--app", "/f/programs")


def test_the_command_line_of_several_programs_does_not_grow_with_the_nodes() -> None:
    """A thousand nodes and their environments would be more than a kernel takes."""
    many = tuple(f"n{number}" for number in range(1000))
    long = (Group(2, ("env", *["A=" + "x" * 1000] * 9, "a")), Group(2, ("b",)))
    for kind in ("prrte", "orte", "hydra"):
        wide = replace(SLURM, hosts=many, job="1")
        found = command(kind, Layout(1000, 4, bind="none"), groups=long, allocation=wide)
        assert len(found.words) < 20
        named = len(",".join(many)) if kind == "hydra" else 0  # which is given the hosts
        assert sum(map(len, found.words)) < 500 + named


def test_several_programs_of_a_slurm_step_are_scripts() -> None:
    found = command("srun", Layout(2, 4, bind="none"), groups=SERVERS)
    assert found.words[-2:] == ("--multi-prog", "/f/programs")
    assert found.files == (
        (Path("/f/programs"), "0-0,4-4 /bin/sh /f/program0\n1-3,5-7 /bin/sh /f/program1\n"),
        (Path("/f/program0"), "exec serve 'it'\"'\"'s' %t\n"),
        (Path("/f/program1"), "exec ocean\n"),
    )


@pytest.mark.parametrize("kind", ["flux", "pals", "aprun"])
def test_launchers_without_words_for_several_programs_say_so(kind: str) -> None:
    with pytest.raises(UsageError, match="cannot start 2 programs"):
        command(kind, Layout(1, 4, bind="none"), groups=SERVERS)
