"""Programs of other suites in real campaigns: Intel's, OSU's by their names, applications."""

from __future__ import annotations

import json
import os
import sys
import tarfile
import zipfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.bench import pipeline
from mpigraft.bench.schedule.campaign import Campaign, plan_campaign, resume_campaign
from mpigraft.bench.suites import imb_programs
from mpigraft.core.errors import CheckFailed, LaunchFailed, MissingError, UsageError
from mpigraft.core.model import Benchmark, Family, LaunchState, Layout, Machine
from mpigraft.core.process.command import run_command
from mpigraft.discovery import fetch_openmp
from mpigraft.native.programs import PREBUILT
from mpigraft.report import load_report
from mpigraft.request.apps import App
from mpigraft.request.spec import CampaignSpec
from mpigraft.store import Store
from tests.mpi.campaigns import Silent, mpigraft, short
from tests.unit.discovery.test_modules import LMOD, needs_lmod

pytestmark = pytest.mark.mpi
BENCH = PREBUILT / os.uname().machine / "mpich" / "mpigraft-bench"
REAL_OSU = "MPIGRAFT_TEST_OSU"  # a build of the OSU Micro-Benchmarks for one of the MPIs
# What a script does that stands for a program of OSU: its options are those of version 7.4.
OSU = f"""#!/bin/sh
# understands "+:hvm:x:i:c::z::T:f"
name=${{0##*/osu_}}
while [ "$#" -gt 0 ]; do case $1 in
    -m) sizes=$2; shift 2;;
    -i|-T) shift 2;;
    *) shift;;
esac; done
set -- --min "${{sizes%%:*}}" --max "${{sizes##*:}}" --budget 1
exec {BENCH} --format osu --benchmark "$name" "$@"
"""


def program(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


def run(planned: Campaign, machine: Machine, store: Store) -> tuple[str, Silent]:
    watch = Silent()
    return pipeline.run_campaign(planned, machine, store, watch), watch


def test_intels_programs_run_beside_ours_under_intel_mpi_and_mpich(
    machine: Machine, store_folder: Path
) -> None:
    planned = short(
        machine, benchmark=("imb:PingPong", "latency", "imb:Unidir_put"), mpi=("intel", "mpich"),
        transport=("shm", "shm-ofi-tcp"), rounds=1, quick=True,
    )  # fmt: skip
    store = Store(store_folder)
    identity, watch = run(planned, machine, store)
    assert all(e.ok for e in watch.evidence)
    launches = store.launches(identity)
    assert {x.state for x in launches} == {LaunchState.OK}
    arms = len(planned.configurations) + 1
    programs = {"": arms, "imb:PingPong": arms, "imb:Unidir_put": arms}
    assert Counter(x.program for x in launches) == programs
    values = store.values(identity)
    measured = {(v.configuration, v.benchmark.partition(",")[0]) for v in values}
    assert len(measured) == 3 * len(planned.configurations)
    assert {v.size for v in values if v.benchmark == "imb:PingPong"} == {2**n for n in range(7)}
    documents = [json.loads(c.provenance) for c in store.configurations(identity)]
    assert all({"IMB-MPI1", "IMB-RMA"} <= {name for name, _ in d["files"]} for d in documents)
    groups = {g.benchmark for g in load_report(store, identity).comparison.groups}
    assert {"imb:PingPong", "native:latency"} <= groups


def test_intels_programs_are_refused_under_open_mpi(machine: Machine) -> None:
    with pytest.raises(CheckFailed, match="runs on none") as no:
        short(machine, benchmark=("imb:PingPong",), mpi=("openmpi",))
    assert "built for MPICH 3.1 and newer" in no.value.why
    mixed = short(machine, benchmark=("imb:PingPong", "latency"), mpi=("openmpi", "mpich"))
    assert {s.configuration.mpi.family for s in mixed.starts if s.configuration.mpi} == {"mpich"}
    refused = [why for what, why in mixed.skipped if what.endswith("imb:PingPong")]
    assert refused
    assert all("built for MPICH" in why for why in refused)
    assert {c.mpi.family for c in mixed.configurations if c.mpi} == {"openmpi", "mpich"}
    with pytest.raises(CheckFailed, match=r"openmpi.* can run none of the benchmarks"):
        short(machine, benchmark=("imb:PingPong",), mpi=("openmpi", "mpich"))


def test_an_osu_build_runs_and_one_that_fails_is_a_row(
    machine: Machine, store_folder: Path, tmp_path: Path
) -> None:
    build = tmp_path / "build"
    build.mkdir()
    for name in ("osu_latency", "osu_allreduce"):
        program(build, name, OSU)
    program(build, "osu_bw", f"#!/bin/sh\nexec {BENCH} --no-such-option\n")
    names = ("osu:latency", "osu:bw", "osu:allreduce")
    spec = CampaignSpec(
        benchmark=names, osu=(str(build),), max_size=64, rounds=3, seed=3, budget_ms=1.0,
        transport=("shm-ofi-tcp",), baseline="mpich",
    )  # fmt: skip
    only = tuple(m for m in machine.mpis if m.family == "mpich")
    machine = replace(machine, mpis=only)
    planned = plan_campaign(spec, machine)
    store = Store(store_folder)
    watch = Silent()
    with pytest.raises(LaunchFailed, match="exit"):
        pipeline.run_campaign(planned, machine, store, watch)
    launches = store.launches(store.campaign().id)
    states = Counter((x.program, x.state) for x in launches)
    assert states["osu:bw", LaunchState.FAILED] == 2  # then it is given up
    assert states["osu:latency", LaunchState.OK] == states["osu:allreduce", LaunchState.OK] == 6
    measured = {v.benchmark for v in store.values(store.campaign().id)}
    assert {key.partition(",")[0] for key in measured} == {"osu:latency", "osu:allreduce"}


APP = f"""#!/bin/sh
{BENCH} --benchmark latency --max 4 --budget 1 > /dev/null || exit 1
[ "${{PMI_RANK:-0}}" = 0 ] || exit 0
echo "step 1"
echo "Performance: 41.5 ns/day of $1 ranks"
echo '{{"t": {{"wall": 2.5}}}}' > result.json
"""


def an_app(folder: Path, **more: object) -> App:
    program(folder, "lj", APP)
    values: dict[str, object] = {
        "command": ("./lj", "{ranks}"), "figure": r"Performance: ([\d.]+)", "unit": "ns/day",
        "metric": "performance", "better": "higher", "name": "lj", "folder": str(folder),
    }  # fmt: skip
    return App(**{**values, **more})  # type: ignore[arg-type]


def test_an_application_is_measured_by_its_figure_of_merit(
    machine: Machine, store_folder: Path, tmp_path: Path
) -> None:
    wall = an_app(
        tmp_path, name="wall", figure="", json="t.wall", output="result.json", unit="s",
        better="lower", metric="time",
    )  # fmt: skip
    planned = short(
        machine, benchmark=(), app=(an_app(tmp_path), wall), mpi=("mpich",),
        transport=("shm-ofi-tcp",), rounds=1,
    )  # fmt: skip
    store = Store(store_folder)
    identity, _ = run(planned, machine, store)
    values = {(v.benchmark, v.metric, v.size, v.value) for v in store.values(identity)}
    assert values == {
        ("app:lj", "performance [ns/day] higher", 0, 41.5),
        ("app:wall", "time [s] lower", 0, 2.5),
    }
    launches = store.launches(identity)
    assert {x.state for x in launches} == {LaunchState.OK}
    kept = next(dict(x.artefacts)["figure"] for x in launches if x.program == "app:wall")
    assert json.loads(store.artefact(kept)) == {"t": {"wall": 2.5}}
    document = json.loads(store.configurations(identity)[0].provenance)
    assert document["suites"]["app:lj"][1:] == [str(tmp_path / "lj"), "{ranks}"]


EVERYDAY = f"""#!/bin/sh
{BENCH} --benchmark latency --max 4 --budget 1 > /dev/null || exit 1
[ "${{PMI_RANK:-0}}" = 0 ] || exit 0
for step in 1 2 3; do echo "step $step took $step.0D+01 s"; done > "log.$1"
[ "$(cat input)" = good ] && echo "Finished in $GREETING with $SITE" || echo "gave up"
"""


@needs_lmod
def test_an_application_has_inputs_modules_and_a_log(
    machine: Machine, store_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends with exit code 0 though it failed: what it prints at its end is what counts."""
    (tmp_path / "modules").mkdir()
    text = f'setenv("SITE", "here")\nprepend_path("PATH", "{tmp_path}")\nsetenv("FI_PROVIDER", "x")'
    (tmp_path / "modules/md.lua").write_text(f"{text}\n")
    monkeypatch.setenv("MODULEPATH", str(tmp_path / "modules"))
    monkeypatch.setenv("LMOD_CMD", str(LMOD))
    program(tmp_path, "md", EVERYDAY)
    (tmp_path / "input").write_text("good")
    app = an_app(
        tmp_path, command=("md", "{ranks}"), figure=r"took (\S+) s", take="sum", unit="s",
        better="lower", output="log.{ranks}", success="^Finished in style with here$",
        env=("GREETING=style",), modules=("md",), files=("input",),
    )  # fmt: skip
    words: dict[str, object] = {
        "app": (app,), "benchmark": (), "mpi": ("mpich",), "transport": ("shm-ofi-tcp",),
        "rounds": 1,
    }  # fmt: skip
    planned = short(machine, **words)
    assert all(r.name != "FI_PROVIDER" for r in planned.starts[0].configuration.environment)
    store = Store(store_folder)
    identity, _ = run(planned, machine, store)
    assert {v.value for v in store.values(identity)} == {60.0}
    (tmp_path / "input").write_text("bad")
    with pytest.raises(LaunchFailed, match="nothing that it printed matches success"):
        run(short(machine, **words), machine, store)
    assert store.values(store.campaign().id) == []
    with pytest.raises(UsageError, match="there is no folder"):
        short(machine, **{**words, "app": (replace(app, folder=str(tmp_path / "none")),)})
    with pytest.raises(MissingError, match="nomodule"):
        short(machine, **{**words, "app": (replace(app, modules=("nomodule",)),)})


def test_what_an_application_did_not_write_is_not_its_figure(
    machine: Machine, store_folder: Path, tmp_path: Path
) -> None:
    """An earlier launch left the file; this one wrote nothing."""
    (tmp_path / "old.json").write_text('{"t": 1}')
    stale = an_app(tmp_path, figure="", json="t", output="old.json")
    planned = short(machine, app=(stale,), benchmark=(), mpi=("mpich",),
                    transport=("shm-ofi-tcp",), rounds=1)  # fmt: skip
    store = Store(store_folder)
    with pytest.raises(LaunchFailed, match=r"old\.json: it was not written"):
        run(planned, machine, store)
    assert store.values(store.campaign().id) == []


def test_the_figure_of_a_run_that_failed_is_not_trusted(
    machine: Machine, store_folder: Path, tmp_path: Path
) -> None:
    bad = an_app(tmp_path, command=("./bad",))
    program(tmp_path, "bad", f"{APP}exit 3\n")
    planned = short(machine, app=(bad,), benchmark=(), mpi=("mpich",),
                    transport=("shm-ofi-tcp",), rounds=1)  # fmt: skip
    store = Store(store_folder)
    with pytest.raises(LaunchFailed, match="exit code 3"):
        run(planned, machine, store)
    launch = store.launches(store.campaign().id)[0]
    assert launch.state is LaunchState.FAILED
    assert b"Performance" in store.artefact(dict(launch.artefacts)["stdout"])
    assert store.values(store.campaign().id) == []


def test_a_benchmark_that_hangs_ends_alone(
    machine: Machine, store_folder: Path, tmp_path: Path
) -> None:
    """Its limit is its own: the launches beside it are measured, and the round goes on."""
    hung = an_app(tmp_path, name="hung", command=("./hung",))
    program(tmp_path, "hung", f"{APP}sleep 60\n")
    planned = short(
        machine, app=(an_app(tmp_path), hung), benchmark=("latency", "app:lj", "app:hung"),
        mpi=("mpich",), transport=("shm-ofi-tcp",), rounds=1, limits=("app:hung=2",),
    )  # fmt: skip
    store = Store(store_folder)
    with pytest.raises(LaunchFailed, match=r"shm-ofi-tcp app:hung: .* after 2 s"):
        run(planned, machine, store)
    launches = store.launches(store.campaign().id)
    assert {(x.program, x.state) for x in launches} == {
        ("", LaunchState.OK), ("app:lj", LaunchState.OK), ("app:hung", LaunchState.TIMEOUT),
    }  # fmt: skip
    assert {v.benchmark for v in store.values(store.campaign().id)} == {"native:latency", "app:lj"}


def test_a_program_without_mpi_is_no_benchmark(machine: Machine, tmp_path: Path) -> None:
    with pytest.raises(CheckFailed, match="runs on none") as no:
        short(
            machine, app=(an_app(tmp_path, command=("/bin/true",)),), benchmark=(), mpi=("mpich",)
        )
    assert "MPI" in no.value.why


def test_a_campaign_goes_on_with_the_programs_that_it_began_with(
    machine: Machine, store_folder: Path, tmp_path: Path
) -> None:
    app = an_app(tmp_path, files=("input",))
    (tmp_path / "input").write_text("1")
    planned = short(machine, app=(app,), benchmark=(), mpi=("mpich",),
                    transport=("shm-ofi-tcp",), rounds=2)  # fmt: skip
    store = Store(store_folder)
    identity, _ = run(planned, machine, store)
    record = store.campaign(identity)
    again = resume_campaign(record.plan, machine)
    assert pipeline.run_campaign(again, machine, store, Silent(), record) == identity
    assert len(store.launches(identity)) == 4
    (tmp_path / "input").write_text("2")
    with pytest.raises(UsageError, match="other files"):
        pipeline.run_campaign(again, machine, store, Silent(), record)


def test_the_command_line_names_an_application(fresh_home: Path, tmp_path: Path) -> None:
    program(tmp_path, "lj", APP)
    keys = {"command": "./lj {ranks}", "figure": "Performance: ([0-9.]+)", "unit": "ns/day",
            "better": "higher"}  # fmt: skip
    app = f"lj={{{', '.join(f'{key}={json.dumps(value)}' for key, value in keys.items())}}}"
    words = ("bench", "--app", app, "--mpi", "mpich@5", "--transport", "shm-ofi-tcp",
             "--rounds", "1")  # fmt: skip
    done = mpigraft("--store", tmp_path / "store", *words, "--dry-run", "--full", cwd=tmp_path)
    assert f"app:lj: {tmp_path}/lj 2" in done.stdout
    done = mpigraft("--store", tmp_path / "store", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "app:lj: figure in ns/day, higher is better" in done.stdout
    shown = mpigraft("--store", tmp_path / "store", "compare", "--json", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr


def test_a_real_osu_build(machine: Machine, store_folder: Path) -> None:
    if REAL_OSU not in os.environ:
        pytest.skip(f"no build of the OSU Micro-Benchmarks: set {REAL_OSU} to the path of one")
    names = ("osu:latency", "osu:allreduce", "osu:iallreduce", "osu:put_latency", "osu:init")
    planned = plan_campaign(
        CampaignSpec(benchmark=names, osu=(os.environ[REAL_OSU],), quick=True, rounds=1), machine
    )
    store = Store(store_folder)
    identity, _ = run(planned, machine, store)
    assert {x.state for x in store.launches(identity)} == {LaunchState.OK}


@pytest.mark.long
def test_mpi4pys_own_programs(
    machine: Machine, store_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From PyPI: the wheel's extension modules find each MPI, and the demos are in the sources."""
    for words in (("--only-binary=:all:",), ("--no-binary=:all:", "--no-build-isolation")):
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", tmp_path, *words]
        done = run_command([*pip, "mpi4py==4.1.2"], limit_s=300)
        assert done.ok, done.text()
    (wheel,), (source,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    run_command([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], limit_s=120)
    (site,) = tmp_path.glob("venv/lib/python3*/site-packages")
    zipfile.ZipFile(wheel).extractall(site)
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    (demo,) = tmp_path.glob("mpi4py-*/demo")
    monkeypatch.setenv("PATH", f"{tmp_path / 'venv/bin'}:{os.environ['PATH']}")
    names = ("osu:latency", "osu:bw", "osu:barrier")
    planned = short(machine, benchmark=names, osu=(str(demo),), rounds=1,
                    transport=("ob1-sm", "shm-ofi-tcp"), mpi=("openmpi", "mpich"))  # fmt: skip
    store = Store(store_folder)
    identity, _ = run(planned, machine, store)
    assert {x.state for x in store.launches(identity)} == {LaunchState.OK}
    values = store.values(identity)
    assert {(v.benchmark, v.metric) for v in values} == {
        ("osu:latency,binding=mpi4py", "latency"),
        ("osu:bw,binding=mpi4py", "bandwidth"),
        ("osu:barrier,binding=mpi4py", "latency"),
    }
    assert {v.configuration for v in values} == {c.key for c in planned.configurations}


@pytest.mark.long
def test_every_benchmark_of_imb_that_can_start_here(
    machine: Machine, mpis: Mapping[Family, Path], store_folder: Path
) -> None:
    """IMB-MT needs Intel's OpenMP library, which no wheel of MPI brings."""
    spec = CampaignSpec(max_size=64)
    intel = mpis[Family.INTEL]
    fetch_openmp(intel)
    names = [Benchmark("imb", name) for name in imb_programs.names(spec)]
    every = [b.key for b in names if imb_programs.ranks(b, spec).fit(Layout(1, 2))]
    every += ["imb:PingPong,part=P2P", "imb:PingPing,part=P2P"]
    planned = short(machine, benchmark=tuple(every), rounds=1, quick=True, mpi=("intel",),
                    transport=("shm",), layout=("1x2",))  # fmt: skip
    store = Store(store_folder)
    identity, watch = run(planned, machine, store)
    bad = [o.findings for o in watch.outcomes if o.state is not LaunchState.OK]
    assert bad == []
    asked = {x.program for x in store.launches(identity)}
    measured = [Benchmark.parse(v.benchmark) for v in store.values(identity)]
    assert [key for key in asked if not any(Benchmark.parse(key).covers(m) for m in measured)] == []
    sizes = {v.size for v in store.values(identity) if v.benchmark.startswith("imb:BcastMT")}
    assert sizes == {1 << n for n in range(7)}  # bytes, and not numbers of integers


def test_imb_mt_without_openmp_says_what_to_fetch(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imb_programs, "OPENMP_FOLDER", "not-fetched")
    with pytest.raises(CheckFailed, match="PingPongMT") as no:
        short(machine, benchmark=("imb:PingPongMT",), mpi=("intel",))
    assert "libiomp5.so, which the guest's IMB-MT needs, is missing" in no.value.why
    assert "mpigraft get intel --openmp" in no.value.why
