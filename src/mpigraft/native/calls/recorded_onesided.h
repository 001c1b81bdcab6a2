/* Made by tools/write_calls.py of MPICH's mpi_proto.h: not to be edited. */
#define FIELDS_Accumulate "aitriitow"
#define IN_Accumulate \
    put_address(origin_addr); put_integer((int64_t)(origin_count)); \
    put_known_handle(TYPE, KEY(origin_datatype)); put_rank(target_rank); \
    put_integer((int64_t)(target_disp)); put_integer((int64_t)(target_count)); \
    put_known_handle(TYPE, KEY(target_datatype)); put_known_handle(OP, KEY(op)); \
    put_known_handle(WIN, KEY(win));
#define OUT_Accumulate
#define FIELDS_Compare_and_swap "aaatriw"
#define IN_Compare_and_swap \
    put_address(origin_addr); put_address(compare_addr); put_address(result_addr); \
    put_known_handle(TYPE, KEY(datatype)); put_rank(target_rank); \
    put_integer((int64_t)(target_disp)); put_known_handle(WIN, KEY(win));
#define OUT_Compare_and_swap
#define FIELDS_Fetch_and_op "aatriow"
#define IN_Fetch_and_op \
    put_address(origin_addr); put_address(result_addr); put_known_handle(TYPE, KEY(datatype)); \
    put_rank(target_rank); put_integer((int64_t)(target_disp)); put_known_handle(OP, KEY(op)); \
    put_known_handle(WIN, KEY(win));
#define OUT_Fetch_and_op
#define FIELDS_Get "aitriitw"
#define IN_Get \
    put_address(origin_addr); put_integer((int64_t)(origin_count)); \
    put_known_handle(TYPE, KEY(origin_datatype)); put_rank(target_rank); \
    put_integer((int64_t)(target_disp)); put_integer((int64_t)(target_count)); \
    put_known_handle(TYPE, KEY(target_datatype)); put_known_handle(WIN, KEY(win));
#define OUT_Get
#define FIELDS_Get_accumulate "aitaitriitow"
#define IN_Get_accumulate \
    put_address(origin_addr); put_integer((int64_t)(origin_count)); \
    put_known_handle(TYPE, KEY(origin_datatype)); put_address(result_addr); \
    put_integer((int64_t)(result_count)); put_known_handle(TYPE, KEY(result_datatype)); \
    put_rank(target_rank); put_integer((int64_t)(target_disp)); \
    put_integer((int64_t)(target_count)); put_known_handle(TYPE, KEY(target_datatype)); \
    put_known_handle(OP, KEY(op)); put_known_handle(WIN, KEY(win));
#define OUT_Get_accumulate
#define FIELDS_Put "aitriitw"
#define IN_Put \
    put_address(origin_addr); put_integer((int64_t)(origin_count)); \
    put_known_handle(TYPE, KEY(origin_datatype)); put_rank(target_rank); \
    put_integer((int64_t)(target_disp)); put_integer((int64_t)(target_count)); \
    put_known_handle(TYPE, KEY(target_datatype)); put_known_handle(WIN, KEY(win));
#define OUT_Put
#define FIELDS_Raccumulate "aitriitowH"
#define IN_Raccumulate \
    put_address(origin_addr); put_integer((int64_t)(origin_count)); \
    put_known_handle(TYPE, KEY(origin_datatype)); put_rank(target_rank); \
    put_integer((int64_t)(target_disp)); put_integer((int64_t)(target_count)); \
    put_known_handle(TYPE, KEY(target_datatype)); put_known_handle(OP, KEY(op)); \
    put_known_handle(WIN, KEY(win));
#define OUT_Raccumulate put_new(REQUEST, KEY(*request));
#define FIELDS_Rget "aitriitwH"
#define IN_Rget \
    put_address(origin_addr); put_integer((int64_t)(origin_count)); \
    put_known_handle(TYPE, KEY(origin_datatype)); put_rank(target_rank); \
    put_integer((int64_t)(target_disp)); put_integer((int64_t)(target_count)); \
    put_known_handle(TYPE, KEY(target_datatype)); put_known_handle(WIN, KEY(win));
#define OUT_Rget put_new(REQUEST, KEY(*request));
#define FIELDS_Rget_accumulate "aitaitriitowH"
#define IN_Rget_accumulate \
    put_address(origin_addr); put_integer((int64_t)(origin_count)); \
    put_known_handle(TYPE, KEY(origin_datatype)); put_address(result_addr); \
    put_integer((int64_t)(result_count)); put_known_handle(TYPE, KEY(result_datatype)); \
    put_rank(target_rank); put_integer((int64_t)(target_disp)); \
    put_integer((int64_t)(target_count)); put_known_handle(TYPE, KEY(target_datatype)); \
    put_known_handle(OP, KEY(op)); put_known_handle(WIN, KEY(win));
#define OUT_Rget_accumulate put_new(REQUEST, KEY(*request));
#define FIELDS_Rput "aitriitwH"
#define IN_Rput \
    put_address(origin_addr); put_integer((int64_t)(origin_count)); \
    put_known_handle(TYPE, KEY(origin_datatype)); put_rank(target_rank); \
    put_integer((int64_t)(target_disp)); put_integer((int64_t)(target_count)); \
    put_known_handle(TYPE, KEY(target_datatype)); put_known_handle(WIN, KEY(win));
#define OUT_Rput put_new(REQUEST, KEY(*request));
#define FIELDS_Win_allocate "iicE"
#define IN_Win_allocate \
    put_integer((int64_t)(size)); put_integer((int64_t)(disp_unit)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Win_allocate put_new(WIN, KEY(*win));
#define FIELDS_Win_allocate_shared "iicE"
#define IN_Win_allocate_shared \
    put_integer((int64_t)(size)); put_integer((int64_t)(disp_unit)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Win_allocate_shared put_new(WIN, KEY(*win));
#define FIELDS_Win_complete "w"
#define IN_Win_complete put_known_handle(WIN, KEY(win));
#define OUT_Win_complete
#define FIELDS_Win_create "aiicE"
#define IN_Win_create \
    put_address(base); put_integer((int64_t)(size)); put_integer((int64_t)(disp_unit)); \
    put_known_handle(COMM, KEY(comm));
#define OUT_Win_create put_new(WIN, KEY(*win));
#define FIELDS_Win_fence "iw"
#define IN_Win_fence put_integer((int64_t)(assert)); put_known_handle(WIN, KEY(win));
#define OUT_Win_fence
#define FIELDS_Win_flush "rw"
#define IN_Win_flush put_rank(rank); put_known_handle(WIN, KEY(win));
#define OUT_Win_flush
#define FIELDS_Win_flush_all "w"
#define IN_Win_flush_all put_known_handle(WIN, KEY(win));
#define OUT_Win_flush_all
#define FIELDS_Win_flush_local "rw"
#define IN_Win_flush_local put_rank(rank); put_known_handle(WIN, KEY(win));
#define OUT_Win_flush_local
#define FIELDS_Win_flush_local_all "w"
#define IN_Win_flush_local_all put_known_handle(WIN, KEY(win));
#define OUT_Win_flush_local_all
#define FIELDS_Win_free "w"
#define IN_Win_free put_last(WIN, KEY(*win));
#define OUT_Win_free
#define FIELDS_Win_get_group "wB"
#define IN_Win_get_group put_known_handle(WIN, KEY(win));
#define OUT_Win_get_group put_new(GROUP, KEY(*group));
#define FIELDS_Win_lock "iriw"
#define IN_Win_lock \
    put_integer((int64_t)(lock_type)); put_rank(rank); put_integer((int64_t)(assert)); \
    put_known_handle(WIN, KEY(win));
#define OUT_Win_lock
#define FIELDS_Win_lock_all "iw"
#define IN_Win_lock_all put_integer((int64_t)(assert)); put_known_handle(WIN, KEY(win));
#define OUT_Win_lock_all
#define FIELDS_Win_post "giw"
#define IN_Win_post \
    put_known_handle(GROUP, KEY(group)); put_integer((int64_t)(assert)); \
    put_known_handle(WIN, KEY(win));
#define OUT_Win_post
#define FIELDS_Win_start "giw"
#define IN_Win_start \
    put_known_handle(GROUP, KEY(group)); put_integer((int64_t)(assert)); \
    put_known_handle(WIN, KEY(win));
#define OUT_Win_start
#define FIELDS_Win_unlock "rw"
#define IN_Win_unlock put_rank(rank); put_known_handle(WIN, KEY(win));
#define OUT_Win_unlock
#define FIELDS_Win_unlock_all "w"
#define IN_Win_unlock_all put_known_handle(WIN, KEY(win));
#define OUT_Win_unlock_all
#define FIELDS_Win_wait "w"
#define IN_Win_wait put_known_handle(WIN, KEY(win));
#define OUT_Win_wait
