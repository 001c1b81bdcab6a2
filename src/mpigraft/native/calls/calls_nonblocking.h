/* Made by tools/write_calls.py of MPICH's mpi_proto.h: not to be edited. */
CALL(Allgather_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
     int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request),
     (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, info, request), AT_ONCE,
     NOT_SENT(request), KEPT)
CALL(Allgatherv_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
     const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info
     info, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
     recvtype, comm, info, request), AT_ONCE, NOT_SENT(request), KEPT)
CALL(Allreduce_init, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op
     op, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, count, datatype,
     op, comm, info, request), AT_ONCE, NOT_SENT(request), KEPT)
CALL(Alltoall_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int
     recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request),
     (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, info, request), AT_ONCE,
     NOT_SENT(request), KEPT)
CALL(Alltoallv_init, (const void *sendbuf, const int sendcounts[], const int sdispls[],
     MPI_Datatype sendtype, void *recvbuf, const int recvcounts[], const int rdispls[],
     MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf,
     sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, info, request),
     AT_ONCE, NOT_SENT(request), KEPT)
CALL(Alltoallw_init, (const void *sendbuf, const int sendcounts[], const int sdispls[], const
     MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[], const int rdispls[], const
     MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf,
     sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, info,
     request), AT_ONCE, NOT_SENT(request), KEPT)
CALL(Barrier_init, (MPI_Comm comm, MPI_Info info, MPI_Request *request), (comm, info, request),
     AT_ONCE, NOT_SENT(request), KEPT)
CALL(Bcast_init, (void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm,
     MPI_Info info, MPI_Request *request), (buffer, count, datatype, root, comm, info, request),
     AT_ONCE, NOT_SENT(request), KEPT)
CALL(Exscan_init, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op
     op, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, count, datatype,
     op, comm, info, request), AT_ONCE, NOT_SENT(request), KEPT)
CALL(Gather_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int
     recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request
     *request), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, info,
     request), AT_ONCE, NOT_SENT(request), KEPT)
CALL(Gatherv_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
     const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm,
     MPI_Info info, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcounts,
     displs, recvtype, root, comm, info, request), AT_ONCE, NOT_SENT(request), KEPT)
CALL(Iallgather, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int
     recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request), (sendbuf, sendcount,
     sendtype, recvbuf, recvcount, recvtype, comm, request), AT_ONCE, OWN(sendbuf, sendcount,
     sendtype, recvcount, recvtype), KEPT)
CALL(Iallgatherv, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const
     int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request
     *request), (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm,
     request), AT_ONCE, OWN_OF(sendbuf, sendcount, sendtype, recvcounts, recvtype, comm), KEPT)
CALL(Iallreduce, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
     MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, comm, request),
     AT_ONCE, GIVEN(count, datatype), KEPT)
CALL(Ialltoall, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int
     recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request), (sendbuf, sendcount,
     sendtype, recvbuf, recvcount, recvtype, comm, request), AT_ONCE, ALL(OTHERS, sendbuf,
     sendcount, sendtype, recvcount, recvtype, comm), KEPT)
CALL(Ialltoallv, (const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype
     sendtype, void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype,
     MPI_Comm comm, MPI_Request *request), (sendbuf, sendcounts, sdispls, sendtype, recvbuf,
     recvcounts, rdispls, recvtype, comm, request), AT_ONCE, EACH(OTHERS, sendbuf, sendcounts,
     sendtype, recvcounts, recvtype, comm), KEPT)
CALL(Ialltoallw, (const void *sendbuf, const int sendcounts[], const int sdispls[], const
     MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[], const int rdispls[], const
     MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Request *request), (sendbuf, sendcounts,
     sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, request), AT_ONCE,
     EACH_TYPED(OTHERS, sendbuf, sendcounts, sendtypes, recvcounts, recvtypes, comm), KEPT)
CALL(Ibarrier, (MPI_Comm comm, MPI_Request *request), (comm, request), AT_ONCE, NOTHING, KEPT)
CALL(Ibcast, (void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Request
     *request), (buffer, count, datatype, root, comm, request), AT_ONCE, OFFERED(count, datatype,
     root), KEPT)
CALL(Iexscan, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
     MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, comm, request),
     AT_ONCE, GIVEN(count, datatype), KEPT)
CALL(Igather, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int
     recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request), (sendbuf,
     sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request), AT_ONCE,
     GATHERED(sendbuf, sendcount, sendtype, recvcount, recvtype, root, comm), KEPT)
CALL(Igatherv, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const
     int recvcounts[], const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm,
     MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype,
     root, comm, request), AT_ONCE, GATHERED_EACH(sendbuf, sendcount, sendtype, recvcounts,
     recvtype, root, comm), KEPT)
CALL(Ineighbor_allgather, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void
     *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
     (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request), AT_ONCE,
     ALL(NEIGHBORS, sendbuf, sendcount, sendtype, sendcount, sendtype, comm), KEPT)
CALL(Ineighbor_allgatherv, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void
     *recvbuf, const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm,
     MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype,
     comm, request), AT_ONCE, ALL(NEIGHBORS, sendbuf, sendcount, sendtype, sendcount, sendtype,
     comm), KEPT)
CALL(Ineighbor_alltoall, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void
     *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
     (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request), AT_ONCE,
     ALL(NEIGHBORS, sendbuf, sendcount, sendtype, recvcount, recvtype, comm), KEPT)
CALL(Ineighbor_alltoallv, (const void *sendbuf, const int sendcounts[], const int sdispls[],
     MPI_Datatype sendtype, void *recvbuf, const int recvcounts[], const int rdispls[],
     MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request), (sendbuf, sendcounts, sdispls,
     sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, request), AT_ONCE, EACH(NEIGHBORS,
     sendbuf, sendcounts, sendtype, recvcounts, recvtype, comm), KEPT)
CALL(Ineighbor_alltoallw, (const void *sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
     const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[], const MPI_Aint
     rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Request *request), (sendbuf,
     sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, request),
     AT_ONCE, EACH_TYPED(NEIGHBORS, sendbuf, sendcounts, sendtypes, recvcounts, recvtypes, comm),
     KEPT)
CALL(Ireduce, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
     int root, MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, root,
     comm, request), AT_ONCE, OFFERED(count, datatype, root), KEPT)
CALL(Ireduce_scatter, (const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype
     datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, recvcounts,
     datatype, op, comm, request), AT_ONCE, REDUCED_EACH(recvcounts, datatype, comm), KEPT)
CALL(Ireduce_scatter_block, (const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype
     datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, recvcount,
     datatype, op, comm, request), AT_ONCE, REDUCED_BLOCK(recvcount, datatype, comm), KEPT)
CALL(Iscan, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
     MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, comm, request),
     AT_ONCE, GIVEN(count, datatype), KEPT)
CALL(Iscatter, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int
     recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request), (sendbuf,
     sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request), AT_ONCE,
     SCATTERED(sendcount, sendtype, recvcount, recvtype, root, comm), KEPT)
CALL(Iscatterv, (const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype
     sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
     MPI_Request *request), (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype,
     root, comm, request), AT_ONCE, SCATTERED_EACH(sendcounts, sendtype, recvcount, recvtype,
     root, comm), KEPT)
CALL(Neighbor_allgather_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void
     *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request
     *request), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, info, request),
     AT_ONCE, NOT_SENT(request), KEPT)
CALL(Neighbor_allgatherv_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void
     *recvbuf, const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm,
     MPI_Info info, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcounts,
     displs, recvtype, comm, info, request), AT_ONCE, NOT_SENT(request), KEPT)
CALL(Neighbor_alltoall_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void
     *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request
     *request), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, info, request),
     AT_ONCE, NOT_SENT(request), KEPT)
CALL(Neighbor_alltoallv_init, (const void *sendbuf, const int sendcounts[], const int sdispls[],
     MPI_Datatype sendtype, void *recvbuf, const int recvcounts[], const int rdispls[],
     MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf,
     sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, info, request),
     AT_ONCE, NOT_SENT(request), KEPT)
CALL(Neighbor_alltoallw_init, (const void *sendbuf, const int sendcounts[], const MPI_Aint
     sdispls[], const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[], const
     MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info, MPI_Request
     *request), (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
     comm, info, request), AT_ONCE, NOT_SENT(request), KEPT)
CALL(Reduce_init, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op
     op, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, count,
     datatype, op, root, comm, info, request), AT_ONCE, NOT_SENT(request), KEPT)
CALL(Reduce_scatter_block_init, (const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype
     datatype, MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf,
     recvcount, datatype, op, comm, info, request), AT_ONCE, NOT_SENT(request), KEPT)
CALL(Reduce_scatter_init, (const void *sendbuf, void *recvbuf, const int recvcounts[],
     MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request),
     (sendbuf, recvbuf, recvcounts, datatype, op, comm, info, request), AT_ONCE,
     NOT_SENT(request), KEPT)
CALL(Scan_init, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
     MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op,
     comm, info, request), AT_ONCE, NOT_SENT(request), KEPT)
CALL(Scatter_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int
     recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request
     *request), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, info,
     request), AT_ONCE, NOT_SENT(request), KEPT)
CALL(Scatterv_init, (const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype
     sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
     MPI_Info info, MPI_Request *request), (sendbuf, sendcounts, displs, sendtype, recvbuf,
     recvcount, recvtype, root, comm, info, request), AT_ONCE, NOT_SENT(request), KEPT)
#ifndef OPEN_MPI
LARGE(Allgather_init, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void
     *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
     MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm,
     info, request), AT_ONCE, NOT_SENT(request), KEPT)
LARGE(Allgatherv_init, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void
     *recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
     MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf,
     recvcounts, displs, recvtype, comm, info, request), AT_ONCE, NOT_SENT(request), KEPT)
LARGE(Allreduce_init, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
     MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, count,
     datatype, op, comm, info, request), AT_ONCE, NOT_SENT(request), KEPT)
LARGE(Alltoall_init, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void
     *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
     MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm,
     info, request), AT_ONCE, NOT_SENT(request), KEPT)
LARGE(Alltoallv_init, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint
     sdispls[], MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint
     rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request),
     (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, info,
     request), AT_ONCE, NOT_SENT(request), KEPT)
LARGE(Alltoallw_init, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint
     sdispls[], const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[], const
     MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info, MPI_Request
     *request), (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
     comm, info, request), AT_ONCE, NOT_SENT(request), KEPT)
LARGE(Bcast_init, (void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
     MPI_Info info, MPI_Request *request), (buffer, count, datatype, root, comm, info, request),
     AT_ONCE, NOT_SENT(request), KEPT)
LARGE(Exscan_init, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
     MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, count,
     datatype, op, comm, info, request), AT_ONCE, NOT_SENT(request), KEPT)
LARGE(Gather_init, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void
     *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
     MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
     comm, info, request), AT_ONCE, NOT_SENT(request), KEPT)
LARGE(Gatherv_init, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void
     *recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int
     root, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcount, sendtype,
     recvbuf, recvcounts, displs, recvtype, root, comm, info, request), AT_ONCE,
     NOT_SENT(request), KEPT)
LARGE(Iallgather, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
     MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request), (sendbuf,
     sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request), AT_ONCE, OWN(sendbuf,
     sendcount, sendtype, recvcount, recvtype), KEPT)
LARGE(Iallgatherv, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void
     *recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
     MPI_Comm comm, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcounts,
     displs, recvtype, comm, request), AT_ONCE, OWN_OF(sendbuf, sendcount, sendtype, recvcounts,
     recvtype, comm), KEPT)
LARGE(Iallreduce, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
     MPI_Op op, MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op,
     comm, request), AT_ONCE, GIVEN(count, datatype), KEPT)
LARGE(Ialltoall, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
     MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request), (sendbuf,
     sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request), AT_ONCE, ALL(OTHERS,
     sendbuf, sendcount, sendtype, recvcount, recvtype, comm), KEPT)
LARGE(Ialltoallv, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
     MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
     MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request), (sendbuf, sendcounts, sdispls,
     sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, request), AT_ONCE, EACH(OTHERS,
     sendbuf, sendcounts, sendtype, recvcounts, recvtype, comm), KEPT)
LARGE(Ialltoallw, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
     const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint
     rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Request *request), (sendbuf,
     sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, request),
     AT_ONCE, EACH_TYPED(OTHERS, sendbuf, sendcounts, sendtypes, recvcounts, recvtypes, comm),
     KEPT)
LARGE(Ibcast, (void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
     MPI_Request *request), (buffer, count, datatype, root, comm, request), AT_ONCE,
     OFFERED(count, datatype, root), KEPT)
LARGE(Iexscan, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op
     op, MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, comm,
     request), AT_ONCE, GIVEN(count, datatype), KEPT)
LARGE(Igather, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
     MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request),
     (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request), AT_ONCE,
     GATHERED(sendbuf, sendcount, sendtype, recvcount, recvtype, root, comm), KEPT)
LARGE(Igatherv, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
     const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int root,
     MPI_Comm comm, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcounts,
     displs, recvtype, root, comm, request), AT_ONCE, GATHERED_EACH(sendbuf, sendcount, sendtype,
     recvcounts, recvtype, root, comm), KEPT)
LARGE(Ineighbor_allgather, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void
     *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
     (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request), AT_ONCE,
     ALL(NEIGHBORS, sendbuf, sendcount, sendtype, sendcount, sendtype, comm), KEPT)
LARGE(Ineighbor_allgatherv, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void
     *recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
     MPI_Comm comm, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcounts,
     displs, recvtype, comm, request), AT_ONCE, ALL(NEIGHBORS, sendbuf, sendcount, sendtype,
     sendcount, sendtype, comm), KEPT)
LARGE(Ineighbor_alltoall, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void
     *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
     (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request), AT_ONCE,
     ALL(NEIGHBORS, sendbuf, sendcount, sendtype, recvcount, recvtype, comm), KEPT)
LARGE(Ineighbor_alltoallv, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint
     sdispls[], MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint
     rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request), (sendbuf, sendcounts,
     sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, request), AT_ONCE,
     EACH(NEIGHBORS, sendbuf, sendcounts, sendtype, recvcounts, recvtype, comm), KEPT)
LARGE(Ineighbor_alltoallw, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint
     sdispls[], const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[], const
     MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Request *request),
     (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm,
     request), AT_ONCE, EACH_TYPED(NEIGHBORS, sendbuf, sendcounts, sendtypes, recvcounts,
     recvtypes, comm), KEPT)
LARGE(Ireduce, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op
     op, int root, MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op,
     root, comm, request), AT_ONCE, OFFERED(count, datatype, root), KEPT)
LARGE(Ireduce_scatter, (const void *sendbuf, void *recvbuf, const MPI_Count recvcounts[],
     MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf,
     recvcounts, datatype, op, comm, request), AT_ONCE, REDUCED_EACH(recvcounts, datatype, comm),
     KEPT)
LARGE(Ireduce_scatter_block, (const void *sendbuf, void *recvbuf, MPI_Count recvcount,
     MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf,
     recvcount, datatype, op, comm, request), AT_ONCE, REDUCED_BLOCK(recvcount, datatype, comm),
     KEPT)
LARGE(Iscan, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op
     op, MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, comm,
     request), AT_ONCE, GIVEN(count, datatype), KEPT)
LARGE(Iscatter, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
     MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request),
     (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request), AT_ONCE,
     SCATTERED(sendcount, sendtype, recvcount, recvtype, root, comm), KEPT)
LARGE(Iscatterv, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
     MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
     MPI_Comm comm, MPI_Request *request), (sendbuf, sendcounts, displs, sendtype, recvbuf,
     recvcount, recvtype, root, comm, request), AT_ONCE, SCATTERED_EACH(sendcounts, sendtype,
     recvcount, recvtype, root, comm), KEPT)
LARGE(Neighbor_allgather_init, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
     void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
     MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm,
     info, request), AT_ONCE, NOT_SENT(request), KEPT)
LARGE(Neighbor_allgatherv_init, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
     void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
     MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf,
     recvcounts, displs, recvtype, comm, info, request), AT_ONCE, NOT_SENT(request), KEPT)
LARGE(Neighbor_alltoall_init, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
     void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
     MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm,
     info, request), AT_ONCE, NOT_SENT(request), KEPT)
LARGE(Neighbor_alltoallv_init, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint
     sdispls[], MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint
     rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request),
     (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, info,
     request), AT_ONCE, NOT_SENT(request), KEPT)
LARGE(Neighbor_alltoallw_init, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint
     sdispls[], const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[], const
     MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info, MPI_Request
     *request), (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
     comm, info, request), AT_ONCE, NOT_SENT(request), KEPT)
LARGE(Reduce_init, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
     MPI_Op op, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf,
     count, datatype, op, root, comm, info, request), AT_ONCE, NOT_SENT(request), KEPT)
LARGE(Reduce_scatter_block_init, (const void *sendbuf, void *recvbuf, MPI_Count recvcount,
     MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request),
     (sendbuf, recvbuf, recvcount, datatype, op, comm, info, request), AT_ONCE, NOT_SENT(request),
     KEPT)
LARGE(Reduce_scatter_init, (const void *sendbuf, void *recvbuf, const MPI_Count recvcounts[],
     MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request),
     (sendbuf, recvbuf, recvcounts, datatype, op, comm, info, request), AT_ONCE,
     NOT_SENT(request), KEPT)
LARGE(Scan_init, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
     MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, count,
     datatype, op, comm, info, request), AT_ONCE, NOT_SENT(request), KEPT)
LARGE(Scatter_init, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void
     *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
     MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
     comm, info, request), AT_ONCE, NOT_SENT(request), KEPT)
LARGE(Scatterv_init, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
     MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
     MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcounts, displs, sendtype,
     recvbuf, recvcount, recvtype, root, comm, info, request), AT_ONCE, NOT_SENT(request), KEPT)
#endif
