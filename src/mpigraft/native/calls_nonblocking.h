/* Made by tools/write_calls.py of MPICH's mpi_proto.h: not to be edited. */
CALL(Allgather_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
     int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request),
     (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, info, request), AT_ONCE,
     NOT_SENT(request))
LARGE(Allgather_init, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void
     *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
     MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm,
     info, request), AT_ONCE, NOT_SENT(request))
CALL(Allgatherv_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
     const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info
     info, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
     recvtype, comm, info, request), AT_ONCE, NOT_SENT(request))
LARGE(Allgatherv_init, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void
     *recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
     MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf,
     recvcounts, displs, recvtype, comm, info, request), AT_ONCE, NOT_SENT(request))
CALL(Allreduce_init, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op
     op, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, count, datatype,
     op, comm, info, request), AT_ONCE, NOT_SENT(request))
LARGE(Allreduce_init, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
     MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, count,
     datatype, op, comm, info, request), AT_ONCE, NOT_SENT(request))
CALL(Alltoall_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int
     recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request),
     (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, info, request), AT_ONCE,
     NOT_SENT(request))
LARGE(Alltoall_init, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void
     *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
     MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm,
     info, request), AT_ONCE, NOT_SENT(request))
CALL(Alltoallv_init, (const void *sendbuf, const int sendcounts[], const int sdispls[],
     MPI_Datatype sendtype, void *recvbuf, const int recvcounts[], const int rdispls[],
     MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf,
     sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, info, request),
     AT_ONCE, NOT_SENT(request))
LARGE(Alltoallv_init, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint
     sdispls[], MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint
     rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request),
     (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, info,
     request), AT_ONCE, NOT_SENT(request))
CALL(Alltoallw_init, (const void *sendbuf, const int sendcounts[], const int sdispls[], const
     MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[], const int rdispls[], const
     MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf,
     sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, info,
     request), AT_ONCE, NOT_SENT(request))
LARGE(Alltoallw_init, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint
     sdispls[], const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[], const
     MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info, MPI_Request
     *request), (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
     comm, info, request), AT_ONCE, NOT_SENT(request))
CALL(Barrier_init, (MPI_Comm comm, MPI_Info info, MPI_Request *request), (comm, info, request),
     AT_ONCE, NOT_SENT(request))
CALL(Bcast_init, (void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm,
     MPI_Info info, MPI_Request *request), (buffer, count, datatype, root, comm, info, request),
     AT_ONCE, NOT_SENT(request))
LARGE(Bcast_init, (void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
     MPI_Info info, MPI_Request *request), (buffer, count, datatype, root, comm, info, request),
     AT_ONCE, NOT_SENT(request))
CALL(Exscan_init, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op
     op, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, count, datatype,
     op, comm, info, request), AT_ONCE, NOT_SENT(request))
LARGE(Exscan_init, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
     MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, count,
     datatype, op, comm, info, request), AT_ONCE, NOT_SENT(request))
CALL(Gather_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int
     recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request
     *request), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, info,
     request), AT_ONCE, NOT_SENT(request))
LARGE(Gather_init, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void
     *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
     MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
     comm, info, request), AT_ONCE, NOT_SENT(request))
CALL(Gatherv_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
     const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm,
     MPI_Info info, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcounts,
     displs, recvtype, root, comm, info, request), AT_ONCE, NOT_SENT(request))
LARGE(Gatherv_init, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void
     *recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int
     root, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcount, sendtype,
     recvbuf, recvcounts, displs, recvtype, root, comm, info, request), AT_ONCE,
     NOT_SENT(request))
CALL(Iallgather, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int
     recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request), (sendbuf, sendcount,
     sendtype, recvbuf, recvcount, recvtype, comm, request), AT_ONCE, OWN(sendbuf, sendcount,
     sendtype, recvcount, recvtype))
LARGE(Iallgather, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
     MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request), (sendbuf,
     sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request), AT_ONCE, OWN(sendbuf,
     sendcount, sendtype, recvcount, recvtype))
CALL(Iallgatherv, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const
     int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request
     *request), (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm,
     request), AT_ONCE, OWN_OF(sendbuf, sendcount, sendtype, recvcounts, recvtype, comm))
LARGE(Iallgatherv, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void
     *recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
     MPI_Comm comm, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcounts,
     displs, recvtype, comm, request), AT_ONCE, OWN_OF(sendbuf, sendcount, sendtype, recvcounts,
     recvtype, comm))
CALL(Iallreduce, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
     MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, comm, request),
     AT_ONCE, GIVEN(count, datatype))
LARGE(Iallreduce, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
     MPI_Op op, MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op,
     comm, request), AT_ONCE, GIVEN(count, datatype))
CALL(Ialltoall, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int
     recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request), (sendbuf, sendcount,
     sendtype, recvbuf, recvcount, recvtype, comm, request), AT_ONCE, ALL(OTHERS, sendbuf,
     sendcount, sendtype, recvcount, recvtype, comm))
LARGE(Ialltoall, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
     MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request), (sendbuf,
     sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request), AT_ONCE, ALL(OTHERS,
     sendbuf, sendcount, sendtype, recvcount, recvtype, comm))
CALL(Ialltoallv, (const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype
     sendtype, void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype,
     MPI_Comm comm, MPI_Request *request), (sendbuf, sendcounts, sdispls, sendtype, recvbuf,
     recvcounts, rdispls, recvtype, comm, request), AT_ONCE, EACH(OTHERS, sendbuf, sendcounts,
     sendtype, recvcounts, recvtype, comm))
LARGE(Ialltoallv, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
     MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
     MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request), (sendbuf, sendcounts, sdispls,
     sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, request), AT_ONCE, EACH(OTHERS,
     sendbuf, sendcounts, sendtype, recvcounts, recvtype, comm))
CALL(Ialltoallw, (const void *sendbuf, const int sendcounts[], const int sdispls[], const
     MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[], const int rdispls[], const
     MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Request *request), (sendbuf, sendcounts,
     sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, request), AT_ONCE,
     EACH_TYPED(OTHERS, sendbuf, sendcounts, sendtypes, recvcounts, recvtypes, comm))
LARGE(Ialltoallw, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
     const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint
     rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Request *request), (sendbuf,
     sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, request),
     AT_ONCE, EACH_TYPED(OTHERS, sendbuf, sendcounts, sendtypes, recvcounts, recvtypes, comm))
CALL(Ibarrier, (MPI_Comm comm, MPI_Request *request), (comm, request), AT_ONCE, NOTHING)
CALL(Ibcast, (void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Request
     *request), (buffer, count, datatype, root, comm, request), AT_ONCE, GIVEN(count, datatype))
LARGE(Ibcast, (void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
     MPI_Request *request), (buffer, count, datatype, root, comm, request), AT_ONCE, GIVEN(count,
     datatype))
CALL(Iexscan, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
     MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, comm, request),
     AT_ONCE, GIVEN(count, datatype))
LARGE(Iexscan, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op
     op, MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, comm,
     request), AT_ONCE, GIVEN(count, datatype))
CALL(Igather, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int
     recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request), (sendbuf,
     sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request), AT_ONCE,
     GATHERED(sendbuf, sendcount, sendtype, recvcount, recvtype, root, comm))
LARGE(Igather, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
     MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request),
     (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request), AT_ONCE,
     GATHERED(sendbuf, sendcount, sendtype, recvcount, recvtype, root, comm))
CALL(Igatherv, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const
     int recvcounts[], const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm,
     MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype,
     root, comm, request), AT_ONCE, GATHERED(sendbuf, sendcount, sendtype, 0, recvtype, root,
     comm))
LARGE(Igatherv, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
     const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int root,
     MPI_Comm comm, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcounts,
     displs, recvtype, root, comm, request), AT_ONCE, GATHERED(sendbuf, sendcount, sendtype, 0,
     recvtype, root, comm))
CALL(Ineighbor_allgather, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void
     *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
     (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request), AT_ONCE,
     ALL(NEIGHBORS, sendbuf, sendcount, sendtype, sendcount, sendtype, comm))
LARGE(Ineighbor_allgather, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void
     *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
     (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request), AT_ONCE,
     ALL(NEIGHBORS, sendbuf, sendcount, sendtype, sendcount, sendtype, comm))
CALL(Ineighbor_allgatherv, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void
     *recvbuf, const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm,
     MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype,
     comm, request), AT_ONCE, ALL(NEIGHBORS, sendbuf, sendcount, sendtype, sendcount, sendtype,
     comm))
LARGE(Ineighbor_allgatherv, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void
     *recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
     MPI_Comm comm, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcounts,
     displs, recvtype, comm, request), AT_ONCE, ALL(NEIGHBORS, sendbuf, sendcount, sendtype,
     sendcount, sendtype, comm))
CALL(Ineighbor_alltoall, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void
     *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
     (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request), AT_ONCE,
     ALL(NEIGHBORS, sendbuf, sendcount, sendtype, recvcount, recvtype, comm))
LARGE(Ineighbor_alltoall, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void
     *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
     (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request), AT_ONCE,
     ALL(NEIGHBORS, sendbuf, sendcount, sendtype, recvcount, recvtype, comm))
CALL(Ineighbor_alltoallv, (const void *sendbuf, const int sendcounts[], const int sdispls[],
     MPI_Datatype sendtype, void *recvbuf, const int recvcounts[], const int rdispls[],
     MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request), (sendbuf, sendcounts, sdispls,
     sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, request), AT_ONCE, EACH(NEIGHBORS,
     sendbuf, sendcounts, sendtype, recvcounts, recvtype, comm))
LARGE(Ineighbor_alltoallv, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint
     sdispls[], MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint
     rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request), (sendbuf, sendcounts,
     sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, request), AT_ONCE,
     EACH(NEIGHBORS, sendbuf, sendcounts, sendtype, recvcounts, recvtype, comm))
CALL(Ineighbor_alltoallw, (const void *sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
     const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[], const MPI_Aint
     rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Request *request), (sendbuf,
     sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, request),
     AT_ONCE, EACH_TYPED(NEIGHBORS, sendbuf, sendcounts, sendtypes, recvcounts, recvtypes, comm))
LARGE(Ineighbor_alltoallw, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint
     sdispls[], const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[], const
     MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Request *request),
     (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm,
     request), AT_ONCE, EACH_TYPED(NEIGHBORS, sendbuf, sendcounts, sendtypes, recvcounts,
     recvtypes, comm))
CALL(Ireduce, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
     int root, MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, root,
     comm, request), AT_ONCE, GIVEN(count, datatype))
LARGE(Ireduce, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op
     op, int root, MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op,
     root, comm, request), AT_ONCE, GIVEN(count, datatype))
CALL(Ireduce_scatter, (const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype
     datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, recvcounts,
     datatype, op, comm, request), AT_ONCE, REDUCED_EACH(recvcounts, datatype, comm))
LARGE(Ireduce_scatter, (const void *sendbuf, void *recvbuf, const MPI_Count recvcounts[],
     MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf,
     recvcounts, datatype, op, comm, request), AT_ONCE, REDUCED_EACH(recvcounts, datatype, comm))
CALL(Ireduce_scatter_block, (const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype
     datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, recvcount,
     datatype, op, comm, request), AT_ONCE, REDUCED_BLOCK(recvcount, datatype, comm))
LARGE(Ireduce_scatter_block, (const void *sendbuf, void *recvbuf, MPI_Count recvcount,
     MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf,
     recvcount, datatype, op, comm, request), AT_ONCE, REDUCED_BLOCK(recvcount, datatype, comm))
CALL(Iscan, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
     MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, comm, request),
     AT_ONCE, GIVEN(count, datatype))
LARGE(Iscan, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op
     op, MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, comm,
     request), AT_ONCE, GIVEN(count, datatype))
CALL(Iscatter, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int
     recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request), (sendbuf,
     sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request), AT_ONCE,
     SCATTERED(sendcount, sendtype, recvcount, recvtype, root, comm))
LARGE(Iscatter, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
     MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request),
     (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request), AT_ONCE,
     SCATTERED(sendcount, sendtype, recvcount, recvtype, root, comm))
CALL(Iscatterv, (const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype
     sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
     MPI_Request *request), (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype,
     root, comm, request), AT_ONCE, SCATTERED_EACH(sendcounts, sendtype, recvcount, recvtype,
     root, comm))
LARGE(Iscatterv, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
     MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
     MPI_Comm comm, MPI_Request *request), (sendbuf, sendcounts, displs, sendtype, recvbuf,
     recvcount, recvtype, root, comm, request), AT_ONCE, SCATTERED_EACH(sendcounts, sendtype,
     recvcount, recvtype, root, comm))
CALL(Neighbor_allgather_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void
     *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request
     *request), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, info, request),
     AT_ONCE, NOT_SENT(request))
LARGE(Neighbor_allgather_init, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
     void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
     MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm,
     info, request), AT_ONCE, NOT_SENT(request))
CALL(Neighbor_allgatherv_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void
     *recvbuf, const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm,
     MPI_Info info, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcounts,
     displs, recvtype, comm, info, request), AT_ONCE, NOT_SENT(request))
LARGE(Neighbor_allgatherv_init, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
     void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
     MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf,
     recvcounts, displs, recvtype, comm, info, request), AT_ONCE, NOT_SENT(request))
CALL(Neighbor_alltoall_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void
     *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request
     *request), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, info, request),
     AT_ONCE, NOT_SENT(request))
LARGE(Neighbor_alltoall_init, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
     void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
     MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm,
     info, request), AT_ONCE, NOT_SENT(request))
CALL(Neighbor_alltoallv_init, (const void *sendbuf, const int sendcounts[], const int sdispls[],
     MPI_Datatype sendtype, void *recvbuf, const int recvcounts[], const int rdispls[],
     MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf,
     sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, info, request),
     AT_ONCE, NOT_SENT(request))
LARGE(Neighbor_alltoallv_init, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint
     sdispls[], MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint
     rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request),
     (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, info,
     request), AT_ONCE, NOT_SENT(request))
CALL(Neighbor_alltoallw_init, (const void *sendbuf, const int sendcounts[], const MPI_Aint
     sdispls[], const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[], const
     MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info, MPI_Request
     *request), (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
     comm, info, request), AT_ONCE, NOT_SENT(request))
LARGE(Neighbor_alltoallw_init, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint
     sdispls[], const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[], const
     MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info, MPI_Request
     *request), (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
     comm, info, request), AT_ONCE, NOT_SENT(request))
CALL(Reduce_init, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op
     op, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, count,
     datatype, op, root, comm, info, request), AT_ONCE, NOT_SENT(request))
LARGE(Reduce_init, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
     MPI_Op op, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf,
     count, datatype, op, root, comm, info, request), AT_ONCE, NOT_SENT(request))
CALL(Reduce_scatter_block_init, (const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype
     datatype, MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf,
     recvcount, datatype, op, comm, info, request), AT_ONCE, NOT_SENT(request))
LARGE(Reduce_scatter_block_init, (const void *sendbuf, void *recvbuf, MPI_Count recvcount,
     MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request),
     (sendbuf, recvbuf, recvcount, datatype, op, comm, info, request), AT_ONCE, NOT_SENT(request))
CALL(Reduce_scatter_init, (const void *sendbuf, void *recvbuf, const int recvcounts[],
     MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request),
     (sendbuf, recvbuf, recvcounts, datatype, op, comm, info, request), AT_ONCE,
     NOT_SENT(request))
LARGE(Reduce_scatter_init, (const void *sendbuf, void *recvbuf, const MPI_Count recvcounts[],
     MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request),
     (sendbuf, recvbuf, recvcounts, datatype, op, comm, info, request), AT_ONCE,
     NOT_SENT(request))
CALL(Scan_init, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
     MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op,
     comm, info, request), AT_ONCE, NOT_SENT(request))
LARGE(Scan_init, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
     MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, count,
     datatype, op, comm, info, request), AT_ONCE, NOT_SENT(request))
CALL(Scatter_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int
     recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request
     *request), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, info,
     request), AT_ONCE, NOT_SENT(request))
LARGE(Scatter_init, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void
     *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
     MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
     comm, info, request), AT_ONCE, NOT_SENT(request))
CALL(Scatterv_init, (const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype
     sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
     MPI_Info info, MPI_Request *request), (sendbuf, sendcounts, displs, sendtype, recvbuf,
     recvcount, recvtype, root, comm, info, request), AT_ONCE, NOT_SENT(request))
LARGE(Scatterv_init, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
     MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
     MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcounts, displs, sendtype,
     recvbuf, recvcount, recvtype, root, comm, info, request), AT_ONCE, NOT_SENT(request))
