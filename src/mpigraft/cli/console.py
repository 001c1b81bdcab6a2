"""A console of Rich that passes no control character of a text on."""

from __future__ import annotations

from collections.abc import Iterable

import rich.console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from mpigraft.core.text import terminal_safe


class Console(rich.console.Console):
    """Escapes what a terminal would obey in the texts that it renders."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render as Rich does; only Rich's own controls stay."""
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else terminal_safe(segment.text)
            yield segment if text == segment.text else Segment(text, segment.style)
