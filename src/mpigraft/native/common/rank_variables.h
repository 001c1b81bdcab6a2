/* Made by tools/write_ranks.py of knowledge/ranks.toml: not to be edited. */
#ifndef MPIGRAFT_RANK_VARIABLES_H
#define MPIGRAFT_RANK_VARIABLES_H

#define WORLD_RANK_VARIABLES \
    "OMPI_COMM_WORLD_RANK", \
    "PMIX_RANK", \
    "PMI_RANK", \
    "PMI_ID", \
    "PALS_RANKID", \
    "FLUX_TASK_RANK", \
    "ALPS_APP_PE", \
    "MV2_COMM_WORLD_RANK", \
    "SLURM_PROCID"

#define NODE_RANK_VARIABLES \
    "OMPI_COMM_WORLD_LOCAL_RANK", \
    "MPI_LOCALRANKID", \
    "PMI_LOCAL_RANK", \
    "PALS_LOCAL_RANKID", \
    "FLUX_TASK_LOCAL_ID", \
    "MV2_COMM_WORLD_LOCAL_RANK", \
    "SLURM_LOCALID"

#define CONNECTION_VARIABLES \
    {"PMIX_NAMESPACE", "PMIX_RANK"}, \
    {"PMI_FD", "PMI_PORT", "PMI_ID", "PMI_RANK"}, \
    {"OMPI_MCA_ess_base_jobid", "OMPI_MCA_ess_base_vpid"}, \
    {"PALS_APID", "PALS_RANKID"}, \
    {"FLUX_JOB_ID", "FLUX_TASK_RANK"}, \
    {"ALPS_APP_PE"}, \
    {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID"}

#endif
