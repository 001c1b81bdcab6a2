"""A profile as one HTML file that opens offline."""

from __future__ import annotations

from mpigraft.trace.profile import Profile


def render_profile_page(profile: Profile) -> str:
    return profile.program
