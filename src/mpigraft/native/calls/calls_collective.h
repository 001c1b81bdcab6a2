/* Made by tools/write_calls.py of MPICH's mpi_proto.h: not to be edited. */
CALL(Allgather, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int
     recvcount, MPI_Datatype recvtype, MPI_Comm comm), (sendbuf, sendcount, sendtype, recvbuf,
     recvcount, recvtype, comm), AWAIT_ALL(comm), OWN(sendbuf, sendcount, sendtype, recvcount,
     recvtype), KEPT)
CALL(Allgatherv, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const
     int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm), (sendbuf,
     sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm), AWAIT_ALL(comm),
     OWN_OF(sendbuf, sendcount, sendtype, recvcounts, recvtype, comm), KEPT)
CALL(Allreduce, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
     MPI_Comm comm), (sendbuf, recvbuf, count, datatype, op, comm), AWAIT_ALL(comm), GIVEN(count,
     datatype), KEPT)
CALL(Alltoall, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int
     recvcount, MPI_Datatype recvtype, MPI_Comm comm), (sendbuf, sendcount, sendtype, recvbuf,
     recvcount, recvtype, comm), AWAIT_ALL(comm), ALL(OTHERS, sendbuf, sendcount, sendtype,
     recvcount, recvtype, comm), KEPT)
CALL(Alltoallv, (const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype
     sendtype, void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype,
     MPI_Comm comm), (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
     recvtype, comm), AWAIT_ALL(comm), EACH(OTHERS, sendbuf, sendcounts, sendtype, recvcounts,
     recvtype, comm), KEPT)
CALL(Alltoallw, (const void *sendbuf, const int sendcounts[], const int sdispls[], const
     MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[], const int rdispls[], const
     MPI_Datatype recvtypes[], MPI_Comm comm), (sendbuf, sendcounts, sdispls, sendtypes, recvbuf,
     recvcounts, rdispls, recvtypes, comm), AWAIT_ALL(comm), EACH_TYPED(OTHERS, sendbuf,
     sendcounts, sendtypes, recvcounts, recvtypes, comm), KEPT)
CALL(Barrier, (MPI_Comm comm), (comm), AT_ONCE, NOTHING, KEPT)
CALL(Bcast, (void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm), (buffer,
     count, datatype, root, comm), AWAIT_ALL(comm), OFFERED(count, datatype, root), KEPT)
CALL(Exscan, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
     MPI_Comm comm), (sendbuf, recvbuf, count, datatype, op, comm), AWAIT_ALL(comm), GIVEN(count,
     datatype), KEPT)
CALL(Gather, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int
     recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm), (sendbuf, sendcount, sendtype,
     recvbuf, recvcount, recvtype, root, comm), AWAIT_ALL(comm), GATHERED(sendbuf, sendcount,
     sendtype, recvcount, recvtype, root, comm), KEPT)
CALL(Gatherv, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int
     recvcounts[], const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm), (sendbuf,
     sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm), AWAIT_ALL(comm),
     GATHERED_EACH(sendbuf, sendcount, sendtype, recvcounts, recvtype, root, comm), KEPT)
CALL(Neighbor_allgather, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void
     *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm), (sendbuf, sendcount,
     sendtype, recvbuf, recvcount, recvtype, comm), AT_ONCE, ALL(NEIGHBORS, sendbuf, sendcount,
     sendtype, sendcount, sendtype, comm), KEPT)
CALL(Neighbor_allgatherv, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void
     *recvbuf, const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm),
     (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm), AT_ONCE,
     ALL(NEIGHBORS, sendbuf, sendcount, sendtype, sendcount, sendtype, comm), KEPT)
CALL(Neighbor_alltoall, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
     int recvcount, MPI_Datatype recvtype, MPI_Comm comm), (sendbuf, sendcount, sendtype, recvbuf,
     recvcount, recvtype, comm), AT_ONCE, ALL(NEIGHBORS, sendbuf, sendcount, sendtype, recvcount,
     recvtype, comm), KEPT)
CALL(Neighbor_alltoallv, (const void *sendbuf, const int sendcounts[], const int sdispls[],
     MPI_Datatype sendtype, void *recvbuf, const int recvcounts[], const int rdispls[],
     MPI_Datatype recvtype, MPI_Comm comm), (sendbuf, sendcounts, sdispls, sendtype, recvbuf,
     recvcounts, rdispls, recvtype, comm), AT_ONCE, EACH(NEIGHBORS, sendbuf, sendcounts, sendtype,
     recvcounts, recvtype, comm), KEPT)
CALL(Neighbor_alltoallw, (const void *sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
     const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[], const MPI_Aint
     rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm), (sendbuf, sendcounts, sdispls,
     sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm), AT_ONCE, EACH_TYPED(NEIGHBORS,
     sendbuf, sendcounts, sendtypes, recvcounts, recvtypes, comm), KEPT)
CALL(Reduce, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int
     root, MPI_Comm comm), (sendbuf, recvbuf, count, datatype, op, root, comm), AWAIT_ALL(comm),
     OFFERED(count, datatype, root), KEPT)
CALL(Reduce_scatter, (const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype
     datatype, MPI_Op op, MPI_Comm comm), (sendbuf, recvbuf, recvcounts, datatype, op, comm),
     AWAIT_ALL(comm), REDUCED_EACH(recvcounts, datatype, comm), KEPT)
CALL(Reduce_scatter_block, (const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype
     datatype, MPI_Op op, MPI_Comm comm), (sendbuf, recvbuf, recvcount, datatype, op, comm),
     AWAIT_ALL(comm), REDUCED_BLOCK(recvcount, datatype, comm), KEPT)
CALL(Scan, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
     MPI_Comm comm), (sendbuf, recvbuf, count, datatype, op, comm), AWAIT_ALL(comm), GIVEN(count,
     datatype), KEPT)
CALL(Scatter, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int
     recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm), (sendbuf, sendcount, sendtype,
     recvbuf, recvcount, recvtype, root, comm), AWAIT_ALL(comm), SCATTERED(sendcount, sendtype,
     recvcount, recvtype, root, comm), KEPT)
CALL(Scatterv, (const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype
     sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm),
     (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm),
     AWAIT_ALL(comm), SCATTERED_EACH(sendcounts, sendtype, recvcount, recvtype, root, comm), KEPT)
#ifndef OPEN_MPI
LARGE(Allgather, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
     MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm), (sendbuf, sendcount, sendtype,
     recvbuf, recvcount, recvtype, comm), AWAIT_ALL(comm), OWN(sendbuf, sendcount, sendtype,
     recvcount, recvtype), KEPT)
LARGE(Allgatherv, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
     const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm),
     (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm), AWAIT_ALL(comm),
     OWN_OF(sendbuf, sendcount, sendtype, recvcounts, recvtype, comm), KEPT)
LARGE(Allreduce, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
     MPI_Op op, MPI_Comm comm), (sendbuf, recvbuf, count, datatype, op, comm), AWAIT_ALL(comm),
     GIVEN(count, datatype), KEPT)
LARGE(Alltoall, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
     MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm), (sendbuf, sendcount, sendtype,
     recvbuf, recvcount, recvtype, comm), AWAIT_ALL(comm), ALL(OTHERS, sendbuf, sendcount,
     sendtype, recvcount, recvtype, comm), KEPT)
LARGE(Alltoallv, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
     MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
     MPI_Datatype recvtype, MPI_Comm comm), (sendbuf, sendcounts, sdispls, sendtype, recvbuf,
     recvcounts, rdispls, recvtype, comm), AWAIT_ALL(comm), EACH(OTHERS, sendbuf, sendcounts,
     sendtype, recvcounts, recvtype, comm), KEPT)
LARGE(Alltoallw, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
     const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint
     rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm), (sendbuf, sendcounts, sdispls,
     sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm), AWAIT_ALL(comm),
     EACH_TYPED(OTHERS, sendbuf, sendcounts, sendtypes, recvcounts, recvtypes, comm), KEPT)
LARGE(Bcast, (void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm),
     (buffer, count, datatype, root, comm), AWAIT_ALL(comm), OFFERED(count, datatype, root), KEPT)
LARGE(Exscan, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op
     op, MPI_Comm comm), (sendbuf, recvbuf, count, datatype, op, comm), AWAIT_ALL(comm),
     GIVEN(count, datatype), KEPT)
LARGE(Gather, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
     MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm), (sendbuf, sendcount,
     sendtype, recvbuf, recvcount, recvtype, root, comm), AWAIT_ALL(comm), GATHERED(sendbuf,
     sendcount, sendtype, recvcount, recvtype, root, comm), KEPT)
LARGE(Gatherv, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
     const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int root,
     MPI_Comm comm), (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root,
     comm), AWAIT_ALL(comm), GATHERED_EACH(sendbuf, sendcount, sendtype, recvcounts, recvtype,
     root, comm), KEPT)
LARGE(Neighbor_allgather, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void
     *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm), (sendbuf, sendcount,
     sendtype, recvbuf, recvcount, recvtype, comm), AT_ONCE, ALL(NEIGHBORS, sendbuf, sendcount,
     sendtype, sendcount, sendtype, comm), KEPT)
LARGE(Neighbor_allgatherv, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void
     *recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
     MPI_Comm comm), (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm),
     AT_ONCE, ALL(NEIGHBORS, sendbuf, sendcount, sendtype, sendcount, sendtype, comm), KEPT)
LARGE(Neighbor_alltoall, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void
     *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm), (sendbuf, sendcount,
     sendtype, recvbuf, recvcount, recvtype, comm), AT_ONCE, ALL(NEIGHBORS, sendbuf, sendcount,
     sendtype, recvcount, recvtype, comm), KEPT)
LARGE(Neighbor_alltoallv, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint
     sdispls[], MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint
     rdispls[], MPI_Datatype recvtype, MPI_Comm comm), (sendbuf, sendcounts, sdispls, sendtype,
     recvbuf, recvcounts, rdispls, recvtype, comm), AT_ONCE, EACH(NEIGHBORS, sendbuf, sendcounts,
     sendtype, recvcounts, recvtype, comm), KEPT)
LARGE(Neighbor_alltoallw, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint
     sdispls[], const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[], const
     MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm), (sendbuf, sendcounts,
     sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm), AT_ONCE,
     EACH_TYPED(NEIGHBORS, sendbuf, sendcounts, sendtypes, recvcounts, recvtypes, comm), KEPT)
LARGE(Reduce, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op
     op, int root, MPI_Comm comm), (sendbuf, recvbuf, count, datatype, op, root, comm),
     AWAIT_ALL(comm), OFFERED(count, datatype, root), KEPT)
LARGE(Reduce_scatter, (const void *sendbuf, void *recvbuf, const MPI_Count recvcounts[],
     MPI_Datatype datatype, MPI_Op op, MPI_Comm comm), (sendbuf, recvbuf, recvcounts, datatype,
     op, comm), AWAIT_ALL(comm), REDUCED_EACH(recvcounts, datatype, comm), KEPT)
LARGE(Reduce_scatter_block, (const void *sendbuf, void *recvbuf, MPI_Count recvcount, MPI_Datatype
     datatype, MPI_Op op, MPI_Comm comm), (sendbuf, recvbuf, recvcount, datatype, op, comm),
     AWAIT_ALL(comm), REDUCED_BLOCK(recvcount, datatype, comm), KEPT)
LARGE(Scan, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op
     op, MPI_Comm comm), (sendbuf, recvbuf, count, datatype, op, comm), AWAIT_ALL(comm),
     GIVEN(count, datatype), KEPT)
LARGE(Scatter, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
     MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm), (sendbuf, sendcount,
     sendtype, recvbuf, recvcount, recvtype, root, comm), AWAIT_ALL(comm), SCATTERED(sendcount,
     sendtype, recvcount, recvtype, root, comm), KEPT)
LARGE(Scatterv, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
     MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
     MPI_Comm comm), (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root,
     comm), AWAIT_ALL(comm), SCATTERED_EACH(sendcounts, sendtype, recvcount, recvtype, root,
     comm), KEPT)
#endif
