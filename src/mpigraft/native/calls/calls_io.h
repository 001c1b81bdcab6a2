/* Made by tools/write_calls.py of MPICH's mpi_proto.h: not to be edited. */
CALL(File_close, (MPI_File *fh), (fh), AT_ONCE, NOTHING, LOST)
CALL(File_delete, (const char *filename, MPI_Info info), (filename, info), AT_ONCE, NOTHING, LOST)
CALL(File_get_amode, (MPI_File fh, int *amode), (fh, amode), AT_ONCE, NOTHING, LOST)
CALL(File_get_atomicity, (MPI_File fh, int *flag), (fh, flag), AT_ONCE, NOTHING, LOST)
CALL(File_get_byte_offset, (MPI_File fh, MPI_Offset offset, MPI_Offset *disp), (fh, offset, disp),
     AT_ONCE, NOTHING, LOST)
CALL(File_get_group, (MPI_File fh, MPI_Group *group), (fh, group), AT_ONCE, NOTHING, LOST)
CALL(File_get_info, (MPI_File fh, MPI_Info *info_used), (fh, info_used), AT_ONCE, NOTHING, LOST)
CALL(File_get_position, (MPI_File fh, MPI_Offset *offset), (fh, offset), AT_ONCE, NOTHING, LOST)
CALL(File_get_position_shared, (MPI_File fh, MPI_Offset *offset), (fh, offset), AT_ONCE, NOTHING,
     LOST)
CALL(File_get_size, (MPI_File fh, MPI_Offset *size), (fh, size), AT_ONCE, NOTHING, LOST)
CALL(File_get_type_extent, (MPI_File fh, MPI_Datatype datatype, MPI_Aint *extent), (fh, datatype,
     extent), AT_ONCE, NOTHING, LOST)
CALL(File_get_view, (MPI_File fh, MPI_Offset *disp, MPI_Datatype *etype, MPI_Datatype *filetype,
     char *datarep), (fh, disp, etype, filetype, datarep), AT_ONCE, NOTHING, LOST)
CALL(File_iread, (MPI_File fh, void *buf, int count, MPI_Datatype datatype, MPI_Request *request),
     (fh, buf, count, datatype, request), AT_ONCE, GIVEN(count, datatype), LOST)
CALL(File_iread_all, (MPI_File fh, void *buf, int count, MPI_Datatype datatype, MPI_Request
     *request), (fh, buf, count, datatype, request), AT_ONCE, GIVEN(count, datatype), LOST)
CALL(File_iread_at, (MPI_File fh, MPI_Offset offset, void *buf, int count, MPI_Datatype datatype,
     MPI_Request *request), (fh, offset, buf, count, datatype, request), AT_ONCE, GIVEN(count,
     datatype), LOST)
CALL(File_iread_at_all, (MPI_File fh, MPI_Offset offset, void *buf, int count, MPI_Datatype
     datatype, MPI_Request *request), (fh, offset, buf, count, datatype, request), AT_ONCE,
     GIVEN(count, datatype), LOST)
CALL(File_iread_shared, (MPI_File fh, void *buf, int count, MPI_Datatype datatype, MPI_Request
     *request), (fh, buf, count, datatype, request), AT_ONCE, GIVEN(count, datatype), LOST)
CALL(File_iwrite, (MPI_File fh, const void *buf, int count, MPI_Datatype datatype, MPI_Request
     *request), (fh, buf, count, datatype, request), AT_ONCE, GIVEN(count, datatype), LOST)
CALL(File_iwrite_all, (MPI_File fh, const void *buf, int count, MPI_Datatype datatype, MPI_Request
     *request), (fh, buf, count, datatype, request), AT_ONCE, GIVEN(count, datatype), LOST)
CALL(File_iwrite_at, (MPI_File fh, MPI_Offset offset, const void *buf, int count, MPI_Datatype
     datatype, MPI_Request *request), (fh, offset, buf, count, datatype, request), AT_ONCE,
     GIVEN(count, datatype), LOST)
CALL(File_iwrite_at_all, (MPI_File fh, MPI_Offset offset, const void *buf, int count, MPI_Datatype
     datatype, MPI_Request *request), (fh, offset, buf, count, datatype, request), AT_ONCE,
     GIVEN(count, datatype), LOST)
CALL(File_iwrite_shared, (MPI_File fh, const void *buf, int count, MPI_Datatype datatype,
     MPI_Request *request), (fh, buf, count, datatype, request), AT_ONCE, GIVEN(count, datatype),
     LOST)
CALL(File_open, (MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh),
     (comm, filename, amode, info, fh), AT_ONCE, NOTHING, LOST)
CALL(File_preallocate, (MPI_File fh, MPI_Offset size), (fh, size), AT_ONCE, NOTHING, LOST)
CALL(File_read, (MPI_File fh, void *buf, int count, MPI_Datatype datatype, MPI_Status *status),
     (fh, buf, count, datatype, status), AT_ONCE, GIVEN(count, datatype), LOST)
CALL(File_read_all, (MPI_File fh, void *buf, int count, MPI_Datatype datatype, MPI_Status
     *status), (fh, buf, count, datatype, status), AT_ONCE, GIVEN(count, datatype), LOST)
CALL(File_read_all_begin, (MPI_File fh, void *buf, int count, MPI_Datatype datatype), (fh, buf,
     count, datatype), AT_ONCE, GIVEN(count, datatype), LOST)
CALL(File_read_all_end, (MPI_File fh, void *buf, MPI_Status *status), (fh, buf, status), AT_ONCE,
     NOTHING, LOST)
CALL(File_read_at, (MPI_File fh, MPI_Offset offset, void *buf, int count, MPI_Datatype datatype,
     MPI_Status *status), (fh, offset, buf, count, datatype, status), AT_ONCE, GIVEN(count,
     datatype), LOST)
CALL(File_read_at_all, (MPI_File fh, MPI_Offset offset, void *buf, int count, MPI_Datatype
     datatype, MPI_Status *status), (fh, offset, buf, count, datatype, status), AT_ONCE,
     GIVEN(count, datatype), LOST)
CALL(File_read_at_all_begin, (MPI_File fh, MPI_Offset offset, void *buf, int count, MPI_Datatype
     datatype), (fh, offset, buf, count, datatype), AT_ONCE, GIVEN(count, datatype), LOST)
CALL(File_read_at_all_end, (MPI_File fh, void *buf, MPI_Status *status), (fh, buf, status),
     AT_ONCE, NOTHING, LOST)
CALL(File_read_ordered, (MPI_File fh, void *buf, int count, MPI_Datatype datatype, MPI_Status
     *status), (fh, buf, count, datatype, status), AT_ONCE, GIVEN(count, datatype), LOST)
CALL(File_read_ordered_begin, (MPI_File fh, void *buf, int count, MPI_Datatype datatype), (fh,
     buf, count, datatype), AT_ONCE, GIVEN(count, datatype), LOST)
CALL(File_read_ordered_end, (MPI_File fh, void *buf, MPI_Status *status), (fh, buf, status),
     AT_ONCE, NOTHING, LOST)
CALL(File_read_shared, (MPI_File fh, void *buf, int count, MPI_Datatype datatype, MPI_Status
     *status), (fh, buf, count, datatype, status), AT_ONCE, GIVEN(count, datatype), LOST)
CALL(File_seek, (MPI_File fh, MPI_Offset offset, int whence), (fh, offset, whence), AT_ONCE,
     NOTHING, LOST)
CALL(File_seek_shared, (MPI_File fh, MPI_Offset offset, int whence), (fh, offset, whence),
     AT_ONCE, NOTHING, LOST)
CALL(File_set_atomicity, (MPI_File fh, int flag), (fh, flag), AT_ONCE, NOTHING, LOST)
CALL(File_set_info, (MPI_File fh, MPI_Info info), (fh, info), AT_ONCE, NOTHING, LOST)
CALL(File_set_size, (MPI_File fh, MPI_Offset size), (fh, size), AT_ONCE, NOTHING, LOST)
CALL(File_set_view, (MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
     const char *datarep, MPI_Info info), (fh, disp, etype, filetype, datarep, info), AT_ONCE,
     NOTHING, LOST)
CALL(File_sync, (MPI_File fh), (fh), AT_ONCE, NOTHING, LOST)
CALL(File_write, (MPI_File fh, const void *buf, int count, MPI_Datatype datatype, MPI_Status
     *status), (fh, buf, count, datatype, status), AT_ONCE, GIVEN(count, datatype), LOST)
CALL(File_write_all, (MPI_File fh, const void *buf, int count, MPI_Datatype datatype, MPI_Status
     *status), (fh, buf, count, datatype, status), AT_ONCE, GIVEN(count, datatype), LOST)
CALL(File_write_all_begin, (MPI_File fh, const void *buf, int count, MPI_Datatype datatype), (fh,
     buf, count, datatype), AT_ONCE, GIVEN(count, datatype), LOST)
CALL(File_write_all_end, (MPI_File fh, const void *buf, MPI_Status *status), (fh, buf, status),
     AT_ONCE, NOTHING, LOST)
CALL(File_write_at, (MPI_File fh, MPI_Offset offset, const void *buf, int count, MPI_Datatype
     datatype, MPI_Status *status), (fh, offset, buf, count, datatype, status), AT_ONCE,
     GIVEN(count, datatype), LOST)
CALL(File_write_at_all, (MPI_File fh, MPI_Offset offset, const void *buf, int count, MPI_Datatype
     datatype, MPI_Status *status), (fh, offset, buf, count, datatype, status), AT_ONCE,
     GIVEN(count, datatype), LOST)
CALL(File_write_at_all_begin, (MPI_File fh, MPI_Offset offset, const void *buf, int count,
     MPI_Datatype datatype), (fh, offset, buf, count, datatype), AT_ONCE, GIVEN(count, datatype),
     LOST)
CALL(File_write_at_all_end, (MPI_File fh, const void *buf, MPI_Status *status), (fh, buf, status),
     AT_ONCE, NOTHING, LOST)
CALL(File_write_ordered, (MPI_File fh, const void *buf, int count, MPI_Datatype datatype,
     MPI_Status *status), (fh, buf, count, datatype, status), AT_ONCE, GIVEN(count, datatype),
     LOST)
CALL(File_write_ordered_begin, (MPI_File fh, const void *buf, int count, MPI_Datatype datatype),
     (fh, buf, count, datatype), AT_ONCE, GIVEN(count, datatype), LOST)
CALL(File_write_ordered_end, (MPI_File fh, const void *buf, MPI_Status *status), (fh, buf,
     status), AT_ONCE, NOTHING, LOST)
CALL(File_write_shared, (MPI_File fh, const void *buf, int count, MPI_Datatype datatype,
     MPI_Status *status), (fh, buf, count, datatype, status), AT_ONCE, GIVEN(count, datatype),
     LOST)
CALL(Register_datarep, (const char *datarep, MPI_Datarep_conversion_function *read_conversion_fn,
     MPI_Datarep_conversion_function *write_conversion_fn, MPI_Datarep_extent_function
     *dtype_file_extent_fn, void *extra_state), (datarep, read_conversion_fn, write_conversion_fn,
     dtype_file_extent_fn, extra_state), AT_ONCE, NOTHING, LOST)
#ifndef OPEN_MPI
LARGE(File_get_type_extent, (MPI_File fh, MPI_Datatype datatype, MPI_Count *extent), (fh,
     datatype, extent), AT_ONCE, NOTHING, LOST)
LARGE(File_iread, (MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Request
     *request), (fh, buf, count, datatype, request), AT_ONCE, GIVEN(count, datatype), LOST)
LARGE(File_iread_all, (MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Request
     *request), (fh, buf, count, datatype, request), AT_ONCE, GIVEN(count, datatype), LOST)
LARGE(File_iread_at, (MPI_File fh, MPI_Offset offset, void *buf, MPI_Count count, MPI_Datatype
     datatype, MPI_Request *request), (fh, offset, buf, count, datatype, request), AT_ONCE,
     GIVEN(count, datatype), LOST)
LARGE(File_iread_at_all, (MPI_File fh, MPI_Offset offset, void *buf, MPI_Count count, MPI_Datatype
     datatype, MPI_Request *request), (fh, offset, buf, count, datatype, request), AT_ONCE,
     GIVEN(count, datatype), LOST)
LARGE(File_iread_shared, (MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype,
     MPI_Request *request), (fh, buf, count, datatype, request), AT_ONCE, GIVEN(count, datatype),
     LOST)
LARGE(File_iwrite, (MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype,
     MPI_Request *request), (fh, buf, count, datatype, request), AT_ONCE, GIVEN(count, datatype),
     LOST)
LARGE(File_iwrite_all, (MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype,
     MPI_Request *request), (fh, buf, count, datatype, request), AT_ONCE, GIVEN(count, datatype),
     LOST)
LARGE(File_iwrite_at, (MPI_File fh, MPI_Offset offset, const void *buf, MPI_Count count,
     MPI_Datatype datatype, MPI_Request *request), (fh, offset, buf, count, datatype, request),
     AT_ONCE, GIVEN(count, datatype), LOST)
LARGE(File_iwrite_at_all, (MPI_File fh, MPI_Offset offset, const void *buf, MPI_Count count,
     MPI_Datatype datatype, MPI_Request *request), (fh, offset, buf, count, datatype, request),
     AT_ONCE, GIVEN(count, datatype), LOST)
LARGE(File_iwrite_shared, (MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype,
     MPI_Request *request), (fh, buf, count, datatype, request), AT_ONCE, GIVEN(count, datatype),
     LOST)
LARGE(File_read, (MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Status
     *status), (fh, buf, count, datatype, status), AT_ONCE, GIVEN(count, datatype), LOST)
LARGE(File_read_all, (MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Status
     *status), (fh, buf, count, datatype, status), AT_ONCE, GIVEN(count, datatype), LOST)
LARGE(File_read_all_begin, (MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype), (fh,
     buf, count, datatype), AT_ONCE, GIVEN(count, datatype), LOST)
LARGE(File_read_at, (MPI_File fh, MPI_Offset offset, void *buf, MPI_Count count, MPI_Datatype
     datatype, MPI_Status *status), (fh, offset, buf, count, datatype, status), AT_ONCE,
     GIVEN(count, datatype), LOST)
LARGE(File_read_at_all, (MPI_File fh, MPI_Offset offset, void *buf, MPI_Count count, MPI_Datatype
     datatype, MPI_Status *status), (fh, offset, buf, count, datatype, status), AT_ONCE,
     GIVEN(count, datatype), LOST)
LARGE(File_read_at_all_begin, (MPI_File fh, MPI_Offset offset, void *buf, MPI_Count count,
     MPI_Datatype datatype), (fh, offset, buf, count, datatype), AT_ONCE, GIVEN(count, datatype),
     LOST)
LARGE(File_read_ordered, (MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype,
     MPI_Status *status), (fh, buf, count, datatype, status), AT_ONCE, GIVEN(count, datatype),
     LOST)
LARGE(File_read_ordered_begin, (MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype),
     (fh, buf, count, datatype), AT_ONCE, GIVEN(count, datatype), LOST)
LARGE(File_read_shared, (MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype,
     MPI_Status *status), (fh, buf, count, datatype, status), AT_ONCE, GIVEN(count, datatype),
     LOST)
LARGE(File_write, (MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype,
     MPI_Status *status), (fh, buf, count, datatype, status), AT_ONCE, GIVEN(count, datatype),
     LOST)
LARGE(File_write_all, (MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype,
     MPI_Status *status), (fh, buf, count, datatype, status), AT_ONCE, GIVEN(count, datatype),
     LOST)
LARGE(File_write_all_begin, (MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype
     datatype), (fh, buf, count, datatype), AT_ONCE, GIVEN(count, datatype), LOST)
LARGE(File_write_at, (MPI_File fh, MPI_Offset offset, const void *buf, MPI_Count count,
     MPI_Datatype datatype, MPI_Status *status), (fh, offset, buf, count, datatype, status),
     AT_ONCE, GIVEN(count, datatype), LOST)
LARGE(File_write_at_all, (MPI_File fh, MPI_Offset offset, const void *buf, MPI_Count count,
     MPI_Datatype datatype, MPI_Status *status), (fh, offset, buf, count, datatype, status),
     AT_ONCE, GIVEN(count, datatype), LOST)
LARGE(File_write_at_all_begin, (MPI_File fh, MPI_Offset offset, const void *buf, MPI_Count count,
     MPI_Datatype datatype), (fh, offset, buf, count, datatype), AT_ONCE, GIVEN(count, datatype),
     LOST)
LARGE(File_write_ordered, (MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype,
     MPI_Status *status), (fh, buf, count, datatype, status), AT_ONCE, GIVEN(count, datatype),
     LOST)
LARGE(File_write_ordered_begin, (MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype
     datatype), (fh, buf, count, datatype), AT_ONCE, GIVEN(count, datatype), LOST)
LARGE(File_write_shared, (MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype,
     MPI_Status *status), (fh, buf, count, datatype, status), AT_ONCE, GIVEN(count, datatype),
     LOST)
#endif
