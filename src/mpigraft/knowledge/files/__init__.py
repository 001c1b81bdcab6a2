"""Files that MPIs open while they run: plugins, and configuration files.

Takes opened.toml and config_files.toml; makes rows with templates. Reads package data alone.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.knowledge.files.config import TEMPLATE_FIELD as TEMPLATE_FIELD
    from mpigraft.knowledge.files.config import ConfigRow as ConfigRow
    from mpigraft.knowledge.files.config import config_rows as config_rows
    from mpigraft.knowledge.files.opened import Files as Files
    from mpigraft.knowledge.files.opened import Opened as Opened
    from mpigraft.knowledge.files.opened import Started as Started
    from mpigraft.knowledge.files.opened import expand_folder as expand_folder
    from mpigraft.knowledge.files.opened import opened_by as opened_by
    from mpigraft.knowledge.files.opened import started_by as started_by
else:
    __getattr__ = exports(__name__)
