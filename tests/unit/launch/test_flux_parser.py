"""What is written for Flux, read by Flux's own Python: flux-python of PyPI, libflux stood in for.

The wheel brings the command line, the directives' reader and the modules that bind libflux, but
not libflux itself. A library of its name defines each function that those modules want, and ends
the process in every one that reading a command line has no need of.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import io
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.binary.elf import reader as elf
from mpigraft.core.model import Group, Layout
from mpigraft.launch.launchers import flux as launcher
from mpigraft.launch.schedulers import flux
from tests.builders.configuration import a_job_request
from tests.unit.launch.test_launchers import MASKS, SLURM, order

try:
    PLACE = Path(str(importlib.metadata.distribution("flux-python").locate_file("")))
except importlib.metadata.PackageNotFoundError:
    here = (platform.machine(), *sys.version_info[:2])
    if here[0] == "x86_64" and here[1:] < (3, 15):
        raise  # it is in requirements-dev.txt
    pytest.skip(
        f"flux-python has wheels for x86_64 and Python below 3.15, this is {here}",
        allow_module_level=True,
    )

Read = Callable[..., Any]
LIBRARIES = {"_core": "libflux-core.so.2", "_hostlist": "libflux-hostlist.so.1",
             "_idset": "libflux-idset.so.1"}  # fmt: skip
NEEDED = 'const char *flux_conf_builtin_get(void) { return "/nowhere"; }\n'
ENDS = 'void %s(void) { fputs("%s is not stood in for\\n", stderr); abort(); }\n'
# Reads a line of JSON, [command, argv, stdin], and writes one: the jobspec, or what was wrong.
READ = r"""
import contextlib, io, json, os, sys
from flux import debugged
from flux.cli import batch, run
from flux.job.info import JobInfoFormat, job_fields_to_attrs

debugged.get_mpir_being_debugged = lambda: 0  # of a debugger's: the wheel lacks it

def spec(command, argv, script):
    if command == "jobs":
        fields = JobInfoFormat(argv[0]).fields
        return sorted(fields, key=argv[0].index) if job_fields_to_attrs(fields) else []
    sys.argv = ["flux", *argv]
    kind = {"run": run.RunCmd, "batch": batch.BatchCmd}[command]("flux " + command)
    args = kind.get_parser().parse_args(argv)
    if command == "batch":
        kind.argv = argv
        reader, writer = os.pipe()
        os.write(writer, script.encode())
        os.close(writer)
        if reader:  # reading a script closes the descriptor 0, which the next pipe then is
            os.dup2(reader, 0)
            os.close(reader)
        kind.script, args = kind.process_script(args)
    found = kind.jobspec_create(args)
    return json.loads(found.dumps())

asked = os.fdopen(os.dup(0))
for line in asked:
    heard = io.StringIO()
    try:
        with contextlib.redirect_stderr(heard):
            answer = spec(*json.loads(line))
    except (Exception, SystemExit) as error:
        answer = f"{type(error).__name__}: {error} {heard.getvalue()}"
    print(json.dumps(answer), flush=True)
"""


def stand_in(folder: Path, module: str, soname: str) -> None:
    """A library of that name with every function that the module wants of it."""
    wanted = {
        symbol.name
        for symbol in elf.read_elf(PLACE / "_flux" / f"{module}.abi3.so").imported
        if symbol.version is None and not symbol.weak and not symbol.name.startswith(("Py", "_Py"))
    }
    wanted.discard("flux_conf_builtin_get")
    ends = "".join(ENDS % (name, name) for name in sorted(wanted))
    source = f"#include <stdio.h>\n#include <stdlib.h>\n{NEEDED}{ends}"
    argv = ["gcc", "-shared", "-fPIC", "-fno-builtin", "-w", "-O0", f"-Wl,-soname,{soname}",
            "-x", "c", "-", "-o", str(folder / soname)]  # fmt: skip
    subprocess.run(argv, input=source.encode(), check=True)


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Read]:
    """Flux's reading of a command line: the jobspec that it would submit, or a text of refusal."""
    folder = tmp_path_factory.mktemp("libflux")
    for module, soname in LIBRARIES.items():
        stand_in(folder, module, soname)
    reader = subprocess.Popen(
        [sys.executable, "-c", READ],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "LD_LIBRARY_PATH": str(folder)}, cwd=folder,
    )  # fmt: skip

    def ask(command: str, *argv: str, script: str = "") -> Any:
        assert reader.stdin is not None
        assert reader.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            reader.stdin.write(json.dumps([command, argv, script]) + "\n")
            reader.stdin.flush()
        answer = reader.stdout.readline()
        if not answer:
            pytest.fail(f"Flux's reader ended: {reader.communicate()[1]}")
        return json.loads(answer)

    with reader:
        yield ask
        assert reader.stdin is not None
        reader.stdin.close()


REQUEST = a_job_request(
    folder="/proj",
    output="/proj/it's 1#/store/logs/c0ffee-1",
    environment=(("MPIGRAFT_HOME", "/proj/#flux: --no"),),
    partition="pdebug",
    extra=("--setattr=mine=a b", "--bank=p"),
    after="6731191091817518",
)


def test_fluxs_reader_accepts_a_job_script(read: Read) -> None:
    script = flux.script(REQUEST)
    found = read(*flux.SUBMIT[1:], script=script)
    assert not isinstance(found, str), found
    system = found["attributes"]["system"]
    (resource,) = found["resources"]
    assert (resource["type"], resource["count"], resource["exclusive"]) == ("node", 2, True)
    assert (system["duration"], system["queue"], system["bank"]) == (5400.0, "pdebug", "p")
    assert system["job"]["name"] == "mpigraft-night"
    assert system["mine"] == "a b"
    assert system["dependencies"] == [{"scheme": "afterany", "value": REQUEST.after}]
    options = system["shell"]["options"]
    assert options["output"]["stdout"]["path"] == f"{REQUEST.output}-{{{{id}}}}.out"
    assert options["signal"] == {"signum": 15, "timeleft": 60.0}
    assert system["files"]["script"]["data"] == script


@pytest.mark.parametrize("masks", [MASKS, ()])
def test_a_launch_says_what_it_is_to_say(read: Read, masks: tuple[tuple[int, ...], ...]) -> None:
    layout = Layout(2, 2)
    program = ("env", "-u", "X", "A=it's", "prog", "--nodes=9", "--", "-o")
    asked = order("flux", layout, allocation=SLURM, masks=masks, pmi="pmix",
                  groups=(Group(2, program),))  # fmt: skip
    found = read(*launcher.command(asked).words[1:2], *launcher.command(asked).words[2:])
    assert not isinstance(found, str), found
    (resource,) = found["resources"]
    assert (resource["type"], resource["count"], resource["exclusive"]) == ("node", 2, True)
    assert tuple(found["tasks"][0]["command"]) == program
    system = found["attributes"]["system"]
    assert system["constraints"] == {"hostlist": ["n1,n2"]}
    options = system["shell"]["options"]
    assert options["per-resource"] == {"type": "node", "count": 2}
    assert options["cpu-affinity"] == ("map:0x3;0x10c" if masks else "per-task")
    assert options["pmi"] == "pmix"


def test_a_look_at_nodes_is_one_task_on_each(read: Read) -> None:
    wish = replace(REQUEST, extra=("--bank=p",), after="", command=("look", "--json"))
    found = read(*flux.node_command(wish)[1:2], *flux.node_command(wish)[2:])
    assert not isinstance(found, str), found
    assert found["tasks"][0]["command"] == ["look", "--json"]
    system = found["attributes"]["system"]
    assert (system["duration"], system["queue"], system["bank"]) == (5400.0, "pdebug", "p")
    assert system["shell"]["options"]["per-resource"] == {"type": "node", "count": 1}


def test_jobs_are_requested_what_they_can_tell(read: Read) -> None:
    ((*_, form, job),) = flux.status_commands(["6731191091817518"])
    assert job == "6731191091817518"
    fields = ["id.dec", "state", "result", "exception.note"]
    assert read("jobs", form.removeprefix("--format=")) == fields
    assert read("jobs", "{nodelist}") == ["nodelist"]
    assert "no_such" in read("jobs", "{no_such}")


def test_what_flux_does_not_know_is_refused_here_too(read: Read) -> None:
    assert "unrecognized" in read("run", "--no-such-flag", "prog")
    wrong = flux.script(REQUEST).replace("--signal=SIGTERM@", "--signal=SIGNONE@")
    assert "SIGNONE" in read("batch", script=wrong)


def directives(script: str) -> list[list[str]]:
    """The words of each directive, as Flux's own reader splits them; it needs no libflux."""
    return [list(row.args) for row in DIRECTIVES.DirectiveParser(io.StringIO(script)).directives]


SPEC = importlib.util.spec_from_file_location("directives", PLACE / "flux/job/directives.py")
assert SPEC is not None
assert SPEC.loader is not None
DIRECTIVES = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(DIRECTIVES)
PRINTABLE = st.text(st.characters(exclude_categories=("C", "Z"), include_characters=" "))
TRICKY = st.text(alphabet="\"'\\# a;|(){}$`")


@given(words=st.lists(PRINTABLE | TRICKY, min_size=1), output=PRINTABLE | TRICKY)
def test_any_word_is_read_as_it_was_written(words: list[str], output: str) -> None:
    wish = replace(REQUEST, extra=("-x", *words), output=output)
    found = directives(flux.script(wish))
    assert found[-2] == ["-x", *words]
    assert [f"--output={output}-{{{{id}}}}.out"] in found
