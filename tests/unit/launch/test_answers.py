"""Which nodes still answer, and what is said of those that do not."""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Callable, Mapping

import pytest

from mpigraft.core.model import Level
from mpigraft.launch.hosts import reachability
from tests.builders.messages import matches

Answer = bool | None


def test_a_port_that_listens_and_one_that_refuses_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert reachability.is_reachable("127.0.0.1", port) is True
    assert reachability.is_reachable("127.0.0.1", port) is True
    assert reachability.is_reachable("::1", port) in (
        True,
        None,
    )  # with IPv6, and without


@pytest.mark.parametrize(
    ("number", "answer"),
    [
        (errno.ECONNREFUSED, True),
        (errno.ECONNRESET, True),
        (errno.EHOSTUNREACH, False),
        (errno.ETIMEDOUT, False),
        (errno.ENETUNREACH, None),  # this host has no way there, whatever the other does
        (errno.EPERM, None),
    ],
)
def test_how_a_connection_fails_says_whether_anybody_is_there(
    monkeypatch: pytest.MonkeyPatch, number: int, answer: Answer
) -> None:
    def fails(*_: object) -> None:
        raise OSError(number, "said by the kernel")

    monkeypatch.setattr(socket.socket, "connect", fails)
    assert reachability.is_reachable("127.0.0.1") is answer


def test_silence_is_no_answer_after_a_while() -> None:
    """Nobody accepts, and the queue of connections is full."""
    with socket.socket() as server, socket.socket() as one, socket.socket() as two:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for client in (one, two):
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        assert reachability.is_reachable("127.0.0.1", server.getsockname()[1], wait_s=0.1) is False


@pytest.mark.parametrize("error", [socket.gaierror(-2, "not known"), UnicodeError("too long")])
def test_a_name_without_an_address_tells_nothing(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    assert reachability.is_reachable("n1") is None


@pytest.mark.parametrize(
    ("told", "answer"),
    [((False, True), True), ((None, True), True), ((None, False), False), ((None, None), None)],
)
def test_one_address_of_several_that_answers_will_do(
    monkeypatch: pytest.MonkeyPatch, told: tuple[Answer, ...], answer: Answer
) -> None:
    places = [(number, 1, 6, "", ("address", 22)) for number in range(len(told))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: places)
    monkeypatch.setattr(reachability, "_connects", lambda family, *_: told[family])
    assert reachability.is_reachable("two.addresses") is answer


# ------------------------------------------------------------------ what is said


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Callable[[Mapping[str, Answer]], None]:
    """Hosts answer as they are told to."""

    def are(told: Mapping[str, Answer]) -> None:
        monkeypatch.setattr(reachability, "is_reachable", lambda host, _: told[host])

    return are


HOSTS = ("n1", "n2", "n3")


def test_a_node_that_answered_and_does_not_any_more_is_lost(
    answering: Callable[[Mapping[str, Answer]], None],
) -> None:
    answering({"n1": True, "n2": True, "n3": True})
    nodes = reachability.Nodes(HOSTS)
    nodes.query(wait=True)
    assert nodes.unreachable(HOSTS) == ()
    answering({"n1": True, "n2": False, "n3": True})
    (lost,) = nodes.unreachable(HOSTS)
    assert (lost.level, lost.code) == (Level.ERROR, "node-lost")
    assert matches(lost, "node-lost", nodes="n2")
    assert nodes.unreachable(("n1", "n3")) == ()  # of nodes that were not used nothing is said


@pytest.mark.parametrize(("now", "code"), [(False, "node-silent"), (None, ""), (True, "")])
def test_a_node_that_never_answered_may_be_behind_a_wall(
    answering: Callable[[Mapping[str, Answer]], None], now: Answer, code: str
) -> None:
    answering({"n1": True, "n2": False, "n3": None})
    nodes = reachability.Nodes(HOSTS)
    nodes.query(wait=True)
    answering({"n1": True, "n2": now, "n3": False})  # of n3 nothing was known
    assert [(f.code, f.level) for f in nodes.unreachable(HOSTS)] == [(code, Level.WARNING)] * bool(
        code
    )


def test_of_many_some_are_named(answering: Callable[[Mapping[str, Answer]], None]) -> None:
    hosts = [f"n{number}" for number in range(100)]
    answering(dict.fromkeys(hosts, True))
    nodes = reachability.Nodes(hosts)
    nodes.query(wait=True)
    nodes.query(wait=True)  # no more than once
    assert nodes.unreachable(hosts) == ()
    answering(dict.fromkeys(hosts, False))
    (lost,) = nodes.unreachable(hosts)
    assert matches(lost, "node-lost", nodes=("n7", 92))
    assert "n8" not in lost.message


def test_names_that_are_never_found_hold_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = threading.Event()
    monkeypatch.setattr(reachability, "PATIENCE_S", 0.05)
    monkeypatch.setattr(reachability, "is_reachable", lambda *_: stuck.wait(30))
    nodes = reachability.Nodes(HOSTS)
    nodes.query(wait=True)
    assert nodes.unreachable(HOSTS) == ()
    stuck.set()


def test_no_node_is_queried_without_a_launch_on_several(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threading, "Thread", None)
    assert reachability.Nodes(HOSTS).unreachable(HOSTS) == ()
    nodes = reachability.Nodes(())
    nodes.query(wait=True)
    assert nodes.unreachable(()) == ()


def test_where_no_thread_can_be_had_no_node_is_queried_and_nothing_breaks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none_left)
    nodes = reachability.Nodes(HOSTS)
    nodes.query(wait=True)
    assert nodes.unreachable(HOSTS) == ()


def test_addresses_of_one_host_share_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    def silent(_family: int, _address: object, wait_s: float) -> bool:
        waits.append(wait_s)
        return False

    places = [(number, 1, 6, "", ("address", 22)) for number in range(3)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: places)
    monkeypatch.setattr(reachability, "_connects", silent)
    assert reachability.is_reachable("three.addresses", wait_s=3.0) is False
    assert waits == [1.0, 1.0, 1.0]
    assert 2 * reachability.WAIT_S < reachability.PATIENCE_S  # two turns of AT_ONCE hosts
