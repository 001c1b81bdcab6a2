"""The host's MPI put under a guest: the plan of it.

Takes a guest, an MPI and a machine; makes a `GraftPlan`: files, binds, environment, devices, as
plain data. Reads files alone. Folders: `guest`, `abi`,
`injection`, `check`, `engines`, `folder`, `stack`.
"""

from __future__ import annotations

from mpigraft.core.lazy_exports import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.graft.abi.libraries import read_abi as read_abi
    from mpigraft.graft.abi.saved import abi_from_machine as abi_from_machine
    from mpigraft.graft.abi.saved import machine_content as machine_content
    from mpigraft.graft.abi.saved import read_machine as read_machine
    from mpigraft.graft.assemble import GraftOptions as GraftOptions
    from mpigraft.graft.assemble import plan_graft as plan_graft
    from mpigraft.graft.assemble import plan_own_mpi as plan_own_mpi
    from mpigraft.graft.assemble import reading_errors as reading_errors
    from mpigraft.graft.assemble_stack import ACCEPTED as ACCEPTED
    from mpigraft.graft.assemble_stack import due_leases as due_leases
    from mpigraft.graft.assemble_stack import plan_stack as plan_stack
    from mpigraft.graft.assemble_stack import stack_install as stack_install
    from mpigraft.graft.check.check_input import NOT_CHECKED as NOT_CHECKED
    from mpigraft.graft.check.check_input import CheckInput as CheckInput
    from mpigraft.graft.check.check_input import part as part
    from mpigraft.graft.check.fit import check_pair as check_pair
    from mpigraft.graft.check.fit import fitting_programs as fitting_programs
    from mpigraft.graft.check.host_program import HostProgram as HostProgram
    from mpigraft.graft.check.interface import ABI_NAMES as ABI_NAMES
    from mpigraft.graft.check.languages import FORTRAN_SYMBOL as FORTRAN_SYMBOL
    from mpigraft.graft.check.languages import MPI_F08_SYMBOL as MPI_F08_SYMBOL
    from mpigraft.graft.engines.cdi import cdi_document as cdi_document
    from mpigraft.graft.engines.options import options_by_engine as options_by_engine
    from mpigraft.graft.engines.registry import DEFAULT_ENGINES as DEFAULT_ENGINES
    from mpigraft.graft.engines.registry import ENGINES as ENGINES
    from mpigraft.graft.engines.registry import engine_named as engine_named
    from mpigraft.graft.engines.registry import engine_words as engine_words
    from mpigraft.graft.engines.registry import find_engine as find_engine
    from mpigraft.graft.engines.registry import same_paths_inside as same_paths_inside
    from mpigraft.graft.engines.registry import visible_folders as visible_folders
    from mpigraft.graft.engines.registry import wrap_program as wrap_program
    from mpigraft.graft.engines.wrapper import wrapper_script as wrapper_script
    from mpigraft.graft.folder.folders import PLAN_FILE as PLAN_FILE
    from mpigraft.graft.folder.folders import RANKS_FOLDER as RANKS_FOLDER
    from mpigraft.graft.folder.folders import GraftFolder as GraftFolder
    from mpigraft.graft.folder.folders import Pruned as Pruned
    from mpigraft.graft.folder.folders import disk_usage as disk_usage
    from mpigraft.graft.folder.folders import graft_environment as graft_environment
    from mpigraft.graft.folder.folders import graft_folder as graft_folder
    from mpigraft.graft.folder.folders import graft_folders as graft_folders
    from mpigraft.graft.folder.folders import materialize as materialize
    from mpigraft.graft.folder.folders import path_in_guest as path_in_guest
    from mpigraft.graft.folder.folders import paths_in_guest as paths_in_guest
    from mpigraft.graft.folder.folders import prune_grafts as prune_grafts
    from mpigraft.graft.folder.folders import remove_graft as remove_graft
    from mpigraft.graft.folder.library_copy import make_copy as make_copy
    from mpigraft.graft.folder.library_copy import patchelf as patchelf
    from mpigraft.graft.guest.command import GuestCommand as GuestCommand
    from mpigraft.graft.guest.commands import command_of as command_of
    from mpigraft.graft.guest.examination import PODMAN_PREFIX as PODMAN_PREFIX
    from mpigraft.graft.guest.examination import Guest as Guest
    from mpigraft.graft.guest.examination import default_mpi as default_mpi
    from mpigraft.graft.guest.examination import examine_command as examine_command
    from mpigraft.graft.guest.examination import examine_guest as examine_guest
    from mpigraft.graft.guest.examination import own_mpi_of as own_mpi_of
    from mpigraft.graft.guest.host_commands import job_words as job_words
    from mpigraft.graft.guest.own_mpi import GuestMpi as GuestMpi
    from mpigraft.graft.guest.own_mpi import loaded_objects as loaded_objects
    from mpigraft.graft.injection.contents import decide_contents as decide_contents
    from mpigraft.graft.injection.fixpoint import GraftRequest as GraftRequest
    from mpigraft.graft.injection.plan import GPU_SELECT as GPU_SELECT
    from mpigraft.graft.injection.plan import changed_paths as changed_paths
    from mpigraft.graft.injection.plan import path_stamps as path_stamps
    from mpigraft.graft.injection.simulation import PRIVATE as PRIVATE
    from mpigraft.graft.injection.simulation import Loaded as Loaded
    from mpigraft.graft.stack.external.in_place import check_module as check_module
    from mpigraft.graft.stack.external.in_place import check_splice as check_splice
    from mpigraft.graft.stack.external.in_place import search_folders as search_folders
    from mpigraft.graft.stack.external.rendering import ModuleFile as ModuleFile
    from mpigraft.graft.stack.external.rendering import module_of_launcher as module_of_launcher
    from mpigraft.graft.stack.external.rendering import module_of_mpi as module_of_mpi
    from mpigraft.graft.stack.external.rendering import render_module as render_module
    from mpigraft.graft.stack.external.rendering import render_spack as render_spack
    from mpigraft.graft.stack.generations.commands import render_commands as render_commands
    from mpigraft.graft.stack.generations.drift import find_drift as find_drift
    from mpigraft.graft.stack.generations.drift import mapped_generations as mapped_generations
    from mpigraft.graft.stack.generations.drift import mixed_generations as mixed_generations
    from mpigraft.graft.stack.generations.drift import newer_content as newer_content
    from mpigraft.graft.stack.generations.pruning import prune as prune
    from mpigraft.graft.stack.generations.reading import GenerationRecord as GenerationRecord
    from mpigraft.graft.stack.generations.reading import InstalledOverride as InstalledOverride
    from mpigraft.graft.stack.generations.reading import read_override as read_override
    from mpigraft.graft.stack.generations.switching import refuse_unfit as refuse_unfit
    from mpigraft.graft.stack.generations.switching import switch_on as switch_on
    from mpigraft.graft.stack.generations.switching import undo as undo
    from mpigraft.graft.stack.guest import StackGuest as StackGuest
    from mpigraft.graft.stack.guest import examine_stack as examine_stack
    from mpigraft.graft.stack.guest import stack_of_program as stack_of_program
    from mpigraft.graft.stack.injected import check_injected as check_injected
    from mpigraft.graft.stack.override.content import LIB as LIB
    from mpigraft.graft.stack.override.content import OverridePlan as OverridePlan
    from mpigraft.graft.stack.override.content import override_files as override_files
    from mpigraft.graft.stack.override.content import plan_override as plan_override
    from mpigraft.graft.stack.override.launcher import LAUNCHERS as LAUNCHERS
    from mpigraft.graft.stack.override.marks import generation_mark as generation_mark
    from mpigraft.graft.stack.override.marks import mapped_marks as mapped_marks
    from mpigraft.graft.stack.override.network import network_part as network_part
    from mpigraft.graft.stack.places import is_stack as is_stack
    from mpigraft.graft.stack.reading import read_stack as read_stack
    from mpigraft.graft.stack.stack_check import check_stack as check_stack
    from mpigraft.graft.stack.targets import cpu_target as cpu_target
    from mpigraft.graft.stack.values import Fate as Fate
    from mpigraft.graft.stack.values import ModuleCheck as ModuleCheck
    from mpigraft.graft.stack.values import Slot as Slot
    from mpigraft.graft.stack.values import Stack as Stack
    from mpigraft.graft.stack.values import StackCheck as StackCheck
    from mpigraft.graft.stack.values import StackLoader as StackLoader
else:
    __getattr__ = exports(__name__)
