"""Write native/common/rank_variables.h: the variables of knowledge/ranks.toml for the C programs.

tools/write_ranks.py
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from mpigraft.knowledge.fit.ranks import rank_header  # noqa: E402
from mpigraft.native.programs import SOURCES  # noqa: E402

if __name__ == "__main__":
    (SOURCES / "common/rank_variables.h").write_text(rank_header(), encoding="ascii")
