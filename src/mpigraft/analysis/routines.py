"""What profiles show that known issues explain: routines that take a share of the time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mpigraft.core.numbers import counted, percent, ratio
from mpigraft.knowledge import IssueMatch, RoutineShare, known_issues
from mpigraft.trace import Profile

Named = tuple[str, Profile]  # a profile with its file


def issues_of_profiles(profiles: Sequence[Named], baseline: str = "") -> tuple[IssueMatch, ...]:
    """Find the issues that profiles show: by the share of a routine, its growth with the ranks, or
    a routine that the baseline's profile lacks."""
    return tuple(
        IssueMatch(issue, "profile", message, profile[0], level)
        for issue in known_issues()
        if issue.detect.profile
        for profile in profiles
        for message, level in _hits(issue.detect.profile, profile, profiles, baseline)
    )


def _hits(
    rule: RoutineShare, own: Named, profiles: Sequence[Named], baseline: str
) -> Iterator[tuple[str, float]]:
    """Yield what was seen, and by which factor it is more than in the other profile."""
    for name, share in _shares(own[1], rule).items():
        if share < rule.share:
            continue
        text = f"MPI_{name} takes {percent(share)} of the time of {counted(own[1].ranks, 'rank')}"
        if not rule.grows and not rule.one_side:
            yield text, share / rule.share
        elif rule.one_side:
            other = dict(profiles).get(baseline)
            if other and own[0] != baseline and name not in {r.name for r in other.routines}:
                yield f"{text}, and {baseline} does not call it", 1.0
        else:
            fewer = [p for _, p in profiles if 0 < p.ranks < own[1].ranks and p.program]
            before = max((_shares(p, rule).get(name, 0.0) for p in fewer), default=0.0)
            if before and share / before >= rule.grows:
                text += f", {ratio(share / before)} times its share of fewer ranks"
                yield text, share / before


def _shares(profile: Profile, rule: RoutineShare) -> dict[str, float]:
    """Return the shares of the routines that a rule names; all, if it names none."""
    shares = {
        routine.name: profile.routine_share(routine.name, routine.time_s) or 0.0
        for routine in profile.routines
    }
    return {n: s for n, s in shares.items() if not rule.routines or n in rule.routines}
