/* Made by tools/write_calls.py of MPICH's mpi_proto.h: not to be edited. */
CALL(Bsend, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),
     (buf, count, datatype, dest, tag, comm), AT_ONCE, SENT(count, datatype, dest, comm), KEPT)
CALL(Bsend_init, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm
     comm, MPI_Request *request), (buf, count, datatype, dest, tag, comm, request), AT_ONCE,
     LATER(count, datatype, dest, comm, request), KEPT)
CALL(Buffer_attach, (void *buffer, int size), (buffer, size), AT_ONCE, NOTHING, LOST)
CALL(Buffer_detach, (void *buffer_addr, int *size), (buffer_addr, size), AT_ONCE, NOTHING, LOST)
CALL(Cancel, (MPI_Request *request), (request), AT_ONCE, NOTHING, KEPT)
CALL(Grequest_complete, (MPI_Request request), (request), AT_ONCE, NOTHING, LOST)
CALL(Grequest_start, (MPI_Grequest_query_function *query_fn, MPI_Grequest_free_function *free_fn,
     MPI_Grequest_cancel_function *cancel_fn, void *extra_state, MPI_Request *request), (query_fn,
     free_fn, cancel_fn, extra_state, request), AT_ONCE, NOTHING, LOST)
CALL(Ibsend, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
     MPI_Request *request), (buf, count, datatype, dest, tag, comm, request), AT_ONCE, SENT(count,
     datatype, dest, comm), KEPT)
CALL(Improbe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status
     *status), (source, tag, comm, flag, message, status), AT_ONCE, NOTHING, KEPT)
CALL(Imrecv, (void *buf, int count, MPI_Datatype datatype, MPI_Message *message, MPI_Request
     *request), (buf, count, datatype, message, request), MATCHED(message), TAKEN_MESSAGE(count,
     datatype), KEPT)
CALL(Iprobe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status), (source, tag,
     comm, flag, status), AT_ONCE, NOTHING, KEPT)
CALL(Irecv, (void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
     MPI_Request *request), (buf, count, datatype, source, tag, comm, request), AT_ONCE,
     OFFERED(count, datatype, source), KEPT)
CALL(Irsend, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
     MPI_Request *request), (buf, count, datatype, dest, tag, comm, request), AT_ONCE, SENT(count,
     datatype, dest, comm), KEPT)
CALL(Isend, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
     MPI_Request *request), (buf, count, datatype, dest, tag, comm, request), AT_ONCE, SENT(count,
     datatype, dest, comm), KEPT)
CALL(Isendrecv, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,
     void *recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm,
     MPI_Request *request), (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount,
     recvtype, source, recvtag, comm, request), AT_ONCE, SENT(sendcount, sendtype, dest, comm),
     KEPT)
CALL(Isendrecv_replace, (void *buf, int count, MPI_Datatype datatype, int dest, int sendtag, int
     source, int recvtag, MPI_Comm comm, MPI_Request *request), (buf, count, datatype, dest,
     sendtag, source, recvtag, comm, request), AT_ONCE, SENT(count, datatype, dest, comm), KEPT)
CALL(Issend, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
     MPI_Request *request), (buf, count, datatype, dest, tag, comm, request), AT_ONCE, SENT(count,
     datatype, dest, comm), KEPT)
CALL(Mprobe, (int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status),
     (source, tag, comm, message, status), AT_ONCE, NOTHING, KEPT)
CALL(Mrecv, (void *buf, int count, MPI_Datatype datatype, MPI_Message *message, MPI_Status
     *status), (buf, count, datatype, message, status), MATCHED(message), TAKEN_MESSAGE(count,
     datatype), KEPT)
CALL(Parrived, (MPI_Request request, int partition, int *flag), (request, partition, flag),
     AT_ONCE, NOTHING, LOST)
CALL(Pready, (int partition, MPI_Request request), (partition, request), AT_ONCE, NOTHING, KEPT)
CALL(Pready_list, (int length, const int array_of_partitions[], MPI_Request request), (length,
     array_of_partitions, request), AT_ONCE, NOTHING, KEPT)
CALL(Pready_range, (int partition_low, int partition_high, MPI_Request request), (partition_low,
     partition_high, request), AT_ONCE, NOTHING, KEPT)
CALL(Precv_init, (void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int
     tag, MPI_Comm comm, MPI_Info info, MPI_Request *request), (buf, partitions, count, datatype,
     dest, tag, comm, info, request), AT_ONCE, NOT_SENT(request), KEPT)
CALL(Probe, (int source, int tag, MPI_Comm comm, MPI_Status *status), (source, tag, comm, status),
     AT_ONCE, NOTHING, KEPT)
CALL(Psend_init, (const void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int
     dest, int tag, MPI_Comm comm, MPI_Info info, MPI_Request *request), (buf, partitions, count,
     datatype, dest, tag, comm, info, request), AT_ONCE, LATER(partitions * count, datatype, dest,
     comm, request), KEPT)
CALL(Recv, (void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
     MPI_Status *status), (buf, count, datatype, source, tag, comm, status), AWAIT_MESSAGE(source,
     tag, comm), OFFERED(count, datatype, source), KEPT)
CALL(Recv_init, (void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
     MPI_Request *request), (buf, count, datatype, source, tag, comm, request), AT_ONCE,
     NOT_SENT(request), KEPT)
CALL(Request_free, (MPI_Request *request), (request), LATER_GONE(request), NOTHING, KEPT)
CALL(Request_get_status, (MPI_Request request, int *flag, MPI_Status *status), (request, flag,
     status), AT_ONCE, NOTHING, LOST)
CALL(Rsend, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),
     (buf, count, datatype, dest, tag, comm), AT_ONCE, SENT(count, datatype, dest, comm), KEPT)
CALL(Rsend_init, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm
     comm, MPI_Request *request), (buf, count, datatype, dest, tag, comm, request), AT_ONCE,
     LATER(count, datatype, dest, comm, request), KEPT)
CALL(Send, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),
     (buf, count, datatype, dest, tag, comm), AT_ONCE, SENT(count, datatype, dest, comm), KEPT)
CALL(Send_init, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm
     comm, MPI_Request *request), (buf, count, datatype, dest, tag, comm, request), AT_ONCE,
     LATER(count, datatype, dest, comm, request), KEPT)
CALL(Sendrecv, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,
     void *recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm,
     MPI_Status *status), (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount,
     recvtype, source, recvtag, comm, status), AT_ONCE, SENT(sendcount, sendtype, dest, comm),
     KEPT)
CALL(Sendrecv_replace, (void *buf, int count, MPI_Datatype datatype, int dest, int sendtag, int
     source, int recvtag, MPI_Comm comm, MPI_Status *status), (buf, count, datatype, dest,
     sendtag, source, recvtag, comm, status), AT_ONCE, SENT(count, datatype, dest, comm), KEPT)
CALL(Ssend, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),
     (buf, count, datatype, dest, tag, comm), AT_ONCE, SENT(count, datatype, dest, comm), KEPT)
CALL(Ssend_init, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm
     comm, MPI_Request *request), (buf, count, datatype, dest, tag, comm, request), AT_ONCE,
     LATER(count, datatype, dest, comm, request), KEPT)
CALL(Start, (MPI_Request *request), (request), AT_ONCE, STARTED(1, request), KEPT)
CALL(Startall, (int count, MPI_Request array_of_requests[]), (count, array_of_requests), AT_ONCE,
     STARTED(count, array_of_requests), KEPT)
CALL(Test, (MPI_Request *request, int *flag, MPI_Status *status), (request, flag, status),
     AT_ONCE, NOTHING, KEPT)
CALL(Testall, (int count, MPI_Request array_of_requests[], int *flag, MPI_Status
     *array_of_statuses), (count, array_of_requests, flag, array_of_statuses), AT_ONCE, NOTHING,
     KEPT)
CALL(Testany, (int count, MPI_Request array_of_requests[], int *indx, int *flag, MPI_Status
     *status), (count, array_of_requests, indx, flag, status), AT_ONCE, NOTHING, KEPT)
CALL(Testsome, (int incount, MPI_Request array_of_requests[], int *outcount, int
     array_of_indices[], MPI_Status *array_of_statuses), (incount, array_of_requests, outcount,
     array_of_indices, array_of_statuses), AT_ONCE, NOTHING, KEPT)
CALL(Wait, (MPI_Request *request, MPI_Status *status), (request, status), AT_ONCE, NOTHING, KEPT)
CALL(Waitall, (int count, MPI_Request array_of_requests[], MPI_Status *array_of_statuses), (count,
     array_of_requests, array_of_statuses), AT_ONCE, NOTHING, KEPT)
CALL(Waitany, (int count, MPI_Request array_of_requests[], int *indx, MPI_Status *status), (count,
     array_of_requests, indx, status), AT_ONCE, NOTHING, KEPT)
CALL(Waitsome, (int incount, MPI_Request array_of_requests[], int *outcount, int
     array_of_indices[], MPI_Status *array_of_statuses), (incount, array_of_requests, outcount,
     array_of_indices, array_of_statuses), AT_ONCE, NOTHING, KEPT)
#ifndef OPEN_MPI
LARGE(Bsend, (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm
     comm), (buf, count, datatype, dest, tag, comm), AT_ONCE, SENT(count, datatype, dest, comm),
     KEPT)
LARGE(Bsend_init, (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
     MPI_Comm comm, MPI_Request *request), (buf, count, datatype, dest, tag, comm, request),
     AT_ONCE, LATER(count, datatype, dest, comm, request), KEPT)
LARGE(Buffer_attach, (void *buffer, MPI_Count size), (buffer, size), AT_ONCE, NOTHING, LOST)
LARGE(Buffer_detach, (void *buffer_addr, MPI_Count *size), (buffer_addr, size), AT_ONCE, NOTHING,
     LOST)
CALL(Buffer_flush, (void), (), AT_ONCE, NOTHING, LOST)
CALL(Buffer_iflush, (MPI_Request *request), (request), AT_ONCE, NOTHING, LOST)
LARGE(Ibsend, (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
     MPI_Comm comm, MPI_Request *request), (buf, count, datatype, dest, tag, comm, request),
     AT_ONCE, SENT(count, datatype, dest, comm), KEPT)
LARGE(Imrecv, (void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Message *message,
     MPI_Request *request), (buf, count, datatype, message, request), MATCHED(message),
     TAKEN_MESSAGE(count, datatype), KEPT)
LARGE(Irecv, (void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm
     comm, MPI_Request *request), (buf, count, datatype, source, tag, comm, request), AT_ONCE,
     OFFERED(count, datatype, source), KEPT)
LARGE(Irsend, (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
     MPI_Comm comm, MPI_Request *request), (buf, count, datatype, dest, tag, comm, request),
     AT_ONCE, SENT(count, datatype, dest, comm), KEPT)
LARGE(Isend, (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm
     comm, MPI_Request *request), (buf, count, datatype, dest, tag, comm, request), AT_ONCE,
     SENT(count, datatype, dest, comm), KEPT)
LARGE(Isendrecv, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int
     sendtag, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag,
     MPI_Comm comm, MPI_Request *request), (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf,
     recvcount, recvtype, source, recvtag, comm, request), AT_ONCE, SENT(sendcount, sendtype,
     dest, comm), KEPT)
LARGE(Isendrecv_replace, (void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int
     sendtag, int source, int recvtag, MPI_Comm comm, MPI_Request *request), (buf, count,
     datatype, dest, sendtag, source, recvtag, comm, request), AT_ONCE, SENT(count, datatype,
     dest, comm), KEPT)
LARGE(Issend, (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
     MPI_Comm comm, MPI_Request *request), (buf, count, datatype, dest, tag, comm, request),
     AT_ONCE, SENT(count, datatype, dest, comm), KEPT)
LARGE(Mrecv, (void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Message *message, MPI_Status
     *status), (buf, count, datatype, message, status), MATCHED(message), TAKEN_MESSAGE(count,
     datatype), KEPT)
LARGE(Recv, (void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm
     comm, MPI_Status *status), (buf, count, datatype, source, tag, comm, status),
     AWAIT_MESSAGE(source, tag, comm), OFFERED(count, datatype, source), KEPT)
LARGE(Recv_init, (void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm
     comm, MPI_Request *request), (buf, count, datatype, source, tag, comm, request), AT_ONCE,
     NOT_SENT(request), KEPT)
CALL(Request_get_status_all, (int count, const MPI_Request array_of_requests[], int *flag,
     MPI_Status *array_of_statuses), (count, array_of_requests, flag, array_of_statuses), AT_ONCE,
     NOTHING, LOST)
CALL(Request_get_status_any, (int count, const MPI_Request array_of_requests[], int *indx, int
     *flag, MPI_Status *status), (count, array_of_requests, indx, flag, status), AT_ONCE, NOTHING,
     LOST)
CALL(Request_get_status_some, (int incount, const MPI_Request array_of_requests[], int *outcount,
     int array_of_indices[], MPI_Status *array_of_statuses), (incount, array_of_requests,
     outcount, array_of_indices, array_of_statuses), AT_ONCE, NOTHING, LOST)
LARGE(Rsend, (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm
     comm), (buf, count, datatype, dest, tag, comm), AT_ONCE, SENT(count, datatype, dest, comm),
     KEPT)
LARGE(Rsend_init, (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
     MPI_Comm comm, MPI_Request *request), (buf, count, datatype, dest, tag, comm, request),
     AT_ONCE, LATER(count, datatype, dest, comm, request), KEPT)
LARGE(Send, (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm
     comm), (buf, count, datatype, dest, tag, comm), AT_ONCE, SENT(count, datatype, dest, comm),
     KEPT)
LARGE(Send_init, (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
     MPI_Comm comm, MPI_Request *request), (buf, count, datatype, dest, tag, comm, request),
     AT_ONCE, LATER(count, datatype, dest, comm, request), KEPT)
LARGE(Sendrecv, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int
     sendtag, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag,
     MPI_Comm comm, MPI_Status *status), (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf,
     recvcount, recvtype, source, recvtag, comm, status), AT_ONCE, SENT(sendcount, sendtype, dest,
     comm), KEPT)
LARGE(Sendrecv_replace, (void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int sendtag,
     int source, int recvtag, MPI_Comm comm, MPI_Status *status), (buf, count, datatype, dest,
     sendtag, source, recvtag, comm, status), AT_ONCE, SENT(count, datatype, dest, comm), KEPT)
LARGE(Ssend, (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm
     comm), (buf, count, datatype, dest, tag, comm), AT_ONCE, SENT(count, datatype, dest, comm),
     KEPT)
LARGE(Ssend_init, (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
     MPI_Comm comm, MPI_Request *request), (buf, count, datatype, dest, tag, comm, request),
     AT_ONCE, LATER(count, datatype, dest, comm, request), KEPT)
#endif
