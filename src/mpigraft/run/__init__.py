"""One job of a user: plan, proof, start.

Takes a `RunSpec`; makes a `Job` and its exit code. Starts the job in the foreground with this
process's own streams. `cached` starts a job again without planning it.
"""

from __future__ import annotations

from mpigraft.core.lazy_exports import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.run.cached.document import launch_findings as launch_findings
    from mpigraft.run.cached.document import may_be_kept as may_be_kept
    from mpigraft.run.cached.document import start_document as start_document
    from mpigraft.run.cached.document import watched_files as watched_files
    from mpigraft.run.cached.refusal import keep_refusal as keep_refusal
    from mpigraft.run.cached.refusal import kept_refusal as kept_refusal
    from mpigraft.run.cached.start import keep_start as keep_start
    from mpigraft.run.cached.start import start_job as start_job
    from mpigraft.run.cached.start import start_kept as start_kept
    from mpigraft.run.cached.start import start_key as start_key
    from mpigraft.run.injection.imports import PythonImport as PythonImport
    from mpigraft.run.injection.imports import plan_imports as plan_imports
    from mpigraft.run.injection.proof import InjectionProof as InjectionProof
    from mpigraft.run.injection.proof import choose_program as choose_program
    from mpigraft.run.injection.proof import prove_injection as prove_injection
    from mpigraft.run.injection.proof import source_places as source_places
    from mpigraft.run.plan import Job as Job
    from mpigraft.run.plan import decision_lines as decision_lines
    from mpigraft.run.plan import plan_job as plan_job
    from mpigraft.run.plan import unknown_parts as unknown_parts
    from mpigraft.run.proof import proof_step as proof_step
    from mpigraft.run.proof import prove_job as prove_job
    from mpigraft.run.proof import setting_findings as setting_findings
    from mpigraft.run.script import job_script as job_script
    from mpigraft.run.transport_proofs import ProofOutcome as ProofOutcome
    from mpigraft.run.transport_proofs import TransportProof as TransportProof
    from mpigraft.run.transport_proofs import prove_transports as prove_transports
else:
    __getattr__ = exports(__name__)
