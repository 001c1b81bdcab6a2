/* Made by tools/write_ranks.py of knowledge/ranks.toml: not to be edited. */
#ifndef MPIGRAFT_RANK_VARIABLES_H
#define MPIGRAFT_RANK_VARIABLES_H

#define WORLD_RANK_VARIABLES \
    "OMPI_COMM_WORLD_RANK", \
    "PMIX_RANK", \
    "PMI_RANK", \
    "PMI_ID", \
    "SLURM_PROCID", \
    "PALS_RANKID", \
    "FLUX_TASK_RANK", \
    "ALPS_APP_PE", \
    "MV2_COMM_WORLD_RANK"

#define NODE_RANK_VARIABLES \
    "OMPI_COMM_WORLD_LOCAL_RANK", \
    "MPI_LOCALRANKID", \
    "PMI_LOCAL_RANK", \
    "SLURM_LOCALID", \
    "PALS_LOCAL_RANKID", \
    "FLUX_TASK_LOCAL_ID", \
    "MV2_COMM_WORLD_LOCAL_RANK"

#endif
