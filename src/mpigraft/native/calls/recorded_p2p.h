/* Made by tools/write_calls.py of MPICH's mpi_proto.h: not to be edited. */
#define FIELDS_Bsend "aitrkc"
#define IN_Bsend \
    put_address(buf); put_integer((int64_t)(count)); put_known_handle(TYPE, KEY(datatype)); \
    put_rank(dest); put_tag(tag); put_known_handle(COMM, KEY(comm));
#define OUT_Bsend
#define FIELDS_Bsend_init "aitrkcH"
#define IN_Bsend_init \
    put_address(buf); put_integer((int64_t)(count)); put_known_handle(TYPE, KEY(datatype)); \
    put_rank(dest); put_tag(tag); put_known_handle(COMM, KEY(comm));
#define OUT_Bsend_init put_new(REQUEST, KEY(*request));
#define FIELDS_Cancel "q"
#define IN_Cancel put_cancelled(KEY(*request));
#define OUT_Cancel
#define FIELDS_Ibsend "aitrkcH"
#define IN_Ibsend \
    put_address(buf); put_integer((int64_t)(count)); put_known_handle(TYPE, KEY(datatype)); \
    put_rank(dest); put_tag(tag); put_known_handle(COMM, KEY(comm));
#define OUT_Ibsend put_new(REQUEST, KEY(*request));
#define FIELDS_Improbe "rkcGz"
#define IN_Improbe \
    put_rank(source); put_tag(tag); put_known_handle(COMM, KEY(comm)); OWN_STATUS(status);
#define OUT_Improbe \
    event.poll = !*flag; if (!event.poll) { put_new(MESSAGE, KEY(*message)); \
    put_matched(status); }
#define FIELDS_Imrecv "aitmH"
#define IN_Imrecv \
    put_address(buf); put_integer((int64_t)(count)); put_known_handle(TYPE, KEY(datatype)); \
    put_last(MESSAGE, KEY(*message));
#define OUT_Imrecv put_new(REQUEST, KEY(*request));
#define FIELDS_Iprobe "rkcz"
#define IN_Iprobe \
    put_rank(source); put_tag(tag); put_known_handle(COMM, KEY(comm)); OWN_STATUS(status);
#define OUT_Iprobe event.poll = !*flag; if (!event.poll) { put_matched(status); }
#define FIELDS_Irecv "aitrkcH"
#define IN_Irecv \
    put_address(buf); put_integer((int64_t)(count)); put_known_handle(TYPE, KEY(datatype)); \
    put_rank(source); put_tag(tag); put_known_handle(COMM, KEY(comm));
#define OUT_Irecv put_new(REQUEST, KEY(*request));
#define FIELDS_Irsend "aitrkcH"
#define IN_Irsend \
    put_address(buf); put_integer((int64_t)(count)); put_known_handle(TYPE, KEY(datatype)); \
    put_rank(dest); put_tag(tag); put_known_handle(COMM, KEY(comm));
#define OUT_Irsend put_new(REQUEST, KEY(*request));
#define FIELDS_Isend "aitrkcH"
#define IN_Isend \
    put_address(buf); put_integer((int64_t)(count)); put_known_handle(TYPE, KEY(datatype)); \
    put_rank(dest); put_tag(tag); put_known_handle(COMM, KEY(comm));
#define OUT_Isend put_new(REQUEST, KEY(*request));
#define FIELDS_Isendrecv "aitrkaitrkcH"
#define IN_Isendrecv \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_rank(dest); put_tag(sendtag); \
    put_address(recvbuf); put_integer((int64_t)(recvcount)); \
    put_known_handle(TYPE, KEY(recvtype)); put_rank(source); put_tag(recvtag); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Isendrecv put_new(REQUEST, KEY(*request));
#define FIELDS_Isendrecv_replace "aitrkrkcH"
#define IN_Isendrecv_replace \
    put_address(buf); put_integer((int64_t)(count)); put_known_handle(TYPE, KEY(datatype)); \
    put_rank(dest); put_tag(sendtag); put_rank(source); put_tag(recvtag); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Isendrecv_replace put_new(REQUEST, KEY(*request));
#define FIELDS_Issend "aitrkcH"
#define IN_Issend \
    put_address(buf); put_integer((int64_t)(count)); put_known_handle(TYPE, KEY(datatype)); \
    put_rank(dest); put_tag(tag); put_known_handle(COMM, KEY(comm));
#define OUT_Issend put_new(REQUEST, KEY(*request));
#define FIELDS_Mprobe "rkcGz"
#define IN_Mprobe \
    put_rank(source); put_tag(tag); put_known_handle(COMM, KEY(comm)); OWN_STATUS(status);
#define OUT_Mprobe put_new(MESSAGE, KEY(*message)); put_matched(status);
#define FIELDS_Mrecv "aitm"
#define IN_Mrecv \
    put_address(buf); put_integer((int64_t)(count)); put_known_handle(TYPE, KEY(datatype)); \
    put_last(MESSAGE, KEY(*message));
#define OUT_Mrecv
#define FIELDS_Pready "iq"
#define IN_Pready put_integer((int64_t)(partition)); put_known_handle(REQUEST, KEY(request));
#define OUT_Pready
#define FIELDS_Pready_list "iIq"
#define IN_Pready_list \
    put_integer((int64_t)(length)); PUT_INTEGERS(array_of_partitions, length); \
    put_known_handle(REQUEST, KEY(request));
#define OUT_Pready_list
#define FIELDS_Pready_range "iiq"
#define IN_Pready_range \
    put_integer((int64_t)(partition_low)); put_integer((int64_t)(partition_high)); \
    put_known_handle(REQUEST, KEY(request));
#define OUT_Pready_range
#define FIELDS_Precv_init "aiitrkcH"
#define IN_Precv_init \
    put_address(buf); put_integer((int64_t)(partitions)); put_integer((int64_t)(count)); \
    put_known_handle(TYPE, KEY(datatype)); put_rank(dest); put_tag(tag); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Precv_init put_new(REQUEST, KEY(*request));
#define FIELDS_Probe "rkcz"
#define IN_Probe \
    put_rank(source); put_tag(tag); put_known_handle(COMM, KEY(comm)); OWN_STATUS(status);
#define OUT_Probe put_matched(status);
#define FIELDS_Psend_init "aiitrkcH"
#define IN_Psend_init \
    put_address(buf); put_integer((int64_t)(partitions)); put_integer((int64_t)(count)); \
    put_known_handle(TYPE, KEY(datatype)); put_rank(dest); put_tag(tag); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Psend_init put_new(REQUEST, KEY(*request));
#define FIELDS_Recv "aitrkcz"
#define IN_Recv \
    put_address(buf); put_integer((int64_t)(count)); put_known_handle(TYPE, KEY(datatype)); \
    put_rank(source); put_tag(tag); put_known_handle(COMM, KEY(comm)); OWN_STATUS(status);
#define OUT_Recv put_matched(status);
#define FIELDS_Recv_init "aitrkcH"
#define IN_Recv_init \
    put_address(buf); put_integer((int64_t)(count)); put_known_handle(TYPE, KEY(datatype)); \
    put_rank(source); put_tag(tag); put_known_handle(COMM, KEY(comm));
#define OUT_Recv_init put_new(REQUEST, KEY(*request));
#define FIELDS_Request_free "q"
#define IN_Request_free put_last(REQUEST, KEY(*request));
#define OUT_Request_free
#define FIELDS_Rsend "aitrkc"
#define IN_Rsend \
    put_address(buf); put_integer((int64_t)(count)); put_known_handle(TYPE, KEY(datatype)); \
    put_rank(dest); put_tag(tag); put_known_handle(COMM, KEY(comm));
#define OUT_Rsend
#define FIELDS_Rsend_init "aitrkcH"
#define IN_Rsend_init \
    put_address(buf); put_integer((int64_t)(count)); put_known_handle(TYPE, KEY(datatype)); \
    put_rank(dest); put_tag(tag); put_known_handle(COMM, KEY(comm));
#define OUT_Rsend_init put_new(REQUEST, KEY(*request));
#define FIELDS_Send "aitrkc"
#define IN_Send \
    put_address(buf); put_integer((int64_t)(count)); put_known_handle(TYPE, KEY(datatype)); \
    put_rank(dest); put_tag(tag); put_known_handle(COMM, KEY(comm));
#define OUT_Send
#define FIELDS_Send_init "aitrkcH"
#define IN_Send_init \
    put_address(buf); put_integer((int64_t)(count)); put_known_handle(TYPE, KEY(datatype)); \
    put_rank(dest); put_tag(tag); put_known_handle(COMM, KEY(comm));
#define OUT_Send_init put_new(REQUEST, KEY(*request));
#define FIELDS_Sendrecv "aitrkaitrkcz"
#define IN_Sendrecv \
    put_address(sendbuf); put_integer((int64_t)(sendcount)); \
    put_known_handle(TYPE, KEY(sendtype)); put_rank(dest); put_tag(sendtag); \
    put_address(recvbuf); put_integer((int64_t)(recvcount)); \
    put_known_handle(TYPE, KEY(recvtype)); put_rank(source); put_tag(recvtag); \
    put_known_handle(COMM, KEY(comm)); OWN_STATUS(status);
#define OUT_Sendrecv put_matched(status);
#define FIELDS_Sendrecv_replace "aitrkrkcz"
#define IN_Sendrecv_replace \
    put_address(buf); put_integer((int64_t)(count)); put_known_handle(TYPE, KEY(datatype)); \
    put_rank(dest); put_tag(sendtag); put_rank(source); put_tag(recvtag); \
    put_known_handle(COMM, KEY(comm)); OWN_STATUS(status);
#define OUT_Sendrecv_replace put_matched(status);
#define FIELDS_Ssend "aitrkc"
#define IN_Ssend \
    put_address(buf); put_integer((int64_t)(count)); put_known_handle(TYPE, KEY(datatype)); \
    put_rank(dest); put_tag(tag); put_known_handle(COMM, KEY(comm));
#define OUT_Ssend
#define FIELDS_Ssend_init "aitrkcH"
#define IN_Ssend_init \
    put_address(buf); put_integer((int64_t)(count)); put_known_handle(TYPE, KEY(datatype)); \
    put_rank(dest); put_tag(tag); put_known_handle(COMM, KEY(comm));
#define OUT_Ssend_init put_new(REQUEST, KEY(*request));
#define FIELDS_Start "q"
#define IN_Start put_known_handle(REQUEST, KEY(*request));
#define OUT_Start
#define FIELDS_Startall "iQ"
#define IN_Startall put_integer((int64_t)(count)); PUT_REQUESTS(count, array_of_requests);
#define OUT_Startall
#define FIELDS_Test "QZ"
#define IN_Test PUT_PENDING(1, request); OWN_STATUS(status);
#define OUT_Test \
    event.poll = !*flag || !event.pending.any; put_completed(request, *flag != 0, status);
#define FIELDS_Testall "iQZ"
#define IN_Testall \
    put_integer((int64_t)(count)); PUT_PENDING(count, array_of_requests); OWN_STATUSES(count);
#define OUT_Testall \
    event.poll = !*flag || !event.pending.any; \
    put_completed(array_of_requests, *flag ? count : 0, array_of_statuses);
#define FIELDS_Testany "iQxZ"
#define IN_Testany \
    put_integer((int64_t)(count)); PUT_PENDING(count, array_of_requests); OWN_STATUS(status);
#define OUT_Testany \
    event.poll = !*flag || *indx == MPI_UNDEFINED; \
    put_any(array_of_requests, !event.poll, indx, status);
#define FIELDS_Testsome "iQXZ"
#define IN_Testsome \
    put_integer((int64_t)(incount)); PUT_PENDING(incount, array_of_requests); \
    OWN_STATUSES(incount);
#define OUT_Testsome \
    event.poll = *outcount <= 0; \
    put_some(array_of_requests, event.poll ? 0 : *outcount, array_of_indices, array_of_statuses);
#define FIELDS_Wait "QZ"
#define IN_Wait PUT_PENDING(1, request); OWN_STATUS(status);
#define OUT_Wait put_completed(request, 1, status);
#define FIELDS_Waitall "iQZ"
#define IN_Waitall \
    put_integer((int64_t)(count)); PUT_PENDING(count, array_of_requests); OWN_STATUSES(count);
#define OUT_Waitall put_completed(array_of_requests, count, array_of_statuses);
#define FIELDS_Waitany "iQxZ"
#define IN_Waitany \
    put_integer((int64_t)(count)); PUT_PENDING(count, array_of_requests); OWN_STATUS(status);
#define OUT_Waitany put_any(array_of_requests, *indx != MPI_UNDEFINED, indx, status);
#define FIELDS_Waitsome "iQXZ"
#define IN_Waitsome \
    put_integer((int64_t)(incount)); PUT_PENDING(incount, array_of_requests); \
    OWN_STATUSES(incount);
#define OUT_Waitsome \
    put_some(array_of_requests, *outcount < 0 ? 0 : *outcount, array_of_indices, array_of_statuses);
