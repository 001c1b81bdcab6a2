"""Scripts that start a launcher of MPI, read and never run: against what a real shell starts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.binary.image.folder import FolderRoot
from mpigraft.core.errors import CheckFailed, UsageError
from mpigraft.graft.guest.command import CommandKind, GuestCommand
from mpigraft.graft.guest.commands import command_of
from mpigraft.graft.guest.scripts.shell import ShellScript
from mpigraft.graft.guest.scripts.shell_values import Variables
from mpigraft.request import GraftSpec
from mpigraft.request.job.spec import JobPlacement, MpmdProgram, RunSpec
from mpigraft.request.job.subject import job_subject
from mpigraft.selection.subject import examine_subject
from tests.builders.messages import matches, shows
from tests.builders.python_installs import LOADER, put

SH = "#!/bin/sh\n"
# Each starts a launcher whenever it runs: (script, its arguments).
CERTAIN = {
    "plain": ("mpirun -np 2 ./app in.dat\n", ""),
    "exec": ('exec mpirun -n 2 ./app "$@"\n', "a 'b c'"),
    "variable": ('MPIRUN="mpirun -np"\nNP=4\n$MPIRUN $NP ./app\n', ""),
    "default": ('MPIRUN=${MPIRUN:-mpirun}\n"$MPIRUN" -np ${NP:-3} ./app ${1:-none}\n', ""),
    "lookup": ('M=$(which mpirun)\ncd "$(dirname "$0")"\n$M -np 2 ./app\n', ""),
    "continued": ("mpirun \\\n  -np 2 \\\n  ./app # mpirun -np 9 ./other\n", ""),
    "document": ("cat <<END >in\nmpirun -np 9 ./no\nEND\nmpirun -np 2 ./app <in | cat >out\n", ""),
    "function": ('go () {\n  mpirun -np $1 ./app $2\n}\ngo 2 x\n', ""),
    "function-word": ("function go {\n mpirun -np 2 ./app\n}\ngo\n", ""),
    "loop": ('for n in 1 2 4; do\n  mpirun -np $n ./app run.$n\ndone\n', ""),
    "else": ('if [ -n "$NONE" ]; then mpirun -np 1 ./app\nelse mpirun -np 2 ./app; fi\n', ""),
    "case": ('case "$1" in a|b) mpirun ./app 1;; *) mpirun ./app 2;; esac\n', "b"),
    "checks": ("if [ ! -f ./app ]; then\n  echo no; exit 1\nfi\ncd . && mpirun -np 2 ./app\n", ""),
    "wrapped": ("nice -n 1 env A=1 mpirun -np 2 ./app\n", ""),
    "shift": ('n=$1; shift\nmpirun -np $n ./app "$@"\n', "3 x y"),
    "code": ("sh -c 'mpirun -np $1 ./app' name 5\n", ""),
    "eval": ('line="mpirun -np 2 ./app"\neval "$line"\n', ""),
    "other-script": ("./inner.sh 2 z\n", ""),
    "array": ('args=(-np 2 ./app "x y")\nmpirun "${args[@]}"\n', ""),
    "redirected": ("mpirun -np 2 ./app >log 2>&1 &\nwait\n", ""),
    "sourced": ('. ./env.sh\n$LAUNCH ./app\n', ""),
    "substitution": ("x=`mpirun -np 2 ./app`\necho $(mpirun -np 3 ./app)\n", ""),
    "shell-document": ("n=2\nbash -s x <<END\nmpirun -np $n ./app \\$1\nEND\n", ""),
    "piped-script": ("cat <<'END' | sh\nmpirun -np 2 ./app\nEND\n", ""),
    "written-script": ("cat >new.sh <<END\nmpirun -np ${1:-2} ./app\nEND\nsh new.sh\n", ""),
    "written-program": ("{ echo '#!/bin/sh'; echo mpirun ./app; } >new\nchmod +x new; ./new\n", ""),
    "decided": ('if [ "$1" = par ]; then mpirun ./app; else exec ./app; fi\n', "par"),
    "options": ("while [ $# -gt 0 ]; do\n case $1 in -h) exit 0;; -n) n=$2; shift;; esac\n shift\n"
                "done\nmpirun -np ${n:-2} ./app\n", "-n 5"),
    "counted": ("for ((i = 1; i <= 4; i *= 2)); do mpirun -np $i ./app; done\n", ""),
    "counted-words": ("i=1\nwhile [ $i -lt 3 ]; do mpirun -np $i ./app; i=$((i + 1)); done\n", ""),
    "braces": ("for n in {1..3}; do mpirun -np $n ./app; done\n", ""),
    "array-grows": ('m=(mpirun -np)\nm+=(2)\na=./a\na+=pp\n"${m[@]}" "$a"\n', ""),
    "folder-of": ('cd "${0%/*}" || exit\nmpirun ./app\n', ""),
    "error-before": ("die() { echo $1; exit 1; }\n[ -x ./app ] || die none\nmpirun ./app\n", ""),
    "brackets": ("[ \\( -d / -o ! -f / \\) -a 1 ] || exit 1\nfor i do :; done\nmpirun ./app\n", ""),
    "set": ('set -- -np 2 ./app\nmpirun "$@"\n', "lost"),
}  # fmt: skip


def tree(folder: Path, script: str, name: str = "job.sh") -> Path:
    """A folder with a launcher that notes its words, a program, and scripts that start them."""
    folder.mkdir(exist_ok=True)
    files = {
        "bin/mpirun": f'{SH}printf "%s\\0" "$@" >>{folder}/words; printf "\\n" >>{folder}/words\n',
        "app": f"{SH}:\n",
        "inner.sh": '#!/bin/bash\nexec mpirun -np "$1" ./app "$2"\n',
        "env.sh": 'LAUNCH="mpirun -np 2"\n',
        name: script,
    }
    for path, text in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
        (folder / path).chmod(0o755)
    return folder


def read(folder: Path, *words: str, **environment: str) -> GuestCommand:
    known = {"PATH": f"{folder}/bin:/usr/bin:/bin", **environment}
    return command_of(FolderRoot(Path("/")), words, known, str(folder))


@pytest.mark.parametrize("name", CERTAIN)
def test_words_are_those_that_a_shell_starts(name: str, tmp_path: Path) -> None:
    script, arguments = CERTAIN[name]
    folder = tree(tmp_path / "job", f"#!/bin/bash\n{script}")
    argv = (
        subprocess.run(
            ["/bin/bash", "-c", f'printf "%s\\0" {arguments}'], capture_output=True, check=True
        )
        .stdout.decode()
        .split("\0")[:-1]
    )
    given = argv if arguments else []
    command = read(folder, "./job.sh", *given)
    assert command.kind is CommandKind.LAUNCHER
    environment = {"PATH": f"{folder}/bin:/usr/bin:/bin"}
    subprocess.run(["./job.sh", *given], cwd=folder, env=environment, check=True)
    rows = (folder / "words").read_text().splitlines()
    started = [tuple(row.split("\0")[:-1]) for row in rows]
    known = [launch.words[1:] for launch in command.launches]
    assert known[: len(started)] == started or set(started) < set(known)


@pytest.mark.parametrize(
    ("script", "conditional"),
    [
        ("echo mpirun -np 2 ./app\n# mpirun -np 2 ./app\nwhich mpirun\n", False),
        ("command -v mpirun >/dev/null || exit 1\n./app\n", False),
        ('cat <<EOF\nmpirun -np 2 ./app\nEOF\nx="mpirun ./app"\nprintf "%s" "$x"\n', False),
        ("go () { mpirun ./app; }\n./app\n", False),
        ("if test -n $SLURM_JOB_ID; then srun ./app; fi\n", True),
        ("[ -z $RANK ] && mpirun ./app\n", True),
        ("test -f x || mpirun ./app\n", True),
        ("case $MODE in run) mpirun ./app;; test) ./app;; esac\n", True),
        ("case $1 in run) mpirun ./app;; test) ./app;; esac\n", False),  # $1 is known
        ('if [ $N -gt 1 ]; then E="mpirun ./app"; else E=./app; fi\n$E\n', True),
        ('if [ -n "$PMI_RANK" ]; then exec ./app; fi\nexec mpirun -np 2 "$0"\n', True),
        ('[ -n "$OMPI_COMM_WORLD_RANK" ] && exec ./app\nmpirun -np 2 "$0"\n', True),
        ('mpirun -np 2 "./app\n', True),  # no shell takes it
        ('if [ "$MODE" = par ]; then mpirun ./app; else exec ./app; fi\n', True),
        ('if [ "$MODE" = par ]; then mpirun ./app; else ./app; exit; fi\n', True),
        ('if [ "$1" = par ]; then mpirun ./app; else exec ./app; fi\n', False),
        ("exit 0\nmpirun ./app\n", False),
        ("if [ -f done ]; then exit; fi\nmpirun ./app\n", True),
        ("[ -f done ] && exit 0\nmpirun ./app\n", True),
        ("if [ $# -lt 1 ]; then exit; fi\nmpirun ./app\n", False),
        ("go() { [ -d $1 ] && return; mpirun ./app; }\ngo a\n", True),
        ("for i in 1 2; do [ -f out.$i ] && continue; mpirun -np $i ./app; done\n", True),
        ("while read x; do mpirun ./app $x; done <list\n", True),
        ("for x in $(ls); do mpirun ./app $x; done\n", True),
        ("ls | xargs -I{} mpirun ./app {}\n", True),
        ("( exit 0 )\nif false; then mpirun ./app; fi\n", False),
        ('exec "$@"\n', False),
        ("sbatch <<EOF\n#!/bin/bash\nmpirun ./app\nEOF\n", False),  # another job starts them
        ("apptainer exec x.sif mpirun -n 2 ./app\n", False),
    ],
)
def test_what_only_names_a_launcher_or_depends(
    script: str, conditional: bool, tmp_path: Path
) -> None:
    command = read(tree(tmp_path / "job", SH + script), "./job.sh")
    assert command.kind is CommandKind.UNKNOWN
    assert bool(command.launches) is conditional
    assert len(list(command.launches_on_condition())) == conditional


@pytest.mark.parametrize(
    ("name", "script"),
    [
        ("a.py", "import subprocess as sp\nsp.run(['mpirun', '-np', '2', './app'])\n"),
        ("a.py", "import os\nn = 2\nos.system(f'mpirun -np {n} ./app')\n"),
        ("a.py", "from subprocess import check_call\ndef main():\n  cmd = 'mpirun -np 2 ./app'\n"
                 "  check_call(cmd.split())\nif __name__ == '__main__':\n  main()\n"),
        ("a.py", "import os\nos.execvp('mpirun', ['mpirun', '-np', '2'] + ['./app'])\n"),
        ("a.pl", "#!/usr/bin/perl\nmy $n = '2';\nsystem(\"mpirun -np $n ./app\") == 0 or die;\n"),
        ("a.pl", "#!/usr/bin/perl -w\n# system('mpirun')\nexec 'mpirun', '-np', 2, './app';\n"),
        ("a.R", '#!/usr/bin/env Rscript\nsystem2("mpirun", c("-np", "2", "./app"))\n'),
        ("a.jl", "#!/usr/bin/env julia\nrun(`mpirun -np 2 ./app`)\n"),
        ("a.csh", "#!/bin/tcsh\nset np = 2\nif (! -e app) then\n exit 1\nendif\n"
                  "setenv X 1\nforeach i ( 1 )\n mpirun -np $np ./app\nend\n"),
        ("bare", "mpirun -np 2 ./app\n"),
    ],
)  # fmt: skip
def test_other_languages(name: str, script: str, tmp_path: Path) -> None:
    script = f"#!/usr/bin/python3\n{script}" if name == "a.py" else script
    command = read(tree(tmp_path / "job", script, name), f"./{name}")
    assert command.kind is CommandKind.LAUNCHER
    assert command.launches[0].words == ("mpirun", "-np", "2", "./app")


def fix(command: GuestCommand, *options: str) -> str:
    with pytest.raises(CheckFailed) as no:
        command.refuse(["job.sh"], verb=("mpigraft", "run"), options=options)
    assert no.value.exit_code == 1
    return str(no.value.fix)


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("mpirun -np 2 ./app 'a b'", "mpigraft run -n 2 -- ./app 'a b'"),
        ("mpiexec -ppn 2 -genv A 1 -f hosts ./app",
         "mpigraft run --ranks-per-node 2 --env A=1 --hostfile hosts -- ./app"),
        ("mpirun --mca pml ob1 -x B=2 --bind-to core ./app", "mpigraft run --env B=2 -- ./app"),
        ("srun -N2 --ntasks-per-node=4 -c 2 ./app",
         "mpigraft run --nodes 2 --ranks-per-node 4 -- ./app"),
        ("srun -v --nice -n 2 ./app", "mpigraft run -n 2 -- ./app"),
        ("mpirun -s -n 2 ./app", "mpigraft run -n 2 -- ./app"),
        ("mpiexec -pmi-port ./app", "mpigraft run -- ./app"),
        ("mpiexec -prepend-pattern ./out -n 2 ./app", "mpigraft run -n 2 -- ./app"),
        ("srun --bbf ./out -n 2 ./app", "mpigraft run -n 2 -- ./app"),
        ("aprun -B ./app", "mpigraft run -- ./app"),
        ("flux run --env-file ./out -n 2 ./app", "mpigraft run -n 2 -- ./app"),
        ("mpirun -np $NP ./app", "mpigraft run -- ./app"),
        ("mpirun -np 1 ./app x : -np 3 ./app y", "mpigraft run -n 1 -- ./app x : -n 3 ./app y"),
        ("flux run -n 2 ./app", "mpigraft run -n 2 -- ./app"),
        ("mpirun_rsh -np 2 A=1 ./app", "mpigraft run -n 2 --env A=1 -- ./app"),
        ("mpirun -np 2 apptainer exec -B /data app.sif solver x",
         "mpigraft run --image app.sif -n 2 -- solver x"),
        ("mpirun --unheard-of 7 ./app", "mpigraft run -- ./app"),
        ("cd sub\nmpirun -np 2 ../app", "cd {folder}/sub && mpigraft run -n 2 -- ../app"),
        ("mpigraft run -n 2 -- ./app", "start it without mpigraft"),
        ("mpirun -n 2 ./app <in >'the out' 2>&1",
         "`mpigraft run -n 2 -- ./app < in > 'the out' 2>&1`"),
        ("for n in 1 2; do mpirun -n $n ./app; done <in", "`mpigraft run -n 2 -- ./app < in`"),
        ("export A=1 PATH=$PATH:/x\nC='2 3' mpirun ./app\nD=4 ./app",
         "`mpigraft run --env A=1 --env 'C=2 3' -- ./app`"),
        ("#SBATCH -n 4\nmodule load m\nset -eu\nexport OMP_NUM_THREADS=$SLURM_CPUS\n"
         "cd $SLURM_SUBMIT_DIR\nfor n in 1 2; do srun -n $n ./app $SLURM_ARRAY_TASK_ID; done",
         "`mpigraft run -n 1 -- ./app ...`"),
        ("mpirun ./app <<<'3 4'", "`mpigraft run -- ./app <<< '3 4'`"),
        ("mpirun ./app <<END\n1 2\nEND", "`mpigraft run -- ./app < ...`"),
        ("cat in | mpirun ./app | tee out", "`... | mpigraft run -- ./app`"),
        ("echo x | xargs mpirun -n 2 ./app", "`mpigraft run -n 2 -- ./app ...`"),
        ("sh <<END\nmpirun ./app\nEND", "`mpigraft run -- ./app`"),
        ("mpirun ./app *.dat", "`mpigraft run -- ./app ...`"),
        ("salloc -N 2 mpirun ./app", "`mpigraft run -- ./app`"),
    ],
)  # fmt: skip
def test_the_command_to_type(line: str, command: str, tmp_path: Path) -> None:
    folder = tree(tmp_path / "job", f"#!/bin/bash\n{line}\n")
    (folder / "sub").mkdir()
    assert command.format(folder=folder) in fix(read(folder, "./job.sh"))


def test_options_of_the_job_come_before_those_of_the_script(tmp_path: Path) -> None:
    command = read(tree(tmp_path / "job", f"{SH}mpirun -np 8 ./app $UNSET\n"), "./job.sh")
    text = fix(command, "--image", "x.sif", "-n", "4")
    assert shows(text, "mpigraft run --image x.sif -n 4 -- ./app")
    assert "--no-proof" in text


def test_the_launcher_itself(tmp_path: Path) -> None:
    folder = tree(tmp_path / "job", SH)
    for words in (
        ("mpirun", "-np", "4", "./app"),
        ("nice", "-n", "3", "mpirun", "-np", "4", "./app"),
        (f"{folder}/bin/mpirun", "-np", "4", "./app"),
        ("env", "A=1", "mpiexec.hydra", "-n", "4", "./app"),
    ):
        assert shows(fix(read(folder, *words)), "mpigraft run -n 4 -- ./app")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tree(tmp_path / "job", f"{SH}exec mpirun -np 2 ./app\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", f"{folder}/bin:/usr/bin:/bin")
    return folder


@pytest.mark.parametrize("place", ["here", "image", "named", "second"])
def test_a_job_is_refused_before_it_starts(place: str, here: Path) -> None:
    image = str(here) if place in ("image", "named") else ""
    first = ("./app",) if place == "second" else ("./job.sh",)
    others = (MpmdProgram(("./job.sh",), 1),) if place == "second" else ()
    spec = RunSpec(first, image=image, where=JobPlacement(others=others), proof=True)
    if place == "named":
        (here / "elf").write_bytes(Path("/bin/true").read_bytes())
        (here / "elf").chmod(0o755)
        spec = RunSpec(first, image=image, programs=("./elf",))
    with pytest.raises(CheckFailed) as no:
        job_subject(spec, {"PATH": f"{here}/bin:/bin"})
    assert no.value.code == "script-starts-launcher"
    free = RunSpec(("./job.sh",), proof=False)
    assert job_subject(free, {"PATH": f"{here}/bin:/bin"}).guest is None


@pytest.mark.parametrize(
    "options",
    [
        "run --bind=/usr --env A=1 --map-by numa --engine-option=bwrap=--new-session",
        "run -n4 --hosts localhost --gpus --stdin none",
        "profile --waits -o app.json --html app.html --top 3",
        "record -o app.record --budget 8M --bind-to none",
        "check --mpi openmpi --replace libfabric --no-glibc --json --image .",
        "plan --mpi openmpi --as shell --output app.sh --image .",
        "plan --mpi openmpi --engine bwrap --engine-option=--new-session --engine-option=bwrap=-x"
        " --replace libfabric --no-glibc --force --ranks-per-node 4 --image .",
    ],
)
def test_the_offered_command_has_every_option_that_was_typed(options: str, here: Path) -> None:
    (here / "usr").mkdir()
    argv = [sys.executable, "-m", "mpigraft.cli.entry", *options.split(), "--", "./job.sh"]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    ranks = "" if "-n4" in options or options[-1] == "." else " -n 2"
    assert ended.returncode == 1
    assert shows(ended.stderr, f"mpigraft {options}{ranks} -- ./app")


@pytest.mark.parametrize("words", [("job.sh",), (".", "--program", "./job.sh"), (".", "./job.sh")])
def test_check_and_plan_examine_as_run_does(words: Sequence[str], here: Path) -> None:
    (here / "usr").mkdir()
    spec, *rest = words
    programs = rest[1:] if rest[:1] == ["--program"] else ()
    with pytest.raises(CheckFailed) as no:
        examine_subject(GraftSpec(spec, () if programs else tuple(rest), programs=tuple(programs)))
    assert no.value.code == "script-starts-launcher"


def test_an_interpreter_alone_is_no_answer(here: Path) -> None:
    put(here, {LOADER: ""})
    (here / "usr/bin").mkdir(parents=True)
    for name in ("python3", "perl", "sh"):
        (here / "usr/bin" / name).write_bytes(Path("/bin/true").read_bytes())
        (here / "usr/bin" / name).chmod(0o755)
        with pytest.raises(UsageError) as error:
            examine_subject(GraftSpec(".", programs=(name,)))
        assert error.value.code == "interpreter-alone"
        assert matches(
            str(error.value.fix), "interpreter-alone", way=f"mpigraft check --image . -- {name}"
        )


@given(st.text(alphabet="ab$(){}[]`'\"\\|&;<># \n=-", max_size=40))
def test_any_text_is_read_to_its_end(text: str) -> None:
    follow(text)


def follow(text: str) -> ShellScript:
    """A script of that text, which starts no other."""
    script = ShellScript("job.sh", Variables({}, ()), lambda *_: None, lambda _: "")
    script.read(text)
    return script


@given(st.data())
def test_mutated_scripts_are_read_to_their_end(data: st.DataObject) -> None:
    script = data.draw(st.sampled_from([text for text, _ in CERTAIN.values()]))
    other = data.draw(st.sampled_from([text for text, _ in CERTAIN.values()]))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(script)))
        length = data.draw(st.integers(0, 6))
        inserted = data.draw(st.one_of(st.text(max_size=4), st.just(other), st.just("\0")))
        script = script[:place] + inserted + script[place + length :]
    follow(script)


@given(st.binary(max_size=300))
def test_any_bytes_are_read_to_their_end(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    assert all(not one.certain or "run" in text for one in follow(text).launches)


@pytest.mark.parametrize(
    "text",
    [
        "{ " * 3000 + "mpirun ./app",
        "if " * 3000 + "mpirun ./app",
        "$(" * 3000 + "mpirun ./app",
        "${a:-" * 3000,
        "x|" * 30_000,
        "a=(" * 20_000,
        "<<A\n" * 20_000,
        "for i in 1 2 3 4 5 6 7 8; do\n" * 20 + "x=$x$x$x\n" + "done\n" * 20,
        "x=ab; while :; do x=$x$x$x$x; y=${x%%*a*b*a*c*}; done\n" * 20,
        "f() { f; eval f; f | f; }\nf\n" * 20,
        "a" * (10 << 20),
    ],
    ids=lambda text: f"{text[:12].strip()}",
)
def test_hostile_scripts_make_no_claim(text: str) -> None:
    script = follow(text)
    assert not [one for one in script.launches if one.certain]
    assert script.budget.steps > -100  # the bound on what is followed ended it


def test_scripts_that_start_each_other_end(tmp_path: Path) -> None:
    loop = "for i in 1 2 3 4 5 6 7 8 9; do ./job.sh $i; ./other.sh; done\n"
    folder = tree(tmp_path / "job", SH + loop)
    (folder / "other.sh").write_text(SH + loop)
    assert read(folder, "./job.sh").kind is CommandKind.UNKNOWN


def test_a_script_that_is_not_there_yet_is_a_source(tmp_path: Path) -> None:
    folder = tree(tmp_path / "job", f"{SH}sh later.sh\n./then.sh\n. ./env2.sh\n")
    command = read(folder, "./job.sh")
    assert {f"{folder}/{name}" for name in ("later.sh", "then.sh", "env2.sh")} < {*command.sources}


def test_the_grammar_is_loaded_for_scripts_alone() -> None:
    code = (
        "import sys; import mpigraft.graft.guest.commands; "
        "sys.exit(any(name.startswith('tree_sitter') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
