"""The usual loader of each architecture, as PT_INTERP names it."""

from __future__ import annotations

INTERPRETERS = {
    "x86_64": "/lib64/ld-linux-x86-64.so.2",
    "i386": "/lib/ld-linux.so.2",
    "aarch64": "/lib/ld-linux-aarch64.so.1",
    "arm": "/lib/ld-linux-armhf.so.3",
    "ppc64le": "/lib64/ld64.so.2",
    "s390x": "/lib/ld64.so.1",
    "riscv64": "/lib/ld-linux-riscv64-lp64d.so.1",
    "loongarch64": "/lib64/ld-linux-loongarch-lp64d.so.1",
}
