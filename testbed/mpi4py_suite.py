"""Run mpi4py's own tests on every rank; rank 0 prints what became of them, as a line of JSON.

Called as: mpi4py_suite.py FOLDER PATTERN...
"""

import json
import sys
import unittest

from mpi4py import MPI  # type: ignore[import-not-found]


def main() -> None:
    folder, *patterns = sys.argv[1:]
    sys.path.insert(0, folder)
    loader = unittest.TestLoader()
    tests = unittest.TestSuite(loader.discover(folder, pattern) for pattern in patterns)
    result = unittest.TestResult()
    tests.run(result)
    mine = {
        "library": MPI.Get_library_version().split("\0")[0].strip(),
        "size": MPI.COMM_WORLD.size,
        "ran": result.testsRun,
        "failed": {test.id(): text for test, text in result.errors + result.failures},
        "skipped": sorted(test.id() for test, _ in result.skipped),
    }
    ranks = MPI.COMM_WORLD.gather(mine)
    if ranks:
        sys.stdout.write(f"{json.dumps(ranks)}\n")


if __name__ == "__main__":
    main()
