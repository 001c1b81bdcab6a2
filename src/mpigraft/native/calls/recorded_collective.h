/* Made by tools/write_calls.py of MPICH's mpi_proto.h: not to be edited. */
#define FIELDS_Allgather "aitaitc"
#define IN_Allgather \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    put_integer((int64_t)(recvcount)); put_known_handle(TYPE, KEY(recvtype)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Allgather count_collective(comm);
#define FIELDS_Allgatherv "aitaIItc"
#define IN_Allgatherv \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    PUT_INTEGERS(recvcounts, blocks_of(comm, false, false)); \
    PUT_INTEGERS(displs, blocks_of(comm, false, false)); \
    put_known_handle(TYPE, KEY(recvtype)); put_known_handle(COMM, KEY(comm));
#define OUT_Allgatherv count_collective(comm);
#define FIELDS_Allreduce "aaitoc"
#define IN_Allreduce \
    put_address(sendbuf); put_address(recvbuf); put_integer((int64_t)(count)); \
    put_known_handle(TYPE, KEY(datatype)); put_known_handle(OP, KEY(op)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Allreduce count_collective(comm);
#define FIELDS_Alltoall "aitaitc"
#define IN_Alltoall \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    put_integer((int64_t)(recvcount)); put_known_handle(TYPE, KEY(recvtype)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Alltoall count_collective(comm);
#define FIELDS_Alltoallv "aIItaIItc"
#define IN_Alltoallv \
    put_address(sendbuf); \
    PUT_INTEGERS(sendcounts, sendbuf == MPI_IN_PLACE ? 0 : blocks_of(comm, false, true)); \
    PUT_INTEGERS(sdispls, sendbuf == MPI_IN_PLACE ? 0 : blocks_of(comm, false, true)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    PUT_INTEGERS(recvcounts, blocks_of(comm, false, false)); \
    PUT_INTEGERS(rdispls, blocks_of(comm, false, false)); \
    put_known_handle(TYPE, KEY(recvtype)); put_known_handle(COMM, KEY(comm));
#define OUT_Alltoallv count_collective(comm);
#define FIELDS_Alltoallw "aIITaIITc"
#define IN_Alltoallw \
    put_address(sendbuf); \
    PUT_INTEGERS(sendcounts, sendbuf == MPI_IN_PLACE ? 0 : blocks_of(comm, false, true)); \
    PUT_INTEGERS(sdispls, sendbuf == MPI_IN_PLACE ? 0 : blocks_of(comm, false, true)); \
    PUT_TYPES(sendtypes, sendbuf == MPI_IN_PLACE ? 0 : blocks_of(comm, false, true)); \
    put_address(recvbuf); PUT_INTEGERS(recvcounts, blocks_of(comm, false, false)); \
    PUT_INTEGERS(rdispls, blocks_of(comm, false, false)); \
    PUT_TYPES(recvtypes, blocks_of(comm, false, false)); put_known_handle(COMM, KEY(comm));
#define OUT_Alltoallw count_collective(comm);
#define FIELDS_Barrier "c"
#define IN_Barrier put_known_handle(COMM, KEY(comm));
#define OUT_Barrier count_collective(comm);
#define FIELDS_Bcast "aitrc"
#define IN_Bcast \
    put_address(buffer); put_integer((int64_t)(count)); put_known_handle(TYPE, KEY(datatype)); \
    put_rank(root); put_known_handle(COMM, KEY(comm));
#define OUT_Bcast count_collective(comm);
#define FIELDS_Exscan "aaitoc"
#define IN_Exscan \
    put_address(sendbuf); put_address(recvbuf); put_integer((int64_t)(count)); \
    put_known_handle(TYPE, KEY(datatype)); put_known_handle(OP, KEY(op)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Exscan count_collective(comm);
#define FIELDS_Gather "aitaitrc"
#define IN_Gather \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    put_integer((int64_t)(recvcount)); put_known_handle(TYPE, KEY(recvtype)); put_rank(root); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Gather count_collective(comm);
#define FIELDS_Gatherv "aitaIItrc"
#define IN_Gatherv \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    PUT_INTEGERS(recvcounts, is_root(comm, root) ? blocks_of(comm, false, false) : 0); \
    PUT_INTEGERS(displs, is_root(comm, root) ? blocks_of(comm, false, false) : 0); \
    put_known_handle(TYPE, KEY(recvtype)); put_rank(root); put_known_handle(COMM, KEY(comm));
#define OUT_Gatherv count_collective(comm);
#define FIELDS_Neighbor_allgather "aitaitc"
#define IN_Neighbor_allgather \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    put_integer((int64_t)(recvcount)); put_known_handle(TYPE, KEY(recvtype)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Neighbor_allgather count_collective(comm);
#define FIELDS_Neighbor_allgatherv "aitaIItc"
#define IN_Neighbor_allgatherv \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    PUT_INTEGERS(recvcounts, blocks_of(comm, true, false)); \
    PUT_INTEGERS(displs, blocks_of(comm, true, false)); put_known_handle(TYPE, KEY(recvtype)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Neighbor_allgatherv count_collective(comm);
#define FIELDS_Neighbor_alltoall "aitaitc"
#define IN_Neighbor_alltoall \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    put_integer((int64_t)(recvcount)); put_known_handle(TYPE, KEY(recvtype)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Neighbor_alltoall count_collective(comm);
#define FIELDS_Neighbor_alltoallv "aIItaIItc"
#define IN_Neighbor_alltoallv \
    put_address(sendbuf); PUT_INTEGERS(sendcounts, blocks_of(comm, true, true)); \
    PUT_INTEGERS(sdispls, blocks_of(comm, true, true)); put_known_handle(TYPE, KEY(sendtype)); \
    put_address(recvbuf); PUT_INTEGERS(recvcounts, blocks_of(comm, true, false)); \
    PUT_INTEGERS(rdispls, blocks_of(comm, true, false)); \
    put_known_handle(TYPE, KEY(recvtype)); put_known_handle(COMM, KEY(comm));
#define OUT_Neighbor_alltoallv count_collective(comm);
#define FIELDS_Neighbor_alltoallw "aIITaIITc"
#define IN_Neighbor_alltoallw \
    put_address(sendbuf); PUT_INTEGERS(sendcounts, blocks_of(comm, true, true)); \
    PUT_INTEGERS(sdispls, blocks_of(comm, true, true)); \
    PUT_TYPES(sendtypes, blocks_of(comm, true, true)); put_address(recvbuf); \
    PUT_INTEGERS(recvcounts, blocks_of(comm, true, false)); \
    PUT_INTEGERS(rdispls, blocks_of(comm, true, false)); \
    PUT_TYPES(recvtypes, blocks_of(comm, true, false)); put_known_handle(COMM, KEY(comm));
#define OUT_Neighbor_alltoallw count_collective(comm);
#define FIELDS_Reduce "aaitorc"
#define IN_Reduce \
    put_address(sendbuf); put_address(recvbuf); put_integer((int64_t)(count)); \
    put_known_handle(TYPE, KEY(datatype)); put_known_handle(OP, KEY(op)); put_rank(root); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Reduce count_collective(comm);
#define FIELDS_Reduce_scatter "aaItoc"
#define IN_Reduce_scatter \
    put_address(sendbuf); put_address(recvbuf); PUT_INTEGERS(recvcounts, parts_of(comm)); \
    put_known_handle(TYPE, KEY(datatype)); put_known_handle(OP, KEY(op)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Reduce_scatter count_collective(comm);
#define FIELDS_Reduce_scatter_block "aaitoc"
#define IN_Reduce_scatter_block \
    put_address(sendbuf); put_address(recvbuf); put_integer((int64_t)(recvcount)); \
    put_known_handle(TYPE, KEY(datatype)); put_known_handle(OP, KEY(op)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Reduce_scatter_block count_collective(comm);
#define FIELDS_Scan "aaitoc"
#define IN_Scan \
    put_address(sendbuf); put_address(recvbuf); put_integer((int64_t)(count)); \
    put_known_handle(TYPE, KEY(datatype)); put_known_handle(OP, KEY(op)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Scan count_collective(comm);
#define FIELDS_Scatter "aitaitrc"
#define IN_Scatter \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    put_integer((int64_t)(recvcount)); put_known_handle(TYPE, KEY(recvtype)); put_rank(root); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Scatter count_collective(comm);
#define FIELDS_Scatterv "aIItaitrc"
#define IN_Scatterv \
    put_address(sendbuf); \
    PUT_INTEGERS(sendcounts, is_root(comm, root) ? blocks_of(comm, false, true) : 0); \
    PUT_INTEGERS(displs, is_root(comm, root) ? blocks_of(comm, false, false) : 0); \
    put_known_handle(TYPE, KEY(sendtype)); put_address(recvbuf); \
    put_integer((int64_t)(recvcount)); put_known_handle(TYPE, KEY(recvtype)); put_rank(root); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Scatterv count_collective(comm);
