"""Every value that two stages share.

All are frozen: a stage takes the values of the stages before it and makes one new value.
Words are those of the design; one word, one meaning. Sizes are bytes, times are named by
their unit, and anything that is a key is a hex SHA-256 or a UUID.
"""

from __future__ import annotations

from mpigraft.core.lazy_exports import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.core.model.comparison import EXACT_FROM as EXACT_FROM
    from mpigraft.core.model.comparison import AcrossRule as AcrossRule
    from mpigraft.core.model.comparison import Cause as Cause
    from mpigraft.core.model.comparison import Cell as Cell
    from mpigraft.core.model.comparison import CellGroup as CellGroup
    from mpigraft.core.model.comparison import Comparison as Comparison
    from mpigraft.core.model.comparison import Completion as Completion
    from mpigraft.core.model.comparison import CurveLevel as CurveLevel
    from mpigraft.core.model.comparison import JointBound as JointBound
    from mpigraft.core.model.comparison import LaunchCount as LaunchCount
    from mpigraft.core.model.comparison import Look as Look
    from mpigraft.core.model.comparison import Noise as Noise
    from mpigraft.core.model.comparison import NoiseKind as NoiseKind
    from mpigraft.core.model.comparison import NoVerdict as NoVerdict
    from mpigraft.core.model.comparison import Value as Value
    from mpigraft.core.model.comparison import Verdict as Verdict
    from mpigraft.core.model.comparison import common_sizes as common_sizes
    from mpigraft.core.model.comparison import shared_reason as shared_reason
    from mpigraft.core.model.configuration import Benchmark as Benchmark
    from mpigraft.core.model.configuration import Configuration as Configuration
    from mpigraft.core.model.configuration import Launch as Launch
    from mpigraft.core.model.configuration import RenderedCommand as RenderedCommand
    from mpigraft.core.model.configuration import Setting as Setting
    from mpigraft.core.model.configuration import SettingFile as SettingFile
    from mpigraft.core.model.configuration import Sign as Sign
    from mpigraft.core.model.configuration import Transport as Transport
    from mpigraft.core.model.grafts import AbiObject as AbiObject
    from mpigraft.core.model.grafts import Bind as Bind
    from mpigraft.core.model.grafts import BindKind as BindKind
    from mpigraft.core.model.grafts import CheckResult as CheckResult
    from mpigraft.core.model.grafts import Copy as Copy
    from mpigraft.core.model.grafts import DataFile as DataFile
    from mpigraft.core.model.grafts import EngineContext as EngineContext
    from mpigraft.core.model.grafts import Fit as Fit
    from mpigraft.core.model.grafts import GraftPlan as GraftPlan
    from mpigraft.core.model.grafts import GuestKind as GuestKind
    from mpigraft.core.model.grafts import GuestLabel as GuestLabel
    from mpigraft.core.model.grafts import MpiAbi as MpiAbi
    from mpigraft.core.model.grafts import Replace as Replace
    from mpigraft.core.model.grafts import Role as Role
    from mpigraft.core.model.grafts import Stamp as Stamp
    from mpigraft.core.model.jobs import JobRecord as JobRecord
    from mpigraft.core.model.jobs import JobRequest as JobRequest
    from mpigraft.core.model.jobs import JobState as JobState
    from mpigraft.core.model.jobs import JobStatus as JobStatus
    from mpigraft.core.model.jobs import Shard as Shard
    from mpigraft.core.model.jobs import SubmissionRecord as SubmissionRecord
    from mpigraft.core.model.layouts import BIND_TO as BIND_TO
    from mpigraft.core.model.layouts import LAYOUT_PATTERN as LAYOUT_PATTERN
    from mpigraft.core.model.layouts import MAP_BY as MAP_BY
    from mpigraft.core.model.layouts import MAX_COUNT as MAX_COUNT
    from mpigraft.core.model.layouts import count_cores as count_cores
    from mpigraft.core.model.layouts import layout_key as layout_key
    from mpigraft.core.model.layouts import parse_layout as parse_layout
    from mpigraft.core.model.layouts import refuse_count as refuse_count
    from mpigraft.core.model.machine import Core as Core
    from mpigraft.core.model.machine import Cpu as Cpu
    from mpigraft.core.model.machine import Gpu as Gpu
    from mpigraft.core.model.machine import LauncherInfo as LauncherInfo
    from mpigraft.core.model.machine import Machine as Machine
    from mpigraft.core.model.machine import MpiInstall as MpiInstall
    from mpigraft.core.model.machine import MpiInterface as MpiInterface
    from mpigraft.core.model.machine import NetDevice as NetDevice
    from mpigraft.core.model.machine import NetLibrary as NetLibrary
    from mpigraft.core.model.machine import Scheduler as Scheduler
    from mpigraft.core.model.machine import SingleCopy as SingleCopy
    from mpigraft.core.model.machine import TransportOffer as TransportOffer
    from mpigraft.core.model.machine import cores_of as cores_of
    from mpigraft.core.model.metrics import METRICS as METRICS
    from mpigraft.core.model.metrics import Better as Better
    from mpigraft.core.model.metrics import Metric as Metric
    from mpigraft.core.model.metrics import metric_key as metric_key
    from mpigraft.core.model.metrics import metric_name as metric_name
    from mpigraft.core.model.nodes import NOWHERE as NOWHERE
    from mpigraft.core.model.nodes import Allocation as Allocation
    from mpigraft.core.model.nodes import Command as Command
    from mpigraft.core.model.nodes import Group as Group
    from mpigraft.core.model.nodes import LaunchedBy as LaunchedBy
    from mpigraft.core.model.nodes import Layout as Layout
    from mpigraft.core.model.nodes import Order as Order
    from mpigraft.core.model.nodes import Placement as Placement
    from mpigraft.core.model.nodes import granted_cpus as granted_cpus
    from mpigraft.core.model.nodes import layout_order as layout_order
    from mpigraft.core.model.records import AllocationRecord as AllocationRecord
    from mpigraft.core.model.records import CampaignRecord as CampaignRecord
    from mpigraft.core.model.records import Conditions as Conditions
    from mpigraft.core.model.records import ConfigurationRecord as ConfigurationRecord
    from mpigraft.core.model.records import CpuUse as CpuUse
    from mpigraft.core.model.records import Evidence as Evidence
    from mpigraft.core.model.records import EvidenceRecord as EvidenceRecord
    from mpigraft.core.model.records import LaunchRecord as LaunchRecord
    from mpigraft.core.model.records import LaunchState as LaunchState
    from mpigraft.core.model.records import MappedLibrary as MappedLibrary
    from mpigraft.core.model.records import Measured as Measured
    from mpigraft.core.model.records import Measurement as Measurement
    from mpigraft.core.model.records import NodeState as NodeState
    from mpigraft.core.model.records import Origin as Origin
    from mpigraft.core.model.records import Proof as Proof
    from mpigraft.core.model.records import RankRecord as RankRecord
    from mpigraft.core.model.records import SeriesKey as SeriesKey
    from mpigraft.core.model.records import SettingEffect as SettingEffect
    from mpigraft.core.model.records import SettingState as SettingState
    from mpigraft.core.model.records import ValueRow as ValueRow
    from mpigraft.core.model.vocabulary import Abi as Abi
    from mpigraft.core.model.vocabulary import EnvRow as EnvRow
    from mpigraft.core.model.vocabulary import Family as Family
    from mpigraft.core.model.vocabulary import Finding as Finding
    from mpigraft.core.model.vocabulary import Kind as Kind
    from mpigraft.core.model.vocabulary import Level as Level
    from mpigraft.core.model.vocabulary import Peer as Peer
    from mpigraft.core.model.vocabulary import ProofStatus as ProofStatus
    from mpigraft.core.model.vocabulary import Scope as Scope
else:
    __getattr__ = exports(__name__)
