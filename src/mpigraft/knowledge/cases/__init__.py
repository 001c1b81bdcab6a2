"""Applications that studies of MPI measure: campaign files to start from.

Takes the files beside it, each a campaign file with a table [case]; makes rows and text. Reads
package data alone.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.knowledge.cases.rows import case_names as case_names
    from mpigraft.knowledge.cases.rows import case_text as case_text
    from mpigraft.knowledge.cases.rows import load_case as load_case
else:
    __getattr__ = exports(__name__)
