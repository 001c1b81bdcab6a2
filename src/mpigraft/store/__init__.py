"""The folder of results: one SQLite file per writing process, merged on read.

Takes campaigns, launches, values and evidence; gives the same back. The only room that writes
results.
"""

from __future__ import annotations

from mpigraft.core.lazy_exports import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.store.agreement import agree_on_plan as agree_on_plan
    from mpigraft.store.agreement import agreed_plan as agreed_plan
    from mpigraft.store.evidence_columns import flatten_evidence as flatten_evidence
    from mpigraft.store.evidence_columns import revive_evidence as revive_evidence
    from mpigraft.store.file import refuse_unwritable as refuse_unwritable
    from mpigraft.store.reader import Store as Store
    from mpigraft.store.writer import Writer as Writer
else:
    __getattr__ = exports(__name__)
