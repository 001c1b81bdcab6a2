! The calls of calls.c, in the same order, with one of three bindings: -DBINDING=1 is mpif.h, 2 is
! `use mpi`, 3 is `use mpi_f08`.
#if BINDING == 3
#define STATUS(name) type(MPI_Status) :: name
#define STATUSES(name, number) type(MPI_Status) :: name(number)
#else
#define STATUS(name) integer :: name(MPI_STATUS_SIZE)
#define STATUSES(name, number) integer :: name(MPI_STATUS_SIZE, number)
#endif

module calls
#if BINDING == 2
  use mpi
#elif BINDING == 3
  use mpi_f08
#endif
  implicit none
#if BINDING == 1
  include 'mpif.h'
#endif
  integer, parameter :: N = 8, RANKS = 64
  integer :: rank, size, peer, ierr, wrong = 0
  integer, asynchronous :: a(N), b(N), all(N * RANKS), more(N * RANKS)
  integer :: counts(RANKS), starts(RANKS), bytes(RANKS)
#if BINDING == 3
  type(MPI_Datatype) :: types(RANKS)
#else
  integer :: types(RANKS)
#endif

contains

  subroutine check(is, due)
    integer, intent(in) :: is, due
    if (is /= due) wrong = wrong + 1
  end subroutine

  subroutine messages()
    character, asynchronous :: space(N * 4 + MPI_BSEND_OVERHEAD)
    STATUS(info)
#if BINDING == 3
    type(MPI_Request) :: request
    type(MPI_Message) :: message
#else
    integer :: request, message
#endif
    integer :: count, length
    logical :: flag
    if (mod(rank, 2) == 0) then
      call MPI_Send(a, N, MPI_INTEGER, peer, 1, MPI_COMM_WORLD, ierr)
      call MPI_Ssend(a, N, MPI_INTEGER, peer, 2, MPI_COMM_WORLD, ierr)
      length = N * 4 + MPI_BSEND_OVERHEAD
      call MPI_Buffer_attach(space, length, ierr)
      call MPI_Bsend(a, N, MPI_INTEGER, peer, 3, MPI_COMM_WORLD, ierr)
      call detach(length)
      call MPI_Send(a, 0, MPI_INTEGER, peer, 4, MPI_COMM_WORLD, ierr)
      call MPI_Send(a, N, MPI_INTEGER, peer, 5, MPI_COMM_WORLD, ierr)
    else
      call MPI_Recv(b, N, MPI_INTEGER, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      call MPI_Recv(b, N, MPI_INTEGER, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, info, ierr)
      call MPI_Get_count(info, MPI_INTEGER, count, ierr)
      call check(count, N)
      call MPI_Probe(peer, 3, MPI_COMM_WORLD, info, ierr)
      call MPI_Recv(b, N, MPI_INTEGER, peer, 3, MPI_COMM_WORLD, info, ierr)
      call MPI_Recv(b, 0, MPI_INTEGER, peer, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      call MPI_Mprobe(peer, 5, MPI_COMM_WORLD, message, info, ierr)
      call MPI_Mrecv(b, N, MPI_INTEGER, message, MPI_STATUS_IGNORE, ierr)
      call check(b(1), peer)
    end if
    call MPI_Send(a, N, MPI_INTEGER, MPI_PROC_NULL, 1, MPI_COMM_WORLD, ierr)
    call MPI_Recv(b, N, MPI_INTEGER, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call MPI_Iprobe(peer, 99, MPI_COMM_WORLD, flag, MPI_STATUS_IGNORE, ierr)
    call MPI_Sendrecv(a, N, MPI_INTEGER, peer, 6, b, N, MPI_INTEGER, peer, 6, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE, ierr)
    call check(b(1), peer)
    call MPI_Sendrecv_replace(b, N, MPI_INTEGER, peer, 7, peer, 7, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE, ierr)
    call check(b(1), rank)
    call MPI_Irecv(b, N, MPI_INTEGER, peer, 8, MPI_COMM_WORLD, request, ierr)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Rsend(a, N, MPI_INTEGER, peer, 8, MPI_COMM_WORLD, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call check(b(1), peer)
  end subroutine

  subroutine detach(length)
    integer, intent(out) :: length
#if BINDING == 3
    block
      use, intrinsic :: iso_c_binding, only: c_ptr
      type(c_ptr) :: back
      call MPI_Buffer_detach(back, length, ierr)
    end block
#else
    character :: back(8)
    call MPI_Buffer_detach(back, length, ierr)
#endif
  end subroutine

  subroutine requests()
#if BINDING == 3
    type(MPI_Request) :: request(4)
#else
    integer :: request(4)
#endif
    STATUSES(info, 4)
    STATUS(one)
    integer :: i, index, done, indices(4)
    logical :: flag
    do i = 0, 1
      call MPI_Irecv(all(1 + i * N), N, MPI_INTEGER, peer, i, MPI_COMM_WORLD, request(1 + i), ierr)
      call MPI_Isend(a, N, MPI_INTEGER, peer, i, MPI_COMM_WORLD, request(3 + i), ierr)
    end do
    call MPI_Waitall(4, request, MPI_STATUSES_IGNORE, ierr)
    call MPI_Irecv(b, N, MPI_INTEGER, peer, 1, MPI_COMM_WORLD, request(1), ierr)
    call MPI_Issend(a, N, MPI_INTEGER, peer, 1, MPI_COMM_WORLD, request(2), ierr)
    call MPI_Waitany(2, request, index, MPI_STATUS_IGNORE, ierr)
    call MPI_Waitany(2, request, index, one, ierr)
    call MPI_Irecv(b, N, MPI_INTEGER, peer, 2, MPI_COMM_WORLD, request(1), ierr)
    call MPI_Isend(a, N, MPI_INTEGER, peer, 2, MPI_COMM_WORLD, request(2), ierr)
    call MPI_Waitsome(2, request, done, indices, MPI_STATUSES_IGNORE, ierr)
    call MPI_Waitall(2, request, MPI_STATUSES_IGNORE, ierr)
    call MPI_Irecv(b, N, MPI_INTEGER, peer, 3, MPI_COMM_WORLD, request(1), ierr)
    call MPI_Isend(a, N, MPI_INTEGER, peer, 3, MPI_COMM_WORLD, request(2), ierr)
    call MPI_Test(request(1), flag, MPI_STATUS_IGNORE, ierr)
    call MPI_Testany(2, request, index, flag, MPI_STATUS_IGNORE, ierr)
    call MPI_Testsome(2, request, done, indices, MPI_STATUSES_IGNORE, ierr)
    call MPI_Testall(2, request, flag, MPI_STATUSES_IGNORE, ierr)
    call MPI_Waitall(2, request, info, ierr)
    call check(b(1), peer)
    call MPI_Recv_init(b, N, MPI_INTEGER, peer, 4, MPI_COMM_WORLD, request(1), ierr)
    call MPI_Send_init(a, N, MPI_INTEGER, peer, 4, MPI_COMM_WORLD, request(2), ierr)
    do i = 1, 3
      call MPI_Startall(2, request, ierr)
      call MPI_Waitall(2, request, MPI_STATUSES_IGNORE, ierr)
    end do
    call MPI_Start(request(1), ierr)
    call MPI_Start(request(2), ierr)
    call MPI_Wait(request(1), MPI_STATUS_IGNORE, ierr)
    call MPI_Wait(request(2), one, ierr)
    call MPI_Request_free(request(1), ierr)
    call MPI_Request_free(request(2), ierr)
  end subroutine

  subroutine collectives()
    integer :: mine
    mine = counts(rank + 1)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Bcast(b, N, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
    call MPI_Gather(a, N, MPI_INTEGER, all, N, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
    call MPI_Gatherv(a, mine, MPI_INTEGER, all, counts, starts, MPI_INTEGER, 0, &
      MPI_COMM_WORLD, ierr)
    call MPI_Scatter(all, N, MPI_INTEGER, b, N, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
    call MPI_Scatterv(all, counts, starts, MPI_INTEGER, b, mine, MPI_INTEGER, 0, &
      MPI_COMM_WORLD, ierr)
    call MPI_Allgather(a, N, MPI_INTEGER, all, N, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    call check(all(1 + N * peer), peer)
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, N, MPI_INTEGER, &
      MPI_COMM_WORLD, ierr)
    call check(all(1 + N * peer), peer)
    call MPI_Allgatherv(a, mine, MPI_INTEGER, all, counts, starts, MPI_INTEGER, &
      MPI_COMM_WORLD, ierr)
    call MPI_Alltoall(more, N, MPI_INTEGER, all, N, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, N, MPI_INTEGER, &
      MPI_COMM_WORLD, ierr)
    call MPI_Alltoallv(more, counts, starts, MPI_INTEGER, all, counts, starts, MPI_INTEGER, &
      MPI_COMM_WORLD, ierr)
    call MPI_Alltoallw(more, counts, bytes, types, all, counts, bytes, types, &
      MPI_COMM_WORLD, ierr)
    call MPI_Reduce(a, b, N, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
    call MPI_Allreduce(a, b, N, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    call check(b(1), size * (size - 1) / 2)
    call MPI_Allreduce(MPI_IN_PLACE, b, N, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierr)
    call check(b(1), size * (size - 1) / 2)
    call MPI_Reduce_scatter(all, b, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    call MPI_Reduce_scatter_block(all, b, N, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    call MPI_Scan(a, b, N, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    call MPI_Exscan(a, b, N, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    call MPI_Reduce_local(a, b, N, MPI_INTEGER, MPI_SUM, ierr)
  end subroutine

#if BINDING == 3
  subroutine finish(r)
    type(MPI_Request), intent(inout) :: r
#else
  subroutine finish(r)
    integer, intent(inout) :: r
#endif
    call MPI_Wait(r, MPI_STATUS_IGNORE, ierr)
  end subroutine

  subroutine nonblocking_collectives()
#if BINDING == 3
    type(MPI_Request) :: r
#else
    integer :: r
#endif
    integer :: mine
    mine = counts(rank + 1)
    call MPI_Ibarrier(MPI_COMM_WORLD, r, ierr)
    call finish(r)
    call MPI_Ibcast(b, N, MPI_INTEGER, 0, MPI_COMM_WORLD, r, ierr)
    call finish(r)
    call MPI_Igather(a, N, MPI_INTEGER, all, N, MPI_INTEGER, 0, MPI_COMM_WORLD, r, ierr)
    call finish(r)
    call MPI_Igatherv(a, mine, MPI_INTEGER, all, counts, starts, MPI_INTEGER, 0, &
      MPI_COMM_WORLD, r, ierr)
    call finish(r)
    call MPI_Iscatter(all, N, MPI_INTEGER, b, N, MPI_INTEGER, 0, MPI_COMM_WORLD, r, ierr)
    call finish(r)
    call MPI_Iscatterv(all, counts, starts, MPI_INTEGER, b, mine, MPI_INTEGER, 0, &
      MPI_COMM_WORLD, r, ierr)
    call finish(r)
    call MPI_Iallgather(a, N, MPI_INTEGER, all, N, MPI_INTEGER, MPI_COMM_WORLD, r, ierr)
    call finish(r)
    call check(all(1 + N * peer), peer)
    call MPI_Iallgatherv(a, mine, MPI_INTEGER, all, counts, starts, MPI_INTEGER, &
      MPI_COMM_WORLD, r, ierr)
    call finish(r)
    call MPI_Ialltoall(more, N, MPI_INTEGER, all, N, MPI_INTEGER, MPI_COMM_WORLD, r, ierr)
    call finish(r)
    call MPI_Ialltoallv(more, counts, starts, MPI_INTEGER, all, counts, starts, MPI_INTEGER, &
      MPI_COMM_WORLD, r, ierr)
    call finish(r)
    call MPI_Ialltoallw(more, counts, bytes, types, all, counts, bytes, types, &
      MPI_COMM_WORLD, r, ierr)
    call finish(r)
    call MPI_Ireduce(a, b, N, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, r, ierr)
    call finish(r)
    call MPI_Iallreduce(a, b, N, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, r, ierr)
    call finish(r)
    call check(b(1), size * (size - 1) / 2)
    call MPI_Ireduce_scatter(all, b, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, r, ierr)
    call finish(r)
    call MPI_Ireduce_scatter_block(all, b, N, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, r, ierr)
    call finish(r)
    call MPI_Iscan(a, b, N, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, r, ierr)
    call finish(r)
    call MPI_Iexscan(a, b, N, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, r, ierr)
    call finish(r)
  end subroutine

  subroutine one_sided()
#if BINDING == 3
    type(MPI_Win) :: window
    type(MPI_Group) :: world, other
    type(MPI_Request) :: request
#else
    integer :: window, world, other, request
#endif
    integer(MPI_ADDRESS_KIND) :: zero, length
    integer, asynchronous :: one, old
    integer :: i, only(1)
    zero = 0
    one = 1
    old = 0
    length = N * RANKS * 4
    only = peer
    call MPI_Win_create(all, length, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window, ierr)
    call MPI_Win_fence(0, window, ierr)
    call MPI_Put(a, N, MPI_INTEGER, peer, zero, N, MPI_INTEGER, window, ierr)
    call MPI_Win_fence(0, window, ierr)
    call check(all(1), peer)
    call MPI_Get(b, N, MPI_INTEGER, peer, zero, N, MPI_INTEGER, window, ierr)
    call MPI_Win_fence(0, window, ierr)
    call check(b(1), rank)
    call MPI_Accumulate(a, N, MPI_INTEGER, peer, zero, N, MPI_INTEGER, MPI_SUM, window, ierr)
    call MPI_Win_fence(0, window, ierr)
    do i = 1, 2
      call MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, window, ierr)
      call MPI_Fetch_and_op(one, old, MPI_INTEGER, peer, zero, MPI_SUM, window, ierr)
      call MPI_Win_flush(peer, window, ierr)
      call MPI_Compare_and_swap(one, one, old, MPI_INTEGER, peer, zero, window, ierr)
      call MPI_Win_unlock(peer, window, ierr)
    end do
    call MPI_Win_lock_all(0, window, ierr)
    call MPI_Get_accumulate(a, N, MPI_INTEGER, b, N, MPI_INTEGER, peer, zero, N, MPI_INTEGER, &
      MPI_SUM, window, ierr)
    call MPI_Rput(a, N, MPI_INTEGER, peer, zero, N, MPI_INTEGER, window, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call MPI_Rget(b, N, MPI_INTEGER, peer, zero, N, MPI_INTEGER, window, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call MPI_Win_flush_local(peer, window, ierr)
    call MPI_Win_flush_all(window, ierr)
    call MPI_Win_sync(window, ierr)
    call MPI_Win_unlock_all(window, ierr)
    call MPI_Comm_group(MPI_COMM_WORLD, world, ierr)
    call MPI_Group_incl(world, 1, only, other, ierr)
    call MPI_Win_post(other, 0, window, ierr)
    call MPI_Win_start(other, 0, window, ierr)
    call MPI_Put(a, N, MPI_INTEGER, peer, zero, N, MPI_INTEGER, window, ierr)
    call MPI_Win_complete(window, ierr)
    call MPI_Win_wait(window, ierr)
    call check(all(1), peer)
    call MPI_Win_free(window, ierr)
    call MPI_Group_free(other, ierr)
    call MPI_Group_free(world, ierr)
  end subroutine

  subroutine communicators()
#if BINDING == 3
    type(MPI_Comm) :: twin, half, part, grid, line
    type(MPI_Group) :: world, first
    type(MPI_Request) :: request
#else
    integer :: twin, half, part, grid, line, world, first, request
#endif
    integer :: sides(2), place(2), none(1), from, to, i, r
    logical :: periods(2), keep(2)
    sides = 0
    none = 0
    periods = .true.
    keep = [.false., .true.]
    call MPI_Comm_dup(MPI_COMM_WORLD, twin, ierr)
    call MPI_Comm_free(twin, ierr)
    call MPI_Comm_idup(MPI_COMM_WORLD, twin, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call MPI_Comm_split(twin, mod(rank, 2), rank, half, ierr)
    call MPI_Allreduce(a, b, N, MPI_INTEGER, MPI_SUM, half, ierr)
    call MPI_Comm_size(half, i, ierr)
    call check(i, size / 2)
    call MPI_Comm_split_type(twin, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, part, ierr)
    call MPI_Comm_free(part, ierr)
    call MPI_Comm_group(twin, world, ierr)
    call MPI_Group_incl(world, 1, none, first, ierr)
    call MPI_Comm_create(twin, first, part, ierr)
    if (part /= MPI_COMM_NULL) then
      call MPI_Barrier(part, ierr)
      call MPI_Comm_free(part, ierr)
    end if
    call MPI_Group_free(first, ierr)
    call MPI_Group_free(world, ierr)
    call MPI_Dims_create(size, 2, sides, ierr)
    call MPI_Cart_create(twin, 2, sides, periods, .false., grid, ierr)
    call MPI_Comm_rank(grid, r, ierr)
    call MPI_Cart_coords(grid, r, 2, place, ierr)
    call MPI_Cart_rank(grid, place, i, ierr)
    call check(i, r)
    call MPI_Cart_shift(grid, 0, 1, from, to, ierr)
    call MPI_Sendrecv(a, N, MPI_INTEGER, to, 1, b, N, MPI_INTEGER, from, 1, grid, &
      MPI_STATUS_IGNORE, ierr)
    call check(b(1), from)
    call MPI_Neighbor_allgather(a, N, MPI_INTEGER, all, N, MPI_INTEGER, grid, ierr)
    call MPI_Neighbor_alltoall(more, N, MPI_INTEGER, all, N, MPI_INTEGER, grid, ierr)
    call MPI_Cart_sub(grid, keep, line, ierr)
    call MPI_Barrier(line, ierr)
    call MPI_Comm_free(line, ierr)
    call MPI_Comm_free(grid, ierr)
    call MPI_Comm_free(half, ierr)
    call MPI_Comm_free(twin, ierr)
  end subroutine

  subroutine datatypes()
#if BINDING == 3
    type(MPI_Datatype) :: row, column, some, field, wide, fixed
#else
    integer :: row, column, some, field, wide, fixed
#endif
    integer(MPI_ADDRESS_KIND) :: place(1), zero, extent
    integer :: lengths(2), at(2), whole(2), part(2), from(2), position, length
    character, asynchronous :: packed(256)
    lengths = [1, 2]
    at = [0, 3]
    whole = [4, 2]
    part = [2, 1]
    from = [1, 0]
    position = 0
    zero = 0
    extent = 12
    call MPI_Type_contiguous(N, MPI_INTEGER, row, ierr)
    call MPI_Type_commit(row, ierr)
    call MPI_Type_vector(4, 1, 2, MPI_INTEGER, column, ierr)
    call MPI_Type_commit(column, ierr)
    call MPI_Type_indexed(2, lengths, at, MPI_INTEGER, some, ierr)
    call MPI_Type_commit(some, ierr)
    call MPI_Type_create_subarray(2, whole, part, from, MPI_ORDER_C, MPI_INTEGER, field, ierr)
    call MPI_Type_commit(field, ierr)
    call MPI_Type_create_resized(MPI_INTEGER, zero, extent, wide, ierr)
    call MPI_Type_commit(wide, ierr)
    call MPI_Type_size(some, length, ierr)
    call check(length, 12)
    call MPI_Sendrecv(a, 1, row, peer, 1, b, N, MPI_INTEGER, peer, 1, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE, ierr)
    call check(b(N), peer)
    call MPI_Sendrecv(a, 1, column, peer, 2, b, 1, column, peer, 2, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE, ierr)
    call MPI_Sendrecv(a, 1, some, peer, 3, b, 1, some, peer, 3, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE, ierr)
    call MPI_Sendrecv(a, 1, field, peer, 4, b, 1, field, peer, 4, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE, ierr)
    call MPI_Sendrecv(a, 2, wide, peer, 5, b, 2, wide, peer, 5, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE, ierr)
    call MPI_Get_address(b, place(1), ierr)
    lengths(1) = N
    call MPI_Type_create_hindexed(1, lengths, place, MPI_INTEGER, fixed, ierr)
    call MPI_Type_commit(fixed, ierr)
    call MPI_Sendrecv(a, N, MPI_INTEGER, peer, 6, MPI_BOTTOM, 1, fixed, peer, 6, &
      MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call check(b(1), peer)
    call MPI_Bcast(MPI_BOTTOM, 1, fixed, 0, MPI_COMM_WORLD, ierr)
    call MPI_Pack_size(N, MPI_INTEGER, MPI_COMM_WORLD, length, ierr)
    call MPI_Pack(a, N, MPI_INTEGER, packed, 256, position, MPI_COMM_WORLD, ierr)
    call MPI_Sendrecv_replace(packed, position, MPI_PACKED, peer, 7, peer, 7, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE, ierr)
    length = position
    position = 0
    call MPI_Unpack(packed, length, position, b, N, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    call check(b(1), peer)
    call MPI_Type_free(fixed, ierr)
    call MPI_Type_free(wide, ierr)
    call MPI_Type_free(field, ierr)
    call MPI_Type_free(some, ierr)
    call MPI_Type_free(column, ierr)
    call MPI_Type_free(row, ierr)
  end subroutine
end module

program main
  use calls
  implicit none
  integer :: i
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  peer = ieor(rank, 1)
  a = rank
  b = 0
  all = 0
  more = 0
  do i = 1, size
    counts(i) = 2
    starts(i) = N * (i - 1)
    bytes(i) = N * (i - 1) * 4
    types(i) = MPI_INTEGER
  end do
  call messages()
  call requests()
  call collectives()
  call nonblocking_collectives()
  call one_sided()
  call communicators()
  call datatypes()
  call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (rank == 0) then
    if (wrong == 0) then
      print '(a)', 'ok'
    else
      print '(a)', 'wrong'
    end if
  end if
  call MPI_Finalize(ierr)
  if (wrong /= 0) stop 1
end program
