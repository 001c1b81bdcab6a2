"""Facts about families, devices, GPUs, library names and spawning, as TOML with typed readers.

Takes the tables beside it; makes frozen rows, each with its source. Reads package data alone.
Rooms inside: `transports`, `engines`, `fit` (who starts whom), `files` (what an MPI opens and
reads), `cases`.
"""

from __future__ import annotations

from mpigraft.core.lazy_exports import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.knowledge.builds import Archive as Archive
    from mpigraft.knowledge.builds import Clash as Clash
    from mpigraft.knowledge.builds import Compiler as Compiler
    from mpigraft.knowledge.builds import Package as Package
    from mpigraft.knowledge.builds import Patch as Patch
    from mpigraft.knowledge.builds import PlanTable as PlanTable
    from mpigraft.knowledge.builds import Provided as Provided
    from mpigraft.knowledge.builds import Recipe as Recipe
    from mpigraft.knowledge.builds import Unneeded as Unneeded
    from mpigraft.knowledge.builds import VersionSet as VersionSet
    from mpigraft.knowledge.builds import packages as packages
    from mpigraft.knowledge.builds import plan_table as plan_table
    from mpigraft.knowledge.cases import ApplicationCase as ApplicationCase
    from mpigraft.knowledge.cases import case_names as case_names
    from mpigraft.knowledge.cases import case_text as case_text
    from mpigraft.knowledge.cases import load_case as load_case
    from mpigraft.knowledge.devices import device_binds as device_binds
    from mpigraft.knowledge.engines import breaking_variables as breaking_variables
    from mpigraft.knowledge.engines import default_binds as default_binds
    from mpigraft.knowledge.files.config import TEMPLATE_FIELD as TEMPLATE_FIELD
    from mpigraft.knowledge.files.config import ConfigRow as ConfigRow
    from mpigraft.knowledge.files.config import config_rows as config_rows
    from mpigraft.knowledge.files.opened import Opened as Opened
    from mpigraft.knowledge.files.opened import OpenedFiles as OpenedFiles
    from mpigraft.knowledge.files.opened import Started as Started
    from mpigraft.knowledge.files.opened import expand_folder as expand_folder
    from mpigraft.knowledge.files.opened import opened_by as opened_by
    from mpigraft.knowledge.files.opened import started_by as started_by
    from mpigraft.knowledge.fit.launcher_words import LauncherWords as LauncherWords
    from mpigraft.knowledge.fit.launcher_words import find_launcher as find_launcher
    from mpigraft.knowledge.fit.ranks import RankVariables as RankVariables
    from mpigraft.knowledge.fit.ranks import rank_variables as rank_variables
    from mpigraft.knowledge.fit.ranks import task_in as task_in
    from mpigraft.knowledge.fit.rows import PMI as PMI
    from mpigraft.knowledge.fit.rows import GpuLibraries as GpuLibraries
    from mpigraft.knowledge.fit.rows import compilers_of_libraries as compilers_of_libraries
    from mpigraft.knowledge.fit.rows import compilers_of_symbols as compilers_of_symbols
    from mpigraft.knowledge.fit.rows import fit_facts as fit_facts
    from mpigraft.knowledge.fit.rows import known_world as known_world
    from mpigraft.knowledge.fit.rows import modules_of_symbols as modules_of_symbols
    from mpigraft.knowledge.fit.rows import wireups as wireups
    from mpigraft.knowledge.gpus import gpu_variables as gpu_variables
    from mpigraft.knowledge.gpus import nearest_cpus as nearest_cpus
    from mpigraft.knowledge.issues import Certainty as Certainty
    from mpigraft.knowledge.issues import CurveFilter as CurveFilter
    from mpigraft.knowledge.issues import CurveRatio as CurveRatio
    from mpigraft.knowledge.issues import CurveShape as CurveShape
    from mpigraft.knowledge.issues import IssueMatch as IssueMatch
    from mpigraft.knowledge.issues import KnownIssue as KnownIssue
    from mpigraft.knowledge.issues import MachineFact as MachineFact
    from mpigraft.knowledge.issues import Reference as Reference
    from mpigraft.knowledge.issues import RoutineShare as RoutineShare
    from mpigraft.knowledge.issues import Shape as Shape
    from mpigraft.knowledge.issues import known_issues as known_issues
    from mpigraft.knowledge.limits import LimitNeed as LimitNeed
    from mpigraft.knowledge.limits import limit_needs as limit_needs
    from mpigraft.knowledge.reader import Document as Document
    from mpigraft.knowledge.reader import Given as Given
    from mpigraft.knowledge.reader import RowError as RowError
    from mpigraft.knowledge.reader import Rules as Rules
    from mpigraft.knowledge.reader import as_written as as_written
    from mpigraft.knowledge.reader import described as described
    from mpigraft.knowledge.reader import load_document as load_document
    from mpigraft.knowledge.reader import read_rows as read_rows
    from mpigraft.knowledge.reader import rules_of as rules_of
    from mpigraft.knowledge.reader import toml as toml
    from mpigraft.knowledge.reasons import waiting_reason as waiting_reason
    from mpigraft.knowledge.sonames import Binding as Binding
    from mpigraft.knowledge.sonames import binding_of as binding_of
    from mpigraft.knowledge.sonames import is_libmpi as is_libmpi
    from mpigraft.knowledge.sonames import role_of as role_of
    from mpigraft.knowledge.spawn import Spawn as Spawn
    from mpigraft.knowledge.spawn import spawn_facts as spawn_facts
    from mpigraft.knowledge.spawn import spawns_of_mpi as spawns_of_mpi
    from mpigraft.knowledge.stacks import LIBRARIES as LIBRARIES
    from mpigraft.knowledge.stacks import cpu_targets as cpu_targets
    from mpigraft.knowledge.stacks import is_network_library as is_network_library
    from mpigraft.knowledge.stacks import library_of_override as library_of_override
    from mpigraft.knowledge.stacks import network_library_of as network_library_of
    from mpigraft.knowledge.transports.causes import cause_table as cause_table
    from mpigraft.knowledge.transports.causes import ends_run as ends_run
    from mpigraft.knowledge.transports.fabrics import devices_by_fabric as devices_by_fabric
    from mpigraft.knowledge.transports.fabrics import fabrics_by_kind as fabrics_by_kind
    from mpigraft.knowledge.transports.match import Facts as Facts
    from mpigraft.knowledge.transports.match import resolve_transport as resolve_transport
    from mpigraft.knowledge.transports.match import transport_names as transport_names
    from mpigraft.knowledge.transports.match import transport_offers as transport_offers
    from mpigraft.knowledge.transports.match import transport_rows as transport_rows
    from mpigraft.knowledge.transports.match import why_excluded as why_excluded
    from mpigraft.knowledge.versions import version_numbers as version_numbers
else:
    __getattr__ = exports(__name__)
