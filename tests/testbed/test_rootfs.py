"""What a bare root takes over from this machine: its archives, proxies and certificates."""

from __future__ import annotations

from testbed import rootfs

TARGETS = """\
http://mirror.example/debian/ bookworm main
http://mirror.example/debian/ bookworm contrib
http://mirror.example/debian/ bookworm-updates main
http://mirror.example/security/ bookworm-security main
http://mirror.example/debian/ bookworm-backports main
http://vendor.example/apt/ nodistro main
"""


def test_archives_are_this_machines_with_the_suite_changed() -> None:
    lines = [
        line.rsplit(maxsplit=3)[1:] for line in rootfs.apt_lines(TARGETS, "bookworm", "trixie")
    ]
    assert lines == [
        ["http://mirror.example/debian/", "trixie", "main"],
        ["http://mirror.example/debian/", "trixie-updates", "main"],
        ["http://mirror.example/security/", "trixie-security", "main"],
    ]


def test_no_archive_of_another_suite_is_taken() -> None:
    assert rootfs.apt_lines(TARGETS, "trixie", "bookworm") == []


def test_settings_of_package_clients_go_in_and_nothing_else() -> None:
    passed = {
        "PIP_INDEX_URL": "https://mirror.example/simple",
        "PIP_CERT": "/etc/some.pem",
        "SSL_CERT_FILE": "/etc/some.pem",
        "https_proxy": "http://proxy.example:3128",
        "NO_PROXY": "localhost",
    }
    kept_out = {
        "PIP_FIND_LINKS": "/opt/wheels",
        "PIP_CACHE_DIR": "/tmp/pip",
        "A_TOKEN": "secret",
        "LD_LIBRARY_PATH": "/opt/lib",
        "HOME": "/home/someone",
    }
    assert rootfs.settings({**passed, **kept_out}) == passed
