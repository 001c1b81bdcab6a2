/* Made by tools/write_calls.py of MPICH's mpi_proto.h: not to be edited. */
#define FIELDS_Allgather_init "aitaitcH"
#define IN_Allgather_init \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    put_integer((int64_t)(recvcount)); put_known_handle(TYPE, KEY(recvtype)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Allgather_init put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Allgatherv_init "aitaIItcH"
#define IN_Allgatherv_init \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    PUT_INTEGERS(recvcounts, blocks_of(comm, false, false)); \
    PUT_INTEGERS(displs, blocks_of(comm, false, false)); \
    put_known_handle(TYPE, KEY(recvtype)); put_known_handle(COMM, KEY(comm));
#define OUT_Allgatherv_init put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Allreduce_init "aaitocH"
#define IN_Allreduce_init \
    put_address(sendbuf); put_address(recvbuf); put_integer((int64_t)(count)); \
    put_known_handle(TYPE, KEY(datatype)); put_known_handle(OP, KEY(op)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Allreduce_init put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Alltoall_init "aitaitcH"
#define IN_Alltoall_init \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    put_integer((int64_t)(recvcount)); put_known_handle(TYPE, KEY(recvtype)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Alltoall_init put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Alltoallv_init "aIItaIItcH"
#define IN_Alltoallv_init \
    put_address(sendbuf); \
    PUT_INTEGERS(sendcounts, sendbuf == MPI_IN_PLACE ? 0 : blocks_of(comm, false, true)); \
    PUT_INTEGERS(sdispls, sendbuf == MPI_IN_PLACE ? 0 : blocks_of(comm, false, true)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    PUT_INTEGERS(recvcounts, blocks_of(comm, false, false)); \
    PUT_INTEGERS(rdispls, blocks_of(comm, false, false)); \
    put_known_handle(TYPE, KEY(recvtype)); put_known_handle(COMM, KEY(comm));
#define OUT_Alltoallv_init put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Alltoallw_init "aIITaIITcH"
#define IN_Alltoallw_init \
    put_address(sendbuf); \
    PUT_INTEGERS(sendcounts, sendbuf == MPI_IN_PLACE ? 0 : blocks_of(comm, false, true)); \
    PUT_INTEGERS(sdispls, sendbuf == MPI_IN_PLACE ? 0 : blocks_of(comm, false, true)); \
    PUT_TYPES(sendtypes, sendbuf == MPI_IN_PLACE ? 0 : blocks_of(comm, false, true)); \
    put_address(recvbuf); PUT_INTEGERS(recvcounts, blocks_of(comm, false, false)); \
    PUT_INTEGERS(rdispls, blocks_of(comm, false, false)); \
    PUT_TYPES(recvtypes, blocks_of(comm, false, false)); put_known_handle(COMM, KEY(comm));
#define OUT_Alltoallw_init put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Barrier_init "cH"
#define IN_Barrier_init put_known_handle(COMM, KEY(comm));
#define OUT_Barrier_init put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Bcast_init "aitrcH"
#define IN_Bcast_init \
    put_address(buffer); put_integer((int64_t)(count)); put_known_handle(TYPE, KEY(datatype)); \
    put_rank(root); put_known_handle(COMM, KEY(comm));
#define OUT_Bcast_init put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Exscan_init "aaitocH"
#define IN_Exscan_init \
    put_address(sendbuf); put_address(recvbuf); put_integer((int64_t)(count)); \
    put_known_handle(TYPE, KEY(datatype)); put_known_handle(OP, KEY(op)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Exscan_init put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Gather_init "aitaitrcH"
#define IN_Gather_init \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    put_integer((int64_t)(recvcount)); put_known_handle(TYPE, KEY(recvtype)); put_rank(root); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Gather_init put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Gatherv_init "aitaIItrcH"
#define IN_Gatherv_init \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    PUT_INTEGERS(recvcounts, is_root(comm, root) ? blocks_of(comm, false, false) : 0); \
    PUT_INTEGERS(displs, is_root(comm, root) ? blocks_of(comm, false, false) : 0); \
    put_known_handle(TYPE, KEY(recvtype)); put_rank(root); put_known_handle(COMM, KEY(comm));
#define OUT_Gatherv_init put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Iallgather "aitaitcH"
#define IN_Iallgather \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    put_integer((int64_t)(recvcount)); put_known_handle(TYPE, KEY(recvtype)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Iallgather put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Iallgatherv "aitaIItcH"
#define IN_Iallgatherv \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    PUT_INTEGERS(recvcounts, blocks_of(comm, false, false)); \
    PUT_INTEGERS(displs, blocks_of(comm, false, false)); \
    put_known_handle(TYPE, KEY(recvtype)); put_known_handle(COMM, KEY(comm));
#define OUT_Iallgatherv put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Iallreduce "aaitocH"
#define IN_Iallreduce \
    put_address(sendbuf); put_address(recvbuf); put_integer((int64_t)(count)); \
    put_known_handle(TYPE, KEY(datatype)); put_known_handle(OP, KEY(op)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Iallreduce put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Ialltoall "aitaitcH"
#define IN_Ialltoall \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    put_integer((int64_t)(recvcount)); put_known_handle(TYPE, KEY(recvtype)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Ialltoall put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Ialltoallv "aIItaIItcH"
#define IN_Ialltoallv \
    put_address(sendbuf); \
    PUT_INTEGERS(sendcounts, sendbuf == MPI_IN_PLACE ? 0 : blocks_of(comm, false, true)); \
    PUT_INTEGERS(sdispls, sendbuf == MPI_IN_PLACE ? 0 : blocks_of(comm, false, true)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    PUT_INTEGERS(recvcounts, blocks_of(comm, false, false)); \
    PUT_INTEGERS(rdispls, blocks_of(comm, false, false)); \
    put_known_handle(TYPE, KEY(recvtype)); put_known_handle(COMM, KEY(comm));
#define OUT_Ialltoallv put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Ialltoallw "aIITaIITcH"
#define IN_Ialltoallw \
    put_address(sendbuf); \
    PUT_INTEGERS(sendcounts, sendbuf == MPI_IN_PLACE ? 0 : blocks_of(comm, false, true)); \
    PUT_INTEGERS(sdispls, sendbuf == MPI_IN_PLACE ? 0 : blocks_of(comm, false, true)); \
    PUT_TYPES(sendtypes, sendbuf == MPI_IN_PLACE ? 0 : blocks_of(comm, false, true)); \
    put_address(recvbuf); PUT_INTEGERS(recvcounts, blocks_of(comm, false, false)); \
    PUT_INTEGERS(rdispls, blocks_of(comm, false, false)); \
    PUT_TYPES(recvtypes, blocks_of(comm, false, false)); put_known_handle(COMM, KEY(comm));
#define OUT_Ialltoallw put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Ibarrier "cH"
#define IN_Ibarrier put_known_handle(COMM, KEY(comm));
#define OUT_Ibarrier put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Ibcast "aitrcH"
#define IN_Ibcast \
    put_address(buffer); put_integer((int64_t)(count)); put_known_handle(TYPE, KEY(datatype)); \
    put_rank(root); put_known_handle(COMM, KEY(comm));
#define OUT_Ibcast put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Iexscan "aaitocH"
#define IN_Iexscan \
    put_address(sendbuf); put_address(recvbuf); put_integer((int64_t)(count)); \
    put_known_handle(TYPE, KEY(datatype)); put_known_handle(OP, KEY(op)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Iexscan put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Igather "aitaitrcH"
#define IN_Igather \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    put_integer((int64_t)(recvcount)); put_known_handle(TYPE, KEY(recvtype)); put_rank(root); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Igather put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Igatherv "aitaIItrcH"
#define IN_Igatherv \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    PUT_INTEGERS(recvcounts, is_root(comm, root) ? blocks_of(comm, false, false) : 0); \
    PUT_INTEGERS(displs, is_root(comm, root) ? blocks_of(comm, false, false) : 0); \
    put_known_handle(TYPE, KEY(recvtype)); put_rank(root); put_known_handle(COMM, KEY(comm));
#define OUT_Igatherv put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Ineighbor_allgather "aitaitcH"
#define IN_Ineighbor_allgather \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    put_integer((int64_t)(recvcount)); put_known_handle(TYPE, KEY(recvtype)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Ineighbor_allgather put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Ineighbor_allgatherv "aitaIItcH"
#define IN_Ineighbor_allgatherv \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    PUT_INTEGERS(recvcounts, blocks_of(comm, true, false)); \
    PUT_INTEGERS(displs, blocks_of(comm, true, false)); put_known_handle(TYPE, KEY(recvtype)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Ineighbor_allgatherv put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Ineighbor_alltoall "aitaitcH"
#define IN_Ineighbor_alltoall \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    put_integer((int64_t)(recvcount)); put_known_handle(TYPE, KEY(recvtype)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Ineighbor_alltoall put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Ineighbor_alltoallv "aIItaIItcH"
#define IN_Ineighbor_alltoallv \
    put_address(sendbuf); PUT_INTEGERS(sendcounts, blocks_of(comm, true, true)); \
    PUT_INTEGERS(sdispls, blocks_of(comm, true, true)); put_known_handle(TYPE, KEY(sendtype)); \
    put_address(recvbuf); PUT_INTEGERS(recvcounts, blocks_of(comm, true, false)); \
    PUT_INTEGERS(rdispls, blocks_of(comm, true, false)); \
    put_known_handle(TYPE, KEY(recvtype)); put_known_handle(COMM, KEY(comm));
#define OUT_Ineighbor_alltoallv put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Ineighbor_alltoallw "aIITaIITcH"
#define IN_Ineighbor_alltoallw \
    put_address(sendbuf); PUT_INTEGERS(sendcounts, blocks_of(comm, true, true)); \
    PUT_INTEGERS(sdispls, blocks_of(comm, true, true)); \
    PUT_TYPES(sendtypes, blocks_of(comm, true, true)); put_address(recvbuf); \
    PUT_INTEGERS(recvcounts, blocks_of(comm, true, false)); \
    PUT_INTEGERS(rdispls, blocks_of(comm, true, false)); \
    PUT_TYPES(recvtypes, blocks_of(comm, true, false)); put_known_handle(COMM, KEY(comm));
#define OUT_Ineighbor_alltoallw put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Ireduce "aaitorcH"
#define IN_Ireduce \
    put_address(sendbuf); put_address(recvbuf); put_integer((int64_t)(count)); \
    put_known_handle(TYPE, KEY(datatype)); put_known_handle(OP, KEY(op)); put_rank(root); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Ireduce put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Ireduce_scatter "aaItocH"
#define IN_Ireduce_scatter \
    put_address(sendbuf); put_address(recvbuf); PUT_INTEGERS(recvcounts, parts_of(comm)); \
    put_known_handle(TYPE, KEY(datatype)); put_known_handle(OP, KEY(op)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Ireduce_scatter put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Ireduce_scatter_block "aaitocH"
#define IN_Ireduce_scatter_block \
    put_address(sendbuf); put_address(recvbuf); put_integer((int64_t)(recvcount)); \
    put_known_handle(TYPE, KEY(datatype)); put_known_handle(OP, KEY(op)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Ireduce_scatter_block put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Iscan "aaitocH"
#define IN_Iscan \
    put_address(sendbuf); put_address(recvbuf); put_integer((int64_t)(count)); \
    put_known_handle(TYPE, KEY(datatype)); put_known_handle(OP, KEY(op)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Iscan put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Iscatter "aitaitrcH"
#define IN_Iscatter \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    put_integer((int64_t)(recvcount)); put_known_handle(TYPE, KEY(recvtype)); put_rank(root); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Iscatter put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Iscatterv "aIItaitrcH"
#define IN_Iscatterv \
    put_address(sendbuf); \
    PUT_INTEGERS(sendcounts, is_root(comm, root) ? blocks_of(comm, false, true) : 0); \
    PUT_INTEGERS(displs, is_root(comm, root) ? blocks_of(comm, false, false) : 0); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    put_integer((int64_t)(recvcount)); put_known_handle(TYPE, KEY(recvtype)); put_rank(root); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Iscatterv put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Neighbor_allgather_init "aitaitcH"
#define IN_Neighbor_allgather_init \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    put_integer((int64_t)(recvcount)); put_known_handle(TYPE, KEY(recvtype)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Neighbor_allgather_init put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Neighbor_allgatherv_init "aitaIItcH"
#define IN_Neighbor_allgatherv_init \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    PUT_INTEGERS(recvcounts, blocks_of(comm, true, false)); \
    PUT_INTEGERS(displs, blocks_of(comm, true, false)); put_known_handle(TYPE, KEY(recvtype)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Neighbor_allgatherv_init put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Neighbor_alltoall_init "aitaitcH"
#define IN_Neighbor_alltoall_init \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    put_integer((int64_t)(recvcount)); put_known_handle(TYPE, KEY(recvtype)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Neighbor_alltoall_init put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Neighbor_alltoallv_init "aIItaIItcH"
#define IN_Neighbor_alltoallv_init \
    put_address(sendbuf); PUT_INTEGERS(sendcounts, blocks_of(comm, true, true)); \
    PUT_INTEGERS(sdispls, blocks_of(comm, true, true)); put_known_handle(TYPE, KEY(sendtype)); \
    put_address(recvbuf); PUT_INTEGERS(recvcounts, blocks_of(comm, true, false)); \
    PUT_INTEGERS(rdispls, blocks_of(comm, true, false)); \
    put_known_handle(TYPE, KEY(recvtype)); put_known_handle(COMM, KEY(comm));
#define OUT_Neighbor_alltoallv_init put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Neighbor_alltoallw_init "aIITaIITcH"
#define IN_Neighbor_alltoallw_init \
    put_address(sendbuf); PUT_INTEGERS(sendcounts, blocks_of(comm, true, true)); \
    PUT_INTEGERS(sdispls, blocks_of(comm, true, true)); \
    PUT_TYPES(sendtypes, blocks_of(comm, true, true)); put_address(recvbuf); \
    PUT_INTEGERS(recvcounts, blocks_of(comm, true, false)); \
    PUT_INTEGERS(rdispls, blocks_of(comm, true, false)); \
    PUT_TYPES(recvtypes, blocks_of(comm, true, false)); put_known_handle(COMM, KEY(comm));
#define OUT_Neighbor_alltoallw_init put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Reduce_init "aaitorcH"
#define IN_Reduce_init \
    put_address(sendbuf); put_address(recvbuf); put_integer((int64_t)(count)); \
    put_known_handle(TYPE, KEY(datatype)); put_known_handle(OP, KEY(op)); put_rank(root); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Reduce_init put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Reduce_scatter_block_init "aaitocH"
#define IN_Reduce_scatter_block_init \
    put_address(sendbuf); put_address(recvbuf); put_integer((int64_t)(recvcount)); \
    put_known_handle(TYPE, KEY(datatype)); put_known_handle(OP, KEY(op)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Reduce_scatter_block_init put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Reduce_scatter_init "aaItocH"
#define IN_Reduce_scatter_init \
    put_address(sendbuf); put_address(recvbuf); PUT_INTEGERS(recvcounts, parts_of(comm)); \
    put_known_handle(TYPE, KEY(datatype)); put_known_handle(OP, KEY(op)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Reduce_scatter_init put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Scan_init "aaitocH"
#define IN_Scan_init \
    put_address(sendbuf); put_address(recvbuf); put_integer((int64_t)(count)); \
    put_known_handle(TYPE, KEY(datatype)); put_known_handle(OP, KEY(op)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Scan_init put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Scatter_init "aitaitrcH"
#define IN_Scatter_init \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    put_integer((int64_t)(recvcount)); put_known_handle(TYPE, KEY(recvtype)); put_rank(root); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Scatter_init put_new(REQUEST, KEY(*request)); count_collective(comm);
#define FIELDS_Scatterv_init "aIItaitrcH"
#define IN_Scatterv_init \
    put_address(sendbuf); \
    PUT_INTEGERS(sendcounts, is_root(comm, root) ? blocks_of(comm, false, true) : 0); \
    PUT_INTEGERS(displs, is_root(comm, root) ? blocks_of(comm, false, false) : 0); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    put_integer((int64_t)(recvcount)); put_known_handle(TYPE, KEY(recvtype)); put_rank(root); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Scatterv_init put_new(REQUEST, KEY(*request)); count_collective(comm);
