"""The verdicts of a comparison by their short names."""

from mpigraft.core.model import Verdict

FASTER, SLOWER = Verdict.FASTER, Verdict.SLOWER
EQUIVALENT, INCONCLUSIVE = Verdict.EQUIVALENT, Verdict.INCONCLUSIVE
