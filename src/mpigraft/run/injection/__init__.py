"""The proof of an injection: one program of the stack on two ranks.

Takes an `Override` and a program; makes an `InjectionProof`. Starts launches.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.run.injection.imports import PythonImport as PythonImport
    from mpigraft.run.injection.imports import plan_imports as plan_imports
    from mpigraft.run.injection.proof import InjectionProof as InjectionProof
    from mpigraft.run.injection.proof import choose_program as choose_program
    from mpigraft.run.injection.proof import prove_injection as prove_injection
    from mpigraft.run.injection.proof import source_places as source_places
else:
    __getattr__ = exports(__name__)
