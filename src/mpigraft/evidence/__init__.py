"""What a launch really used: it starts, listens and judges.

Takes a configuration on a layout; makes `Evidence` and findings. Starts launches through `launch`
and `core.process`, and keeps proofs in the cache. `traffic/` has the logic of a proof.
"""

from __future__ import annotations

from mpigraft.core.lazy_exports import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.evidence.files.config import OWN_SURROUNDINGS as OWN_SURROUNDINGS
    from mpigraft.evidence.files.config import Surroundings as Surroundings
    from mpigraft.evidence.files.config import mpi_config_files as mpi_config_files
    from mpigraft.evidence.files.used import Fingerprint as Fingerprint
    from mpigraft.evidence.files.used import changed_files as changed_files
    from mpigraft.evidence.files.used import fingerprint_files as fingerprint_files
    from mpigraft.evidence.files.used import image_lists as image_lists
    from mpigraft.evidence.files.used import opened_libraries as opened_libraries
    from mpigraft.evidence.files.used import plugin_folders as plugin_folders
    from mpigraft.evidence.files.used import used_files as used_files
    from mpigraft.evidence.issues import issues_in_output as issues_in_output
    from mpigraft.evidence.issues import issues_of_machine as issues_of_machine
    from mpigraft.evidence.issues import matching_issues as matching_issues
    from mpigraft.evidence.limits import Limit as Limit
    from mpigraft.evidence.limits import launch_limits as launch_limits
    from mpigraft.evidence.limits import short_limits as short_limits
    from mpigraft.evidence.runner import error_from_findings as error_from_findings
    from mpigraft.evidence.runner import evidence_of as evidence_of
    from mpigraft.evidence.runner import explain_start as explain_start
    from mpigraft.evidence.runner import make_starter as make_starter
    from mpigraft.evidence.runner import outlives_job as outlives_job
    from mpigraft.evidence.runner import preloadable_natives as preloadable_natives
    from mpigraft.evidence.runner import records_folder as records_folder
    from mpigraft.evidence.runner import refused_evidence as refused_evidence
    from mpigraft.evidence.variables.effects import effect_findings as effect_findings
    from mpigraft.evidence.variables.effects import refuse_unknown_names as refuse_unknown_names
    from mpigraft.evidence.variables.effects import setting_effects as setting_effects
    from mpigraft.evidence.variables.effects import with_setting_effects as with_setting_effects
    from mpigraft.evidence.variables.listing import Value as Value
    from mpigraft.evidence.variables.listing import Variable as Variable
    from mpigraft.evidence.variables.query import Answer as Answer
    from mpigraft.evidence.variables.query import VariableEntry as VariableEntry
    from mpigraft.evidence.variables.query import answer_variables as answer_variables
    from mpigraft.evidence.variables.query import variable_asker as variable_asker
    from mpigraft.evidence.variables.query import variable_rows as variable_rows
    from mpigraft.evidence.wireup import WORLD_CODES as WORLD_CODES
    from mpigraft.evidence.wireup import verify_wireup as verify_wireup
    from mpigraft.evidence.world.bindings import BINDING_CODES as BINDING_CODES
    from mpigraft.evidence.world.failures import explain_failure as explain_failure
    from mpigraft.evidence.world.failures import used_up_memory as used_up_memory
    from mpigraft.evidence.world.mapped import LIBMPI as LIBMPI
    from mpigraft.evidence.world.networks import NETWORK_LIBRARY as NETWORK_LIBRARY
    from mpigraft.evidence.world.networks import due_networks as due_networks
    from mpigraft.evidence.world.overrides import due_mark as due_mark
    from mpigraft.evidence.world.records import read_entered as read_entered
    from mpigraft.evidence.world.records import read_witness as read_witness
    from mpigraft.evidence.world.witness import check_launched as check_launched
    from mpigraft.evidence.world.witness import check_witness as check_witness
    from mpigraft.evidence.world.witness import due_library as due_library
else:
    __getattr__ = exports(__name__)
