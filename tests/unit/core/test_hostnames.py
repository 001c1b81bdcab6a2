"""Which names mean one host."""

from __future__ import annotations

import os
import socket

import pytest

from mpigraft.core.hostnames import is_this_host, match_hosts, same_host, short_name


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("n1", "N1", True), ("n1", "n1.example", True), ("n1.example.", "N1.Example", True),
        ("w.1.example", "w.2.example", False), ("w", "w.2.example", True), ("n1", "n11", False),
        ("10.0.0.1", "10.0.0.2", False), ("10.0.0.1", "10.0.0.1", True), ("10", "10.0.0.1", False),
        ("fe80::1", "FE80::1", True), ("fe80::1", "fe80::2", False),
    ],
)  # fmt: skip
def test_names_mean_one_host(one: str, other: str, same: bool) -> None:
    assert same_host(one, other) is same
    assert same_host(other, one) is same


def test_an_equal_name_comes_before_a_short_one() -> None:
    hosts = ("w", "w.2.example", "n1")
    assert match_hosts(("W.2.example", "w", "N1.example", "w.3.example", "x"), hosts) == {
        "W.2.example": "w.2.example", "w": "w", "N1.example": "n1", "w.3.example": "w",
    }  # fmt: skip


def test_a_short_name_of_two_hosts_means_none() -> None:
    assert match_hosts(("w",), ("w.1.example", "w.2.example")) == {}


def test_a_short_name_is_the_first_label() -> None:
    assert short_name("W.1.example") == "w"
    assert short_name("10.0.0.1") == "10.0.0.1"


@pytest.mark.parametrize(
    ("addresses", "own"),
    [(["127.0.1.1"], True), (["127.0.1.1", "192.0.2.77"], False), (["192.0.2.77"], False),
     ([], False)],
)  # fmt: skip
def test_a_name_means_this_host_if_all_its_addresses_do(
    monkeypatch: pytest.MonkeyPatch, addresses: list[str], own: bool
) -> None:
    """Debian's installer gives the full name 127.0.1.1; a name of several login nodes is none."""
    numeric = socket.getaddrinfo

    def resolver(name: str, port: int, *, type: int, flags: int) -> list[object]:
        if name == "login.example" and (flags or not addresses):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        names = addresses if name == "login.example" else [name]
        return [row for one in names for row in numeric(one, port, type=type, flags=flags)]

    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    assert is_this_host("login.example", resolve=True) is own
    assert not is_this_host("login.example")
    assert is_this_host(os.uname().nodename.upper())
