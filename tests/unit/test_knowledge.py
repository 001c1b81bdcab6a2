"""Rows, tells and known issues: what is read, what is refused, and what a wish resolves to."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from probes import HERE, install

from mpigraft.errors import MissingError, UsageError
from mpigraft.knowledge import loader
from mpigraft.knowledge.loader import (
    Facts,
    issues,
    matching_issues,
    names,
    offers,
    read_issues,
    resolve,
    rows,
)
from mpigraft.knowledge.rows import FLAGS, Row, When, read_rows, read_tells
from mpigraft.knowledge.table import Range, document, version
from mpigraft.model import (
    Cpu,
    Family,
    Kind,
    Machine,
    MpiInstall,
    NetDevice,
    NetLibrary,
    Peer,
    Scope,
)

SLINGSHOT = Facts(interface="hsn0", cxi=("cxi0", "cxi1"), infiniband=())
MELLANOX = Facts(interface="eth0", cxi=(), infiniband=("mlx5_0",))
LOOPBACK = Facts(interface="lo", cxi=(), infiniband=())


def openmpi(libfabric: str | None = "2.5.1", version: str = "5.0.11") -> MpiInstall:
    library = libfabric and NetLibrary("libfabric", libfabric, None, ("tcp", "shm", "lnx", "cxi"))
    return install(f"openmpi@{version}", libfabric=library)


# ------------------------------------------------------------------ what is in the files


def test_the_public_names() -> None:
    lists = {family: set(names(family)) for family in Family}
    assert lists[Family.OPENMPI] >= {"ob1-sm", "ob1-tcp", "ofi-tcp", "ofi-lnx", "ofi-cxi", "ucx"}
    assert lists[Family.MPICH] >= {"ofi-tcp", "ofi-cxi", "ucx"}
    assert lists[Family.INTEL] == {"shm", "shm-ofi-tcp", "ofi-tcp"}


def test_every_known_issue_is_a_row() -> None:
    found = {issue.id for issue in issues()}
    for area, count in (
        ("LNX", 14), ("SHM", 3), ("CXI", 12), ("BLD", 5), ("UCX", 6), ("CMA", 3), ("SEL", 9),
        ("GPU", 6), ("LCH", 10), ("COL", 3),
    ):  # fmt: skip
        assert {f"{area}-{n:02}" for n in range(1, count + 1)} <= found


def test_every_issue_says_what_to_do_and_where_it_is_from() -> None:
    known = {"source", "doc", "issue", "observed"}
    for issue in issues():
        assert issue.symptom, issue.id
        assert issue.cause, issue.id
        assert issue.fix, issue.id
        assert issue.sources, issue.id
        assert issue.evidence, issue.id
        for word in issue.evidence:
            assert word in known or word.startswith(("inferred", "observed")), (issue.id, word)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.id)
def test_every_row_forces_the_top_layer(row: Row) -> None:
    top = {
        Family.OPENMPI: "OMPI_MCA_pml",
        Family.MPICH: "MPIR_CVAR_CH4_NETMOD",
        Family.INTEL: "I_MPI_FABRICS",
    }
    assert dict(row.env)[top[row.family]]
    assert row.sources


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.id)
def test_every_sign_can_contradict_and_no_line_is_both(row: Row) -> None:
    """A sign of the wish comes with the sign of anything else, for the same kind and peers."""
    for sign in row.signs:
        re.compile(sign.pattern)
        twins = [s for s in row.signs if (s.kind, s.peer) == (sign.kind, sign.peer)]
        if sign.proves:
            assert any(not twin.proves for twin in twins)


def test_probe_settings_never_select_a_transport() -> None:
    loud = re.compile(r"VERBOSE|DEBUG|LOG|DISPLAY", re.IGNORECASE)
    for row in rows():
        for name, _ in row.probe:
            assert loud.search(name), f"{row.id}: {name}"
        assert not {name for name, _ in row.probe} & {name for name, _ in row.env}


# ------------------------------------------------------------------ what is refused


def files() -> tuple[dict[str, Any], dict[str, Any]]:
    return (
        copy.deepcopy(dict(document("transports.toml"))),
        copy.deepcopy(dict(document("families.toml"))),
    )


def refusal(change: Callable[[dict[str, Any]], object], index: int = 0) -> str:
    """The message when one row of transports.toml is changed."""
    transports, families = files()
    change(transports["transport"][index])
    with pytest.raises(UsageError) as caught:
        read_rows(transports, read_tells(families))
    return str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("id", "", "key id: empty"),
        ("name", 3, "key name: 3 is not str"),
        ("name", True, "key name: True is not str"),
        ("family", "openmp", "key family: 'openmp' is none of"),
        ("peers", ["near"], "key peers: 'near' is none of"),
        ("peers", [], "key peers: missing"),
        ("peers", "self", "key peers: 'self' is not list"),
        ("peers", ["self", "self"], "key peers: a word stands twice"),
        ("when", {"mpi": "5.0"}, "when, key mpi: '5.0' is not >=VERSION"),
        ("when", {"mpi": ">=5,<5"}, "when, key mpi: no version is in this range"),
        ("when", {"mpi": ">=5,>=6"}, "when, key mpi: '>=6' is not"),
        ("when", {"cxi": "yes"}, "when, key cxi: 'yes' is not bool"),
        ("when", {"cix": True}, "when, key cix: nobody knows this key"),
        ("needs", {"components": ["pml"]}, "needs, key components: 'pml' is not framework:name"),
        ("env", {"X": "{nic}"}, "key env.X: no fact is called 'nic'"),
        ("env", {"X": 1}, "key env.X: 1 is not text"),
        ("env", {"a b": "1"}, "key env.a b: not a name of the environment"),
        ("env", {}, "key env: nothing is forced"),
        ("signs", [], "key signs: p2p on-node has no sign that names the lane"),
        ("signs", [{"tell": "nothing", "expect": "x"}], "key tell: openmpi tells nothing called"),
        ("signs", [{"tell": "pml", "expect": "("}], "key expect: not a regular expression"),
        ("signs", [{"tell": "pml", "expect": "x", "wire": "lo"}], "key wire: 'lo' is none of"),
        ("signs", [{"tell": "pml", "expect": "x", "wire": "none"}], "key wire: only a sign that"),
        (
            "signs",
            [{"tell": "pml", "expect": "x", "kinds": ["all"]}],
            "key kinds: 'all' is none of",
        ),
        ("signs", [{"tell": "pml", "expect": "x", "lane": 3}], "key lane: 3 is neither"),
        ("signs", [{"use": "nothing"}], "key use: no group is called nothing"),
        ("signs", [1], "signs 1: not a table but int"),
        ("untold", ["one-sided"], "one-sided on-node names the lane although untold"),
        ("extra", 1, "key extra: nobody knows this key"),
        ("sources", None, "key sources: missing"),
    ],
)
def test_a_wrong_row_is_one_error_that_names_row_and_key(key: str, value: Any, says: str) -> None:
    message = refusal(lambda row: row.__setitem__(key, value))
    assert message.startswith("transports.toml, "), message
    assert says in message


@pytest.mark.parametrize("key", ["id", "name", "family", "sources"])
def test_a_missing_key_is_named(key: str) -> None:
    assert f"key {key}: missing" in refusal(lambda row: row.pop(key))


def test_messages_may_not_be_untold() -> None:
    def change(row: dict[str, Any]) -> None:
        row["signs"] = []
        row["untold"] = list(Kind)

    assert "key untold: messages must be told" in refusal(change)


def test_an_id_stands_once() -> None:
    def change(row: dict[str, Any]) -> None:
        row["id"], row["name"] = "openmpi-ob1-tcp", "another"

    assert "two rows are called openmpi-ob1-tcp" in refusal(change)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"pattern": "x"}, "{lane} must stand in it once"),
        ({"pattern": "{lane}{lane}"}, "not a regular expression|{lane} must stand in it once"),
        ({"pattern": "({lane}"}, "not a regular expression"),
        ({"lane": "("}, "key lane: not a regular expression"),
        ({"peers": ["far"]}, "key peers"),
        ({"env": {"A": 1}}, "key env.A"),
        ({"more": 1}, "key more: nobody knows"),
    ],
)
def test_a_wrong_tell_is_named(change: dict[str, Any], says: str) -> None:
    _, families = files()
    families["openmpi"]["tells"]["pml"].update(change)
    with pytest.raises(UsageError, match=r"families\.toml, openmpi, tells, pml") as caught:
        read_tells(families)
    assert re.search(says.replace("{", r"\{"), str(caught.value))


def test_tells_of_no_family_are_refused() -> None:
    with pytest.raises(UsageError, match="lam is no family"):
        read_tells({"lam": {"tells": {}}})


def test_two_tells_of_a_row_may_not_disagree() -> None:
    transports, families = files()
    families["openmpi"]["tells"]["coll"]["env"] = {"OMPI_MCA_pml_base_verbose": "20"}
    with pytest.raises(UsageError, match="another tell of this row sets OMPI_MCA_pml_base_verbose"):
        read_rows(transports, read_tells(families))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"pattern": "("}, "row LNX-01, key pattern: not a regular expression"),
        ({"fix": ""}, "row LNX-01, key fix: empty"),
        ({"sources": "x"}, "row LNX-01, key sources: 'x' is not list"),
        ({"more": "x"}, "row LNX-01, key more: nobody knows"),
        ({"id": "LNX-02"}, "two rows are called LNX-02"),
    ],
)
def test_a_wrong_issue_is_named(change: dict[str, Any], says: str) -> None:
    data = copy.deepcopy(dict(document("issues.toml")))
    data["issue"][0].update(change)
    with pytest.raises(UsageError) as caught:
        read_issues(data)
    assert says in str(caught.value)


def test_a_row_may_name_known_issues_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "issues", tuple)
    loader.rows.cache_clear()
    try:
        with pytest.raises(UsageError, match=r"key issues: .* is unknown"):
            loader.rows()
    finally:
        monkeypatch.undo()
        loader.rows.cache_clear()
    assert loader.rows()


# ------------------------------------------------------------------ one row for a wish

NUMBERS = st.lists(st.integers(0, 9), min_size=1, max_size=3).map(tuple)
VERSIONS = NUMBERS.map(lambda v: version(".".join(map(str, v))))
BOUNDS = st.one_of(st.none(), VERSIONS.filter(bool))


@st.composite
def ranges(draw: st.DrawFn) -> Range:
    low, high = draw(BOUNDS), draw(BOUNDS)
    if low is not None and high is not None:
        low, high = sorted([low, high])
        if low == high:
            high = (*high, 1)
    return Range(low, high)


WHENS = st.builds(
    When,
    mpi=st.one_of(st.none(), ranges()),
    libfabric=st.one_of(st.none(), ranges()),
    flags=st.dictionaries(st.sampled_from(FLAGS), st.booleans()).map(lambda d: tuple(d.items())),
)


def meant(
    when: When, mpi: tuple[int, ...], libfabric: tuple[int, ...], flags: dict[str, bool]
) -> bool:
    return (
        (when.mpi is None or mpi in when.mpi)
        and (when.libfabric is None or libfabric in when.libfabric)
        and all(flags[name] is wanted for name, wanted in when.flags)
    )


@given(WHENS, WHENS, VERSIONS, VERSIONS, st.tuples(*[st.booleans()] * len(FLAGS)))
def test_rows_that_do_not_overlap_are_never_both_meant(
    one: When, two: When, mpi: tuple[int, ...], libfabric: tuple[int, ...], on: tuple[bool, ...]
) -> None:
    flags = dict(zip(FLAGS, on, strict=True))
    if meant(one, mpi, libfabric, flags) and meant(two, mpi, libfabric, flags):
        assert one.overlaps(two)
        assert two.overlaps(one)


@given(ranges(), ranges())
def test_ranges_that_meet_have_a_version_in_both(one: Range, two: Range) -> None:
    lows = [r.low for r in (one, two) if r.low is not None]
    witness = max(lows, default=())
    assert one.meets(two) is (witness in one and witness in two)


FIRST = document("transports.toml")["transport"][0]
GROUPS = document("transports.toml")["groups"]
TELLS = read_tells(document("families.toml"))


@given(WHENS)
def test_any_two_rows_for_one_wish_are_an_error(when: When) -> None:
    """Whatever a row asks for, a second one of its name that asks for the same is refused."""
    table: dict[str, Any] = {}
    for key, span in (("mpi", when.mpi), ("libfabric", when.libfabric)):
        if span is not None and (span.low or span.high):
            table[key] = str(span)
    table |= dict(when.flags)
    pair = [{**FIRST, "id": name, "when": table} for name in ("one", "two")]
    both = {"groups": GROUPS, "transport": pair}
    with pytest.raises(UsageError, match="rows one and two can both be meant by openmpi ob1-sm"):
        read_rows(both, TELLS)


@pytest.mark.parametrize("facts", [HERE, SLINGSHOT, MELLANOX, LOOPBACK], ids=lambda f: f.interface)
@pytest.mark.parametrize("libfabric", [None, "1.22", "2.0.0", "2.1.0", "2.2.0", "2.5.1", "2.6.0"])
@pytest.mark.parametrize("number", ["4.0.7", "4.1.8", "5.0.11", "6.0.0rc2"])
def test_one_row_or_none_with_a_reason(facts: Facts, libfabric: str | None, number: str) -> None:
    mpi = (
        openmpi(libfabric, number)
        if number[0] in "45"
        else install("openmpi@5.0.11", version=number, libfabric=openmpi(libfabric).libfabric)
    )
    offered = offers(mpi, facts)
    assert [offer.name for offer in offered] == list(names(Family.OPENMPI))
    for offer in offered:
        assert offer.usable or offer.reason
        if offer.usable:
            assert resolve(offer.name, mpi, facts).row == offer.row


@pytest.mark.parametrize(
    ("libfabric", "facts", "include", "links", "table"),
    [
        ("2.1.0", HERE, "shm+tcp;ofi_rxm:lnx", "shm+tcp", None),
        ("2.1.0", SLINGSHOT, "shm+cxi:lnx", "shm+cxi", None),
        ("2.2.0", HERE, "lnx", "shm+tcp:eth0", "table"),
        ("2.5.1", HERE, "lnx", "shm+tcp:eth0", "table"),
        ("2.5.1", LOOPBACK, "lnx", "shm+tcp:lo", "table"),
        ("2.5.1", SLINGSHOT, "lnx", "shm+cxi:cxi0|shm+cxi:cxi1", "table"),
        ("2.6.0", HERE, "lnx", "shm+tcp:eth0", None),
        ("2.6.0", SLINGSHOT, "lnx", "shm+cxi:cxi0|shm+cxi:cxi1", None),
    ],
)
def test_lnx_by_version_of_libfabric(
    libfabric: str, facts: Facts, include: str, links: str, table: str | None
) -> None:
    found = resolve("ofi-lnx", openmpi(libfabric), facts)
    env = {row.name: row.value for row in found.env}
    assert env["OMPI_MCA_pml"] == "cm"
    assert env["OMPI_MCA_opal_common_ofi_provider_include"] == include
    assert env["FI_LNX_PROV_LINKS"] == links
    assert env.get("OMPI_MCA_mtl_ofi_av") == table
    scopes = {row.name: row.scope for row in found.env}
    on_head = "PRTE_MCA_ras_base_launch_orted_on_hn"
    assert scopes.get(on_head) is (Scope.LAUNCHER if facts.cxi else None)


def test_ucx_is_opened_to_all_devices_off_mellanox_only() -> None:
    gate = "OMPI_MCA_opal_common_ucx_devices"
    here = resolve("ucx", openmpi(), HERE)
    there = resolve("ucx", openmpi(), MELLANOX)
    assert {row.name: row.value for row in here.env}[gate] == "any"
    assert gate not in {row.name for row in there.env}
    assert here.row != there.row


def test_shared_memory_of_open_mpi_4_is_vader() -> None:
    old = resolve("ob1-sm", install("openmpi@4.1.8"), HERE)
    new = resolve("ob1-sm", install("openmpi@5.0.11"), HERE)
    assert {r.value for r in old.env} == {"ob1", "self,vader"}
    assert {r.value for r in new.env} == {"ob1", "self,sm"}


def test_mpich_forces_the_netmod_it_is_named_for() -> None:
    mpich = install("mpich@5.0.2")
    for name in ("ofi-tcp", "ucx"):
        env = {row.name: row.value for row in resolve(name, mpich, HERE).env}
        assert env["MPIR_CVAR_NOLOCAL"] == "1"
    local = {row.name: row.value for row in resolve("shm-ofi-tcp", mpich, HERE).env}
    assert local["MPIR_CVAR_NOLOCAL"] == "0"


def test_a_template_is_the_same_on_every_machine() -> None:
    """The key of a configuration holds no interface's name."""
    one, two = (resolve("ofi-lnx", openmpi(), f) for f in (HERE, LOOPBACK))
    assert one.template == two.template
    assert one.env != two.env


# ------------------------------------------------------------------ why not


def reason(name: str, mpi: MpiInstall, facts: Facts = HERE) -> str:
    offer = next(o for o in offers(mpi, facts) if o.name == name)
    assert not offer.usable
    return offer.reason


def test_why_a_transport_is_not_offered() -> None:
    mpi = openmpi()
    assert "no Slingshot NIC" in reason("ofi-cxi", mpi)
    assert "version of its libfabric is not known" in reason("ofi-lnx", openmpi(None))
    assert "it is for libfabric" in reason("ofi-lnx", openmpi("1.22.0"))
    assert "it is for openmpi >=5" in reason("ofi-lnx", install("openmpi@4.1.8"))
    bare = install("openmpi@5.0.11", components=(("pml", ("ob1",)), ("btl", ("self", "tcp"))))
    assert reason("ob1-sm", bare) == "it has no btl component sm"
    plain = install("openmpi@5.0.11", libfabric=NetLibrary("libfabric", "2.5.1", None, ("tcp",)))
    assert reason("ofi-lnx", plain) == "its libfabric has no provider lnx"
    assert "without ucx" in reason("ucx", install("mpich@5.0.2", device="ch4:ofi"))
    assert "aborts or dies" in reason("ofi-shm", mpi)


def test_what_is_not_known_is_not_offered_but_may_be_asked_for() -> None:
    mute = NetLibrary("libfabric", "2.5.1", None, (), "timed out")
    cases = [
        ("ofi-tcp", install("openmpi@5.0.11", libfabric=mute), "not known: timed out"),
        ("ob1-sm", install("openmpi@5.0.11", components=()), "pml components are not known"),
        ("ucx", install("mpich@5.0.2", device=""), "ch4 device is not known"),
        ("shm-ofi-tcp", install("intel@2021.18.1", libfabric=None), "providers"),
    ]
    for name, mpi, says in cases:
        assert says in reason(name, mpi)
        assert resolve(name, mpi, HERE).name == name


def test_a_broken_transport_is_run_for_who_asks() -> None:
    assert resolve("ofi-shm", openmpi(), HERE).row == "openmpi-ofi-shm"


def test_a_name_that_a_family_does_not_have_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="openmpi has no transport 'lnx'") as caught:
        resolve("lnx", openmpi(), HERE)
    assert "ofi-lnx" in caught.value.mend
    with pytest.raises(MissingError, match="no Slingshot NIC"):
        resolve("ofi-cxi", openmpi(), HERE)
    with pytest.raises(MissingError, match="ofi-lnx is not known"):
        resolve("ofi-lnx", openmpi("1.22.0"), HERE)


# ------------------------------------------------------------------ facts and issues


def machine(*devices: NetDevice) -> Machine:
    cpu = Cpu("", "x86_64", 2, 2, 1, ((0, 1),), ((0, 1),))
    return Machine("h", "", "", cpu, 1, devices, (), (), (), None, ())


def test_facts_of_a_machine() -> None:
    lo = NetDevice("lo", "loopback", "up")
    assert Facts.of(machine(lo)) == Facts("lo", (), ())
    eth = [NetDevice("eth0", "ethernet", "down"), NetDevice("eth1", "ethernet", "up")]
    assert Facts.of(machine(lo, *eth)).interface == "eth1"
    cxi = [NetDevice("cxi0", "cxi", "up"), NetDevice("cxi1", "cxi", "down")]
    mlx = NetDevice("mlx5_0", "infiniband", "active")
    found = Facts.of(machine(lo, *cxi, mlx), nodes=2)
    assert (found.cxi, found.infiniband, found.nodes) == (("cxi0",), ("mlx5_0",), 2)
    assert found.flags == {"cxi": True, "mellanox": True, "loopback": True}


def test_issues_are_matched_by_what_is_printed() -> None:
    lnx = resolve("ofi-lnx", openmpi(), HERE)
    said = "Open MPI failed a call (fi_endpoint).\n  Error: No data available (61)\n"
    assert [issue.id for issue in matching_issues(said, lnx)] == ["LNX-02"]
    assert matching_issues("all is well", lnx) == ()
    assert matching_issues(said, resolve("ob1-sm", openmpi(), HERE)) == ()
    pmi = "No PMIx server was reachable, but a PMI1/2 was detected."
    assert [issue.id for issue in matching_issues(pmi, None)] == ["LCH-01"]


def test_the_transports_own_issues_come_first_and_in_its_order() -> None:
    lnx = resolve("ofi-lnx", openmpi(), HERE)
    said = (
        'provider_include = "shm+cxi:lnx"\nNo PMIx server was reachable, but a PMI1/2 was detected.'
        "\nselect: init returned failure for component cm\nselected ob1 best priority 20\n"
    )
    assert [issue.id for issue in matching_issues(said, lnx)] == ["LNX-01", "SEL-03", "LCH-01"]


@given(st.text())
def test_versions_never_fail(text: str) -> None:
    found = version(text)
    assert all(isinstance(n, int) for n in found)
    assert not found or found[-1] != 0


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("5.0.11", (5, 0, 11)), ("2.4.0-impi", (2, 4)), ("v6.0.0rc2", (6,)), ("", ()), ("x", ())],
)
def test_versions(text: str, numbers: tuple[int, ...]) -> None:
    assert version(text) == numbers


def test_off_node_is_served_by_what_can() -> None:
    for row in rows():
        local = row.name in ("ob1-sm", "shm", "ofi-shm") or row.id.endswith("loopback")
        assert (Peer.OFF_NODE in row.peers) is not local, row.id


def test_the_files_have_no_place_of_one_machine() -> None:
    folder = Path(loader.__file__).parent
    for file in folder.glob("*.toml"):
        text = file.read_text()
        tomllib.loads(text)
        assert not re.search(r"/(tmp|home|root|work)/", text), file


def test_the_page_of_transports_is_what_the_data_says() -> None:
    root = Path(__file__).parents[2]
    tool = [sys.executable, str(root / "tools/document_transports.py"), "--check"]
    assert subprocess.run(tool, check=False).returncode == 0, "run tools/document_transports.py"
