"""The `__main__` of mpigraft.pyz. Older Pythons read it too, so it has their syntax."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036
    sys.stderr.write(
        "mpigraft needs Python 3.11 or newer, and this is %d.%d: load or install a newer one, "  # noqa: UP031
        "then type, for example, python3.11 %s\n" % (sys.version_info[:2] + (sys.argv[0],))  # noqa: RUF005
    )
    sys.exit(3)

import unpack  # type: ignore[import-not-found,unused-ignore]

unpack.start()
