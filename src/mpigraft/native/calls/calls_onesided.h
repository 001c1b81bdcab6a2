/* Made by tools/write_calls.py of MPICH's mpi_proto.h: not to be edited. */
CALL(Accumulate, (const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int
     target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op,
     MPI_Win win), (origin_addr, origin_count, origin_datatype, target_rank, target_disp,
     target_count, target_datatype, op, win), AT_ONCE, ONE_SIDED(origin_count, origin_datatype,
     target_rank, win), KEPT)
CALL(Compare_and_swap, (const void *origin_addr, const void *compare_addr, void *result_addr,
     MPI_Datatype datatype, int target_rank, MPI_Aint target_disp, MPI_Win win), (origin_addr,
     compare_addr, result_addr, datatype, target_rank, target_disp, win), AT_ONCE, ONE_SIDED(1,
     datatype, target_rank, win), KEPT)
CALL(Fetch_and_op, (const void *origin_addr, void *result_addr, MPI_Datatype datatype, int
     target_rank, MPI_Aint target_disp, MPI_Op op, MPI_Win win), (origin_addr, result_addr,
     datatype, target_rank, target_disp, op, win), AT_ONCE, ONE_SIDED(1, datatype, target_rank,
     win), KEPT)
CALL(Get, (void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
     MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win),
     (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
     target_datatype, win), AT_ONCE, ONE_SIDED(origin_count, origin_datatype, target_rank, win),
     KEPT)
CALL(Get_accumulate, (const void *origin_addr, int origin_count, MPI_Datatype origin_datatype,
     void *result_addr, int result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint
     target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win),
     (origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype,
     target_rank, target_disp, target_count, target_datatype, op, win), AT_ONCE,
     FETCHED(origin_count, origin_datatype, target_rank, win, op, result_count, result_datatype),
     KEPT)
CALL(Put, (const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int
     target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win
     win), (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
     target_datatype, win), AT_ONCE, ONE_SIDED(origin_count, origin_datatype, target_rank, win),
     KEPT)
CALL(Raccumulate, (const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int
     target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op,
     MPI_Win win, MPI_Request *request), (origin_addr, origin_count, origin_datatype, target_rank,
     target_disp, target_count, target_datatype, op, win, request), AT_ONCE,
     ONE_SIDED(origin_count, origin_datatype, target_rank, win), KEPT)
CALL(Rget, (void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
     MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win,
     MPI_Request *request), (origin_addr, origin_count, origin_datatype, target_rank, target_disp,
     target_count, target_datatype, win, request), AT_ONCE, ONE_SIDED(origin_count,
     origin_datatype, target_rank, win), KEPT)
CALL(Rget_accumulate, (const void *origin_addr, int origin_count, MPI_Datatype origin_datatype,
     void *result_addr, int result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint
     target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win,
     MPI_Request *request), (origin_addr, origin_count, origin_datatype, result_addr,
     result_count, result_datatype, target_rank, target_disp, target_count, target_datatype, op,
     win, request), AT_ONCE, FETCHED(origin_count, origin_datatype, target_rank, win, op,
     result_count, result_datatype), KEPT)
CALL(Rput, (const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int
     target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win
     win, MPI_Request *request), (origin_addr, origin_count, origin_datatype, target_rank,
     target_disp, target_count, target_datatype, win, request), AT_ONCE, ONE_SIDED(origin_count,
     origin_datatype, target_rank, win), KEPT)
CALL(Win_allocate, (MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr,
     MPI_Win *win), (size, disp_unit, info, comm, baseptr, win), AT_ONCE, NOTHING, KEPT)
CALL(Win_allocate_shared, (MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void
     *baseptr, MPI_Win *win), (size, disp_unit, info, comm, baseptr, win), AT_ONCE, NOTHING, KEPT)
CALL(Win_attach, (MPI_Win win, void *base, MPI_Aint size), (win, base, size), AT_ONCE, NOTHING,
     LOST)
CALL(Win_complete, (MPI_Win win), (win), AT_ONCE, NOTHING, KEPT)
CALL(Win_create, (void *base, MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win
     *win), (base, size, disp_unit, info, comm, win), AT_ONCE, NOTHING, KEPT)
CALL(Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win *win), (info, comm, win), AT_ONCE,
     NOTHING, LOST)
CALL(Win_create_keyval, (MPI_Win_copy_attr_function *win_copy_attr_fn,
     MPI_Win_delete_attr_function *win_delete_attr_fn, int *win_keyval, void *extra_state),
     (win_copy_attr_fn, win_delete_attr_fn, win_keyval, extra_state), AT_ONCE, NOTHING, LOST)
CALL(Win_delete_attr, (MPI_Win win, int win_keyval), (win, win_keyval), AT_ONCE, NOTHING, LOST)
CALL(Win_detach, (MPI_Win win, const void *base), (win, base), AT_ONCE, NOTHING, LOST)
CALL(Win_fence, (int assert, MPI_Win win), (assert, win), AT_ONCE, NOTHING, KEPT)
CALL(Win_flush, (int rank, MPI_Win win), (rank, win), AT_ONCE, NOTHING, KEPT)
CALL(Win_flush_all, (MPI_Win win), (win), AT_ONCE, NOTHING, KEPT)
CALL(Win_flush_local, (int rank, MPI_Win win), (rank, win), AT_ONCE, NOTHING, KEPT)
CALL(Win_flush_local_all, (MPI_Win win), (win), AT_ONCE, NOTHING, KEPT)
CALL(Win_free, (MPI_Win *win), (win), AT_ONCE, WIN_GONE, KEPT)
CALL(Win_free_keyval, (int *win_keyval), (win_keyval), AT_ONCE, NOTHING, LOST)
CALL(Win_get_attr, (MPI_Win win, int win_keyval, void *attribute_val, int *flag), (win,
     win_keyval, attribute_val, flag), AT_ONCE, NOTHING, LOST)
CALL(Win_get_group, (MPI_Win win, MPI_Group *group), (win, group), AT_ONCE, NOTHING, KEPT)
CALL(Win_get_info, (MPI_Win win, MPI_Info *info_used), (win, info_used), AT_ONCE, NOTHING, LOST)
CALL(Win_get_name, (MPI_Win win, char *win_name, int *resultlen), (win, win_name, resultlen),
     AT_ONCE, NOTHING, LOST)
CALL(Win_lock, (int lock_type, int rank, int assert, MPI_Win win), (lock_type, rank, assert, win),
     AT_ONCE, NOTHING, KEPT)
CALL(Win_lock_all, (int assert, MPI_Win win), (assert, win), AT_ONCE, NOTHING, KEPT)
CALL(Win_post, (MPI_Group group, int assert, MPI_Win win), (group, assert, win), AT_ONCE, NOTHING,
     KEPT)
CALL(Win_set_attr, (MPI_Win win, int win_keyval, void *attribute_val), (win, win_keyval,
     attribute_val), AT_ONCE, NOTHING, LOST)
CALL(Win_set_info, (MPI_Win win, MPI_Info info), (win, info), AT_ONCE, NOTHING, LOST)
CALL(Win_set_name, (MPI_Win win, const char *win_name), (win, win_name), AT_ONCE, NOTHING, LOST)
CALL(Win_shared_query, (MPI_Win win, int rank, MPI_Aint *size, int *disp_unit, void *baseptr),
     (win, rank, size, disp_unit, baseptr), AT_ONCE, NOTHING, LOST)
CALL(Win_start, (MPI_Group group, int assert, MPI_Win win), (group, assert, win), AT_ONCE,
     NOTHING, KEPT)
CALL(Win_sync, (MPI_Win win), (win), AT_ONCE, NOTHING, LOST)
CALL(Win_test, (MPI_Win win, int *flag), (win, flag), AT_ONCE, NOTHING, LOST)
CALL(Win_unlock, (int rank, MPI_Win win), (rank, win), AT_ONCE, NOTHING, KEPT)
CALL(Win_unlock_all, (MPI_Win win), (win), AT_ONCE, NOTHING, KEPT)
CALL(Win_wait, (MPI_Win win), (win), AT_ONCE, NOTHING, KEPT)
#ifndef OPEN_MPI
LARGE(Accumulate, (const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
     int target_rank, MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype,
     MPI_Op op, MPI_Win win), (origin_addr, origin_count, origin_datatype, target_rank,
     target_disp, target_count, target_datatype, op, win), AT_ONCE, ONE_SIDED(origin_count,
     origin_datatype, target_rank, win), KEPT)
LARGE(Get, (void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int
     target_rank, MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype,
     MPI_Win win), (origin_addr, origin_count, origin_datatype, target_rank, target_disp,
     target_count, target_datatype, win), AT_ONCE, ONE_SIDED(origin_count, origin_datatype,
     target_rank, win), KEPT)
LARGE(Get_accumulate, (const void *origin_addr, MPI_Count origin_count, MPI_Datatype
     origin_datatype, void *result_addr, MPI_Count result_count, MPI_Datatype result_datatype, int
     target_rank, MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype,
     MPI_Op op, MPI_Win win), (origin_addr, origin_count, origin_datatype, result_addr,
     result_count, result_datatype, target_rank, target_disp, target_count, target_datatype, op,
     win), AT_ONCE, FETCHED(origin_count, origin_datatype, target_rank, win, op, result_count,
     result_datatype), KEPT)
LARGE(Put, (const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int
     target_rank, MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype,
     MPI_Win win), (origin_addr, origin_count, origin_datatype, target_rank, target_disp,
     target_count, target_datatype, win), AT_ONCE, ONE_SIDED(origin_count, origin_datatype,
     target_rank, win), KEPT)
LARGE(Raccumulate, (const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
     int target_rank, MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype,
     MPI_Op op, MPI_Win win, MPI_Request *request), (origin_addr, origin_count, origin_datatype,
     target_rank, target_disp, target_count, target_datatype, op, win, request), AT_ONCE,
     ONE_SIDED(origin_count, origin_datatype, target_rank, win), KEPT)
LARGE(Rget, (void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int
     target_rank, MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype,
     MPI_Win win, MPI_Request *request), (origin_addr, origin_count, origin_datatype, target_rank,
     target_disp, target_count, target_datatype, win, request), AT_ONCE, ONE_SIDED(origin_count,
     origin_datatype, target_rank, win), KEPT)
LARGE(Rget_accumulate, (const void *origin_addr, MPI_Count origin_count, MPI_Datatype
     origin_datatype, void *result_addr, MPI_Count result_count, MPI_Datatype result_datatype, int
     target_rank, MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype,
     MPI_Op op, MPI_Win win, MPI_Request *request), (origin_addr, origin_count, origin_datatype,
     result_addr, result_count, result_datatype, target_rank, target_disp, target_count,
     target_datatype, op, win, request), AT_ONCE, FETCHED(origin_count, origin_datatype,
     target_rank, win, op, result_count, result_datatype), KEPT)
LARGE(Rput, (const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int
     target_rank, MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype,
     MPI_Win win, MPI_Request *request), (origin_addr, origin_count, origin_datatype, target_rank,
     target_disp, target_count, target_datatype, win, request), AT_ONCE, ONE_SIDED(origin_count,
     origin_datatype, target_rank, win), KEPT)
LARGE(Win_allocate, (MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, void
     *baseptr, MPI_Win *win), (size, disp_unit, info, comm, baseptr, win), AT_ONCE, NOTHING, KEPT)
LARGE(Win_allocate_shared, (MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, void
     *baseptr, MPI_Win *win), (size, disp_unit, info, comm, baseptr, win), AT_ONCE, NOTHING, KEPT)
LARGE(Win_create, (void *base, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm,
     MPI_Win *win), (base, size, disp_unit, info, comm, win), AT_ONCE, NOTHING, KEPT)
LARGE(Win_shared_query, (MPI_Win win, int rank, MPI_Aint *size, MPI_Aint *disp_unit, void
     *baseptr), (win, rank, size, disp_unit, baseptr), AT_ONCE, NOTHING, LOST)
#endif
