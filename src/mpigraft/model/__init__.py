"""Every value that two stages share.

All are frozen: a stage takes the values of the stages before it and makes one new value.
Words are those of the design; one word, one meaning. Sizes are bytes, times are named by
their unit, and anything that is a key is a hex SHA-256 or a UUID.
"""

from __future__ import annotations

from mpigraft.model.asked import (
    METRICS,
    Benchmark,
    Better,
    Configuration,
    KnownIssue,
    Launch,
    Layout,
    Metric,
    Sign,
    Transport,
)
from mpigraft.model.here import (
    Cpu,
    Gpu,
    LauncherInfo,
    Machine,
    MpiInstall,
    NetDevice,
    NetLibrary,
    Scheduler,
    SingleCopy,
    TransportOffer,
)
from mpigraft.model.ran import (
    AllocationRecord,
    CampaignRecord,
    ConfigurationRecord,
    Evidence,
    EvidenceRecord,
    LaunchRecord,
    LaunchState,
    MappedLibrary,
    Measurement,
    Origin,
    Proof,
    RankRecord,
    ValueRow,
)
from mpigraft.model.said import Cell, CellGroup, Comparison, Noise, Verdict
from mpigraft.model.words import Abi, EnvRow, Family, Finding, Kind, Level, Peer, Scope, Standing

__all__ = [
    "METRICS",
    "Abi",
    "AllocationRecord",
    "Benchmark",
    "Better",
    "CampaignRecord",
    "Cell",
    "CellGroup",
    "Comparison",
    "Configuration",
    "ConfigurationRecord",
    "Cpu",
    "EnvRow",
    "Evidence",
    "EvidenceRecord",
    "Family",
    "Finding",
    "Gpu",
    "Kind",
    "KnownIssue",
    "Launch",
    "LaunchRecord",
    "LaunchState",
    "LauncherInfo",
    "Layout",
    "Level",
    "Machine",
    "MappedLibrary",
    "Measurement",
    "Metric",
    "MpiInstall",
    "NetDevice",
    "NetLibrary",
    "Noise",
    "Origin",
    "Peer",
    "Proof",
    "RankRecord",
    "Scheduler",
    "Scope",
    "Sign",
    "SingleCopy",
    "Standing",
    "Transport",
    "TransportOffer",
    "ValueRow",
    "Verdict",
]
