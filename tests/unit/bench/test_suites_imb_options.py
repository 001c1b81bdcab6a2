"""IMB's calling sequence: what changes the measurement is in the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpigraft.bench import ImportOptions
from mpigraft.bench.importing.reading import ImportSource, read_results
from mpigraft.bench.suites import imb
from mpigraft.core.errors import UsageError

BANNER = "#    Intel(R) MPI Benchmarks 2021.10, MPI-1 part{gpu}\n"
TEXT = BANNER + (
    "# Calling sequence was:\n\n# ./IMB-MPI1 {words}\n\n# Minimum message length in bytes:   0\n"
    "# MPI_Datatype                   :   MPI_BYTE\n# List of Benchmarks to run:\n\n# PingPong\n"
    "# Benchmarking PingPong\n# #processes = 2\n"
    "       #bytes #repetitions      t[usec]   Mbytes/sec\n"
    "            4         1000         2.02         1.98\n"
)


def keys(words: str, gpu: str = "") -> tuple[str, list[str]]:
    parsed = imb.parse(TEXT.format(gpu=gpu, words=words).encode(), source="a")
    return parsed.measurements[0].benchmark.key, [f.code for f in parsed.findings]


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("PingPong", ""),
        ("-iter 50 -msglog 3:6 -npmin 2 -time 5 -mem 1 -iter_policy off PingPong", ""),
        ("-off_cache -1 -iter_policy off PingPong", "off_cache=-1"),
        ("PingPong -off_cache 8,64", "off_cache=8+64"),
        ("-sync 0 PingPong", "sync=off"),
        ("-sync on -root_shift off -warm_up yes PingPong", ""),
        (
            "-root_shift on -imb_barrier 1 -msg_pause on",
            "imb_barrier=on,msg_pause=on,root_shift=on",
        ),
        ("-contig_type resize PingPong", "contig_type=resize"),
        ("-window_size 256 -thread_level multiple", "thread_level=multiple,window_size=256"),
        ("-map 4x2\n#   -warm_up off PingPong", "map=4x2,warm_up=off"),
    ],
)
def test_options_that_change_what_is_measured_are_in_the_key(words: str, options: str) -> None:
    assert keys(words) == (f"imb:PingPong{',' * bool(options)}{options}", [])


def test_an_option_that_is_not_known_makes_a_key_of_its_own() -> None:
    assert keys("-aggregate_mode agg -msgsz 64 PingPong") == ("imb:PingPong", [])
    assert keys("-hyper_mode 3 PingPong") == ("imb:PingPong,hyper_mode=3", ["imb-option-unknown"])
    assert keys("-turbo -iter 5 PingPong") == ("imb:PingPong,turbo=yes", ["imb-option-unknown"])


@pytest.mark.parametrize(
    ("gpu", "words", "buffers", "key"),
    [
        (" (GPU)", "-mem_alloc_type device PingPong", "gpu", "imb:PingPong"),
        (" (GPU)", "PingPong", "gpu", "imb:PingPong"),
        (" (GPU)", "-mem_alloc_type shared PingPong", "gpu", "imb:PingPong,memory=shared"),
        (" (GPU)", "-mem_alloc_type host PingPong", "host", "imb:PingPong"),
        ("", "PingPong", "host", "imb:PingPong"),
    ],
)
def test_programs_for_gpus_measure_their_memory(
    tmp_path: Path, gpu: str, words: str, buffers: str, key: str
) -> None:
    path = tmp_path / "a.out"
    path.write_text(TEXT.format(gpu=gpu, words=words))
    (table,) = read_results(ImportSource.of(path), ImportOptions("a"))  # type: ignore[misc]
    assert (table.buffers, table.benchmarks) == (buffers, (key,))


def test_host_and_gpu_buffers_are_not_mixed(tmp_path: Path) -> None:
    path = tmp_path / "a.out"
    path.write_text(TEXT.format(gpu=" (GPU)", words="") + TEXT.format(gpu="", words="PingPong"))
    with pytest.raises(UsageError, match="gpu and host buffers"):
        read_results(ImportSource.of(path), ImportOptions("a"))
