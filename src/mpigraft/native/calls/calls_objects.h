/* Made by tools/write_calls.py of MPICH's mpi_proto.h: not to be edited. */
CALL(Abort, (MPI_Comm comm, int errorcode), (comm, errorcode), BEFORE_ABORT, NOTHING, LOST)
CALL(Alloc_mem, (MPI_Aint size, MPI_Info info, void *baseptr), (size, info, baseptr), AT_ONCE,
     NOTHING, LOST)
CALL(Cart_coords, (MPI_Comm comm, int rank, int maxdims, int coords[]), (comm, rank, maxdims,
     coords), AT_ONCE, NOTHING, LOST)
CALL(Cart_create, (MPI_Comm comm_old, int ndims, const int dims[], const int periods[], int
     reorder, MPI_Comm *comm_cart), (comm_old, ndims, dims, periods, reorder, comm_cart), AT_ONCE,
     NOTHING, KEPT)
CALL(Cart_get, (MPI_Comm comm, int maxdims, int dims[], int periods[], int coords[]), (comm,
     maxdims, dims, periods, coords), AT_ONCE, NOTHING, LOST)
CALL(Cart_map, (MPI_Comm comm, int ndims, const int dims[], const int periods[], int *newrank),
     (comm, ndims, dims, periods, newrank), AT_ONCE, NOTHING, LOST)
CALL(Cart_rank, (MPI_Comm comm, const int coords[], int *rank), (comm, coords, rank), AT_ONCE,
     NOTHING, LOST)
CALL(Cart_shift, (MPI_Comm comm, int direction, int disp, int *rank_source, int *rank_dest),
     (comm, direction, disp, rank_source, rank_dest), AT_ONCE, NOTHING, LOST)
CALL(Cart_sub, (MPI_Comm comm, const int remain_dims[], MPI_Comm *newcomm), (comm, remain_dims,
     newcomm), AT_ONCE, NOTHING, KEPT)
CALL(Cartdim_get, (MPI_Comm comm, int *ndims), (comm, ndims), AT_ONCE, NOTHING, LOST)
CALL(Close_port, (const char *port_name), (port_name), AT_ONCE, NOTHING, LOST)
CALL(Comm_accept, (const char *port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm
     *newcomm), (port_name, info, root, comm, newcomm), AT_ONCE, NOTHING, LOST)
CALL(Comm_compare, (MPI_Comm comm1, MPI_Comm comm2, int *result), (comm1, comm2, result), AT_ONCE,
     NOTHING, LOST)
CALL(Comm_connect, (const char *port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm
     *newcomm), (port_name, info, root, comm, newcomm), AT_ONCE, NOTHING, LOST)
CALL(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm), (comm, group, newcomm),
     AT_ONCE, NOTHING, KEPT)
CALL(Comm_create_from_group, (MPI_Group group, const char *stringtag, MPI_Info info,
     MPI_Errhandler errhandler, MPI_Comm *newcomm), (group, stringtag, info, errhandler, newcomm),
     AT_ONCE, NOTHING, LOST)
CALL(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm), (comm,
     group, tag, newcomm), AT_ONCE, NOTHING, KEPT)
CALL(Comm_create_keyval, (MPI_Comm_copy_attr_function *comm_copy_attr_fn,
     MPI_Comm_delete_attr_function *comm_delete_attr_fn, int *comm_keyval, void *extra_state),
     (comm_copy_attr_fn, comm_delete_attr_fn, comm_keyval, extra_state), AT_ONCE, NOTHING, LOST)
CALL(Comm_delete_attr, (MPI_Comm comm, int comm_keyval), (comm, comm_keyval), AT_ONCE, NOTHING,
     LOST)
CALL(Comm_disconnect, (MPI_Comm *comm), (comm), AT_ONCE, COMM_GONE, KEPT)
CALL(Comm_dup, (MPI_Comm comm, MPI_Comm *newcomm), (comm, newcomm), AT_ONCE, NOTHING, KEPT)
CALL(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm), (comm, info, newcomm),
     AT_ONCE, NOTHING, KEPT)
CALL(Comm_free, (MPI_Comm *comm), (comm), AT_ONCE, COMM_GONE, KEPT)
CALL(Comm_free_keyval, (int *comm_keyval), (comm_keyval), AT_ONCE, NOTHING, LOST)
CALL(Comm_get_attr, (MPI_Comm comm, int comm_keyval, void *attribute_val, int *flag), (comm,
     comm_keyval, attribute_val, flag), AT_ONCE, NOTHING, LOST)
CALL(Comm_get_info, (MPI_Comm comm, MPI_Info *info_used), (comm, info_used), AT_ONCE, NOTHING,
     LOST)
CALL(Comm_get_name, (MPI_Comm comm, char *comm_name, int *resultlen), (comm, comm_name,
     resultlen), AT_ONCE, NOTHING, LOST)
CALL(Comm_get_parent, (MPI_Comm *parent), (parent), AT_ONCE, NOTHING, LOST)
CALL(Comm_group, (MPI_Comm comm, MPI_Group *group), (comm, group), AT_ONCE, NOTHING, KEPT)
CALL(Comm_idup, (MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request), (comm, newcomm,
     request), AT_ONCE, NOTHING, KEPT)
CALL(Comm_idup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm, MPI_Request *request),
     (comm, info, newcomm, request), AT_ONCE, NOTHING, KEPT)
CALL(Comm_join, (int fd, MPI_Comm *intercomm), (fd, intercomm), AT_ONCE, NOTHING, LOST)
CALL(Comm_rank, (MPI_Comm comm, int *rank), (comm, rank), AT_ONCE, NOTHING, LOST)
CALL(Comm_remote_group, (MPI_Comm comm, MPI_Group *group), (comm, group), AT_ONCE, NOTHING, KEPT)
CALL(Comm_remote_size, (MPI_Comm comm, int *size), (comm, size), AT_ONCE, NOTHING, LOST)
CALL(Comm_set_attr, (MPI_Comm comm, int comm_keyval, void *attribute_val), (comm, comm_keyval,
     attribute_val), AT_ONCE, NOTHING, LOST)
CALL(Comm_set_info, (MPI_Comm comm, MPI_Info info), (comm, info), AT_ONCE, NOTHING, LOST)
CALL(Comm_set_name, (MPI_Comm comm, const char *comm_name), (comm, comm_name), AT_ONCE, NOTHING,
     LOST)
CALL(Comm_size, (MPI_Comm comm, int *size), (comm, size), AT_ONCE, NOTHING, LOST)
CALL(Comm_spawn, (const char *command, char *argv[], int maxprocs, MPI_Info info, int root,
     MPI_Comm comm, MPI_Comm *intercomm, int array_of_errcodes[]), (command, argv, maxprocs, info,
     root, comm, intercomm, array_of_errcodes), AT_ONCE, NOTHING, LOST)
CALL(Comm_spawn_multiple, (int count, char *array_of_commands[], char **array_of_argv[], const int
     array_of_maxprocs[], const MPI_Info array_of_info[], int root, MPI_Comm comm, MPI_Comm
     *intercomm, int array_of_errcodes[]), (count, array_of_commands, array_of_argv,
     array_of_maxprocs, array_of_info, root, comm, intercomm, array_of_errcodes), AT_ONCE,
     NOTHING, LOST)
CALL(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *newcomm), (comm, color, key,
     newcomm), AT_ONCE, NOTHING, KEPT)
CALL(Comm_split_type, (MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm *newcomm),
     (comm, split_type, key, info, newcomm), AT_ONCE, NOTHING, KEPT)
CALL(Comm_test_inter, (MPI_Comm comm, int *flag), (comm, flag), AT_ONCE, NOTHING, LOST)
CALL(Dims_create, (int nnodes, int ndims, int dims[]), (nnodes, ndims, dims), AT_ONCE, NOTHING,
     LOST)
CALL(Dist_graph_create, (MPI_Comm comm_old, int n, const int sources[], const int degrees[], const
     int destinations[], const int weights[], MPI_Info info, int reorder, MPI_Comm
     *comm_dist_graph), (comm_old, n, sources, degrees, destinations, weights, info, reorder,
     comm_dist_graph), AT_ONCE, NOTHING, KEPT)
CALL(Dist_graph_create_adjacent, (MPI_Comm comm_old, int indegree, const int sources[], const int
     sourceweights[], int outdegree, const int destinations[], const int destweights[], MPI_Info
     info, int reorder, MPI_Comm *comm_dist_graph), (comm_old, indegree, sources, sourceweights,
     outdegree, destinations, destweights, info, reorder, comm_dist_graph), AT_ONCE, NOTHING,
     KEPT)
CALL(Dist_graph_neighbors, (MPI_Comm comm, int maxindegree, int sources[], int sourceweights[],
     int maxoutdegree, int destinations[], int destweights[]), (comm, maxindegree, sources,
     sourceweights, maxoutdegree, destinations, destweights), AT_ONCE, NOTHING, LOST)
CALL(Dist_graph_neighbors_count, (MPI_Comm comm, int *indegree, int *outdegree, int *weighted),
     (comm, indegree, outdegree, weighted), AT_ONCE, NOTHING, LOST)
CALL(Errhandler_free, (MPI_Errhandler *errhandler), (errhandler), AT_ONCE, NOTHING, LOST)
CALL(Free_mem, (void *base), (base), AT_ONCE, NOTHING, LOST)
CALL(Get_count, (const MPI_Status *status, MPI_Datatype datatype, int *count), (status, datatype,
     count), AT_ONCE, NOTHING, LOST)
CALL(Get_elements, (const MPI_Status *status, MPI_Datatype datatype, int *count), (status,
     datatype, count), AT_ONCE, NOTHING, LOST)
CALL(Get_elements_x, (const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count), (status,
     datatype, count), AT_ONCE, NOTHING, LOST)
CALL(Get_library_version, (char *version, int *resultlen), (version, resultlen), AT_ONCE, NOTHING,
     LOST)
CALL(Get_processor_name, (char *name, int *resultlen), (name, resultlen), AT_ONCE, NOTHING, LOST)
CALL(Get_version, (int *version, int *subversion), (version, subversion), AT_ONCE, NOTHING, LOST)
CALL(Graph_create, (MPI_Comm comm_old, int nnodes, const int indx[], const int edges[], int
     reorder, MPI_Comm *comm_graph), (comm_old, nnodes, indx, edges, reorder, comm_graph),
     AT_ONCE, NOTHING, KEPT)
CALL(Graph_get, (MPI_Comm comm, int maxindex, int maxedges, int indx[], int edges[]), (comm,
     maxindex, maxedges, indx, edges), AT_ONCE, NOTHING, LOST)
CALL(Graph_map, (MPI_Comm comm, int nnodes, const int indx[], const int edges[], int *newrank),
     (comm, nnodes, indx, edges, newrank), AT_ONCE, NOTHING, LOST)
CALL(Graph_neighbors, (MPI_Comm comm, int rank, int maxneighbors, int neighbors[]), (comm, rank,
     maxneighbors, neighbors), AT_ONCE, NOTHING, LOST)
CALL(Graph_neighbors_count, (MPI_Comm comm, int rank, int *nneighbors), (comm, rank, nneighbors),
     AT_ONCE, NOTHING, LOST)
CALL(Graphdims_get, (MPI_Comm comm, int *nnodes, int *nedges), (comm, nnodes, nedges), AT_ONCE,
     NOTHING, LOST)
CALL(Group_compare, (MPI_Group group1, MPI_Group group2, int *result), (group1, group2, result),
     AT_ONCE, NOTHING, LOST)
CALL(Group_difference, (MPI_Group group1, MPI_Group group2, MPI_Group *newgroup), (group1, group2,
     newgroup), AT_ONCE, NOTHING, KEPT)
CALL(Group_excl, (MPI_Group group, int n, const int ranks[], MPI_Group *newgroup), (group, n,
     ranks, newgroup), AT_ONCE, NOTHING, KEPT)
CALL(Group_free, (MPI_Group *group), (group), AT_ONCE, NOTHING, KEPT)
CALL(Group_from_session_pset, (MPI_Session session, const char *pset_name, MPI_Group *newgroup),
     (session, pset_name, newgroup), AT_ONCE, NOTHING, LOST)
CALL(Group_incl, (MPI_Group group, int n, const int ranks[], MPI_Group *newgroup), (group, n,
     ranks, newgroup), AT_ONCE, NOTHING, KEPT)
CALL(Group_intersection, (MPI_Group group1, MPI_Group group2, MPI_Group *newgroup), (group1,
     group2, newgroup), AT_ONCE, NOTHING, KEPT)
CALL(Group_range_excl, (MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup), (group, n,
     ranges, newgroup), AT_ONCE, NOTHING, KEPT)
CALL(Group_range_incl, (MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup), (group, n,
     ranges, newgroup), AT_ONCE, NOTHING, KEPT)
CALL(Group_rank, (MPI_Group group, int *rank), (group, rank), AT_ONCE, NOTHING, LOST)
CALL(Group_size, (MPI_Group group, int *size), (group, size), AT_ONCE, NOTHING, LOST)
CALL(Group_translate_ranks, (MPI_Group group1, int n, const int ranks1[], MPI_Group group2, int
     ranks2[]), (group1, n, ranks1, group2, ranks2), AT_ONCE, NOTHING, LOST)
CALL(Group_union, (MPI_Group group1, MPI_Group group2, MPI_Group *newgroup), (group1, group2,
     newgroup), AT_ONCE, NOTHING, KEPT)
CALL(Intercomm_create, (MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm, int
     remote_leader, int tag, MPI_Comm *newintercomm), (local_comm, local_leader, peer_comm,
     remote_leader, tag, newintercomm), AT_ONCE, NOTHING, KEPT)
CALL(Intercomm_create_from_groups, (MPI_Group local_group, int local_leader, MPI_Group
     remote_group, int remote_leader, const char *stringtag, MPI_Info info, MPI_Errhandler
     errhandler, MPI_Comm *newintercomm), (local_group, local_leader, remote_group, remote_leader,
     stringtag, info, errhandler, newintercomm), AT_ONCE, NOTHING, LOST)
CALL(Intercomm_merge, (MPI_Comm intercomm, int high, MPI_Comm *newintracomm), (intercomm, high,
     newintracomm), AT_ONCE, NOTHING, KEPT)
CALL(Lookup_name, (const char *service_name, MPI_Info info, char *port_name), (service_name, info,
     port_name), AT_ONCE, NOTHING, LOST)
CALL(Op_commutative, (MPI_Op op, int *commute), (op, commute), AT_ONCE, NOTHING, LOST)
CALL(Op_create, (MPI_User_function *user_fn, int commute, MPI_Op *op), (user_fn, commute, op),
     AT_ONCE, NOTHING, KEPT)
CALL(Op_free, (MPI_Op *op), (op), AT_ONCE, NOTHING, KEPT)
CALL(Open_port, (MPI_Info info, char *port_name), (info, port_name), AT_ONCE, NOTHING, LOST)
CALL(Pack, (const void *inbuf, int incount, MPI_Datatype datatype, void *outbuf, int outsize, int
     *position, MPI_Comm comm), (inbuf, incount, datatype, outbuf, outsize, position, comm),
     AT_ONCE, NOTHING, LOST)
CALL(Pack_external, (const char *datarep, const void *inbuf, int incount, MPI_Datatype datatype,
     void *outbuf, MPI_Aint outsize, MPI_Aint *position), (datarep, inbuf, incount, datatype,
     outbuf, outsize, position), AT_ONCE, NOTHING, LOST)
CALL(Pack_external_size, (const char *datarep, int incount, MPI_Datatype datatype, MPI_Aint
     *size), (datarep, incount, datatype, size), AT_ONCE, NOTHING, LOST)
CALL(Pack_size, (int incount, MPI_Datatype datatype, MPI_Comm comm, int *size), (incount,
     datatype, comm, size), AT_ONCE, NOTHING, LOST)
CALL(Publish_name, (const char *service_name, MPI_Info info, const char *port_name),
     (service_name, info, port_name), AT_ONCE, NOTHING, LOST)
CALL(Query_thread, (int *provided), (provided), AT_ONCE, NOTHING, LOST)
CALL(Reduce_local, (const void *inbuf, void *inoutbuf, int count, MPI_Datatype datatype, MPI_Op
     op), (inbuf, inoutbuf, count, datatype, op), AT_ONCE, NOTHING, LOST)
CALL(Session_get_info, (MPI_Session session, MPI_Info *info_used), (session, info_used), AT_ONCE,
     NOTHING, LOST)
CALL(Session_get_nth_pset, (MPI_Session session, MPI_Info info, int n, int *pset_len, char
     *pset_name), (session, info, n, pset_len, pset_name), AT_ONCE, NOTHING, LOST)
CALL(Session_get_num_psets, (MPI_Session session, MPI_Info info, int *npset_names), (session,
     info, npset_names), AT_ONCE, NOTHING, LOST)
CALL(Session_get_pset_info, (MPI_Session session, const char *pset_name, MPI_Info *info),
     (session, pset_name, info), AT_ONCE, NOTHING, LOST)
CALL(Test_cancelled, (const MPI_Status *status, int *flag), (status, flag), AT_ONCE, NOTHING,
     LOST)
CALL(Topo_test, (MPI_Comm comm, int *status), (comm, status), AT_ONCE, NOTHING, LOST)
CALL(Type_commit, (MPI_Datatype *datatype), (datatype), AT_ONCE, NOTHING, KEPT)
CALL(Type_contiguous, (int count, MPI_Datatype oldtype, MPI_Datatype *newtype), (count, oldtype,
     newtype), AT_ONCE, NOTHING, KEPT)
CALL(Type_create_darray, (int size, int rank, int ndims, const int array_of_gsizes[], const int
     array_of_distribs[], const int array_of_dargs[], const int array_of_psizes[], int order,
     MPI_Datatype oldtype, MPI_Datatype *newtype), (size, rank, ndims, array_of_gsizes,
     array_of_distribs, array_of_dargs, array_of_psizes, order, oldtype, newtype), AT_ONCE,
     NOTHING, KEPT)
CALL(Type_create_f90_complex, (int p, int r, MPI_Datatype *newtype), (p, r, newtype), AT_ONCE,
     NOTHING, KEPT)
CALL(Type_create_f90_integer, (int r, MPI_Datatype *newtype), (r, newtype), AT_ONCE, NOTHING,
     KEPT)
CALL(Type_create_f90_real, (int p, int r, MPI_Datatype *newtype), (p, r, newtype), AT_ONCE,
     NOTHING, KEPT)
CALL(Type_create_hindexed, (int count, const int array_of_blocklengths[], const MPI_Aint
     array_of_displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype), (count,
     array_of_blocklengths, array_of_displacements, oldtype, newtype), AT_ONCE, NOTHING, KEPT)
CALL(Type_create_hindexed_block, (int count, int blocklength, const MPI_Aint
     array_of_displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype), (count, blocklength,
     array_of_displacements, oldtype, newtype), AT_ONCE, NOTHING, KEPT)
CALL(Type_create_hvector, (int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype,
     MPI_Datatype *newtype), (count, blocklength, stride, oldtype, newtype), AT_ONCE, NOTHING,
     KEPT)
CALL(Type_create_indexed_block, (int count, int blocklength, const int array_of_displacements[],
     MPI_Datatype oldtype, MPI_Datatype *newtype), (count, blocklength, array_of_displacements,
     oldtype, newtype), AT_ONCE, NOTHING, KEPT)
CALL(Type_create_keyval, (MPI_Type_copy_attr_function *type_copy_attr_fn,
     MPI_Type_delete_attr_function *type_delete_attr_fn, int *type_keyval, void *extra_state),
     (type_copy_attr_fn, type_delete_attr_fn, type_keyval, extra_state), AT_ONCE, NOTHING, LOST)
CALL(Type_create_resized, (MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype
     *newtype), (oldtype, lb, extent, newtype), AT_ONCE, NOTHING, KEPT)
CALL(Type_create_struct, (int count, const int array_of_blocklengths[], const MPI_Aint
     array_of_displacements[], const MPI_Datatype array_of_types[], MPI_Datatype *newtype),
     (count, array_of_blocklengths, array_of_displacements, array_of_types, newtype), AT_ONCE,
     NOTHING, KEPT)
CALL(Type_create_subarray, (int ndims, const int array_of_sizes[], const int array_of_subsizes[],
     const int array_of_starts[], int order, MPI_Datatype oldtype, MPI_Datatype *newtype), (ndims,
     array_of_sizes, array_of_subsizes, array_of_starts, order, oldtype, newtype), AT_ONCE,
     NOTHING, KEPT)
CALL(Type_delete_attr, (MPI_Datatype datatype, int type_keyval), (datatype, type_keyval), AT_ONCE,
     NOTHING, LOST)
CALL(Type_dup, (MPI_Datatype oldtype, MPI_Datatype *newtype), (oldtype, newtype), AT_ONCE,
     NOTHING, KEPT)
CALL(Type_free, (MPI_Datatype *datatype), (datatype), AT_ONCE, TYPE_GONE, KEPT)
CALL(Type_free_keyval, (int *type_keyval), (type_keyval), AT_ONCE, NOTHING, LOST)
CALL(Type_get_attr, (MPI_Datatype datatype, int type_keyval, void *attribute_val, int *flag),
     (datatype, type_keyval, attribute_val, flag), AT_ONCE, NOTHING, LOST)
CALL(Type_get_contents, (MPI_Datatype datatype, int max_integers, int max_addresses, int
     max_datatypes, int array_of_integers[], MPI_Aint array_of_addresses[], MPI_Datatype
     array_of_datatypes[]), (datatype, max_integers, max_addresses, max_datatypes,
     array_of_integers, array_of_addresses, array_of_datatypes), AT_ONCE, NOTHING, LOST)
CALL(Type_get_envelope, (MPI_Datatype datatype, int *num_integers, int *num_addresses, int
     *num_datatypes, int *combiner), (datatype, num_integers, num_addresses, num_datatypes,
     combiner), AT_ONCE, NOTHING, LOST)
CALL(Type_get_extent, (MPI_Datatype datatype, MPI_Aint *lb, MPI_Aint *extent), (datatype, lb,
     extent), AT_ONCE, NOTHING, LOST)
CALL(Type_get_extent_x, (MPI_Datatype datatype, MPI_Count *lb, MPI_Count *extent), (datatype, lb,
     extent), AT_ONCE, NOTHING, LOST)
CALL(Type_get_name, (MPI_Datatype datatype, char *type_name, int *resultlen), (datatype,
     type_name, resultlen), AT_ONCE, NOTHING, LOST)
CALL(Type_get_true_extent, (MPI_Datatype datatype, MPI_Aint *true_lb, MPI_Aint *true_extent),
     (datatype, true_lb, true_extent), AT_ONCE, NOTHING, LOST)
CALL(Type_get_true_extent_x, (MPI_Datatype datatype, MPI_Count *true_lb, MPI_Count *true_extent),
     (datatype, true_lb, true_extent), AT_ONCE, NOTHING, LOST)
CALL(Type_indexed, (int count, const int array_of_blocklengths[], const int
     array_of_displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype), (count,
     array_of_blocklengths, array_of_displacements, oldtype, newtype), AT_ONCE, NOTHING, KEPT)
CALL(Type_match_size, (int typeclass, int size, MPI_Datatype *datatype), (typeclass, size,
     datatype), AT_ONCE, NOTHING, LOST)
CALL(Type_set_attr, (MPI_Datatype datatype, int type_keyval, void *attribute_val), (datatype,
     type_keyval, attribute_val), AT_ONCE, NOTHING, LOST)
CALL(Type_set_name, (MPI_Datatype datatype, const char *type_name), (datatype, type_name),
     AT_ONCE, NOTHING, LOST)
CALL(Type_size, (MPI_Datatype datatype, int *size), (datatype, size), AT_ONCE, NOTHING, LOST)
CALL(Type_size_x, (MPI_Datatype datatype, MPI_Count *size), (datatype, size), AT_ONCE, NOTHING,
     LOST)
CALL(Type_vector, (int count, int blocklength, int stride, MPI_Datatype oldtype, MPI_Datatype
     *newtype), (count, blocklength, stride, oldtype, newtype), AT_ONCE, NOTHING, KEPT)
CALL(Unpack, (const void *inbuf, int insize, int *position, void *outbuf, int outcount,
     MPI_Datatype datatype, MPI_Comm comm), (inbuf, insize, position, outbuf, outcount, datatype,
     comm), AT_ONCE, NOTHING, LOST)
CALL(Unpack_external, (const char datarep[], const void *inbuf, MPI_Aint insize, MPI_Aint
     *position, void *outbuf, int outcount, MPI_Datatype datatype), (datarep, inbuf, insize,
     position, outbuf, outcount, datatype), AT_ONCE, NOTHING, LOST)
CALL(Unpublish_name, (const char *service_name, MPI_Info info, const char *port_name),
     (service_name, info, port_name), AT_ONCE, NOTHING, LOST)
#ifndef OPEN_MPI
CALL(Comm_attach_buffer, (MPI_Comm comm, void *buffer, int size), (comm, buffer, size), AT_ONCE,
     NOTHING, LOST)
LARGE(Comm_attach_buffer, (MPI_Comm comm, void *buffer, MPI_Count size), (comm, buffer, size),
     AT_ONCE, NOTHING, LOST)
CALL(Comm_detach_buffer, (MPI_Comm comm, void *buffer_addr, int *size), (comm, buffer_addr, size),
     AT_ONCE, NOTHING, LOST)
LARGE(Comm_detach_buffer, (MPI_Comm comm, void *buffer_addr, MPI_Count *size), (comm, buffer_addr,
     size), AT_ONCE, NOTHING, LOST)
CALL(Comm_flush_buffer, (MPI_Comm comm), (comm), AT_ONCE, NOTHING, LOST)
CALL(Comm_iflush_buffer, (MPI_Comm comm, MPI_Request *request), (comm, request), AT_ONCE, NOTHING,
     LOST)
LARGE(Get_count, (const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count), (status,
     datatype, count), AT_ONCE, NOTHING, LOST)
LARGE(Get_elements, (const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count), (status,
     datatype, count), AT_ONCE, NOTHING, LOST)
LARGE(Pack, (const void *inbuf, MPI_Count incount, MPI_Datatype datatype, void *outbuf, MPI_Count
     outsize, MPI_Count *position, MPI_Comm comm), (inbuf, incount, datatype, outbuf, outsize,
     position, comm), AT_ONCE, NOTHING, LOST)
LARGE(Pack_external, (const char *datarep, const void *inbuf, MPI_Count incount, MPI_Datatype
     datatype, void *outbuf, MPI_Count outsize, MPI_Count *position), (datarep, inbuf, incount,
     datatype, outbuf, outsize, position), AT_ONCE, NOTHING, LOST)
LARGE(Pack_external_size, (const char *datarep, MPI_Count incount, MPI_Datatype datatype,
     MPI_Count *size), (datarep, incount, datatype, size), AT_ONCE, NOTHING, LOST)
LARGE(Pack_size, (MPI_Count incount, MPI_Datatype datatype, MPI_Comm comm, MPI_Count *size),
     (incount, datatype, comm, size), AT_ONCE, NOTHING, LOST)
LARGE(Reduce_local, (const void *inbuf, void *inoutbuf, MPI_Count count, MPI_Datatype datatype,
     MPI_Op op), (inbuf, inoutbuf, count, datatype, op), AT_ONCE, NOTHING, LOST)
CALL(Session_attach_buffer, (MPI_Session session, void *buffer, int size), (session, buffer,
     size), AT_ONCE, NOTHING, LOST)
LARGE(Session_attach_buffer, (MPI_Session session, void *buffer, MPI_Count size), (session,
     buffer, size), AT_ONCE, NOTHING, LOST)
CALL(Session_detach_buffer, (MPI_Session session, void *buffer_addr, int *size), (session,
     buffer_addr, size), AT_ONCE, NOTHING, LOST)
LARGE(Session_detach_buffer, (MPI_Session session, void *buffer_addr, MPI_Count *size), (session,
     buffer_addr, size), AT_ONCE, NOTHING, LOST)
CALL(Session_flush_buffer, (MPI_Session session), (session), AT_ONCE, NOTHING, LOST)
CALL(Session_iflush_buffer, (MPI_Session session, MPI_Request *request), (session, request),
     AT_ONCE, NOTHING, LOST)
LARGE(Type_contiguous, (MPI_Count count, MPI_Datatype oldtype, MPI_Datatype *newtype), (count,
     oldtype, newtype), AT_ONCE, NOTHING, KEPT)
LARGE(Type_create_darray, (int size, int rank, int ndims, const MPI_Count array_of_gsizes[], const
     int array_of_distribs[], const int array_of_dargs[], const int array_of_psizes[], int order,
     MPI_Datatype oldtype, MPI_Datatype *newtype), (size, rank, ndims, array_of_gsizes,
     array_of_distribs, array_of_dargs, array_of_psizes, order, oldtype, newtype), AT_ONCE,
     NOTHING, KEPT)
LARGE(Type_create_hindexed, (MPI_Count count, const MPI_Count array_of_blocklengths[], const
     MPI_Count array_of_displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype), (count,
     array_of_blocklengths, array_of_displacements, oldtype, newtype), AT_ONCE, NOTHING, KEPT)
LARGE(Type_create_hindexed_block, (MPI_Count count, MPI_Count blocklength, const MPI_Count
     array_of_displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype), (count, blocklength,
     array_of_displacements, oldtype, newtype), AT_ONCE, NOTHING, KEPT)
LARGE(Type_create_hvector, (MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype
     oldtype, MPI_Datatype *newtype), (count, blocklength, stride, oldtype, newtype), AT_ONCE,
     NOTHING, KEPT)
LARGE(Type_create_indexed_block, (MPI_Count count, MPI_Count blocklength, const MPI_Count
     array_of_displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype), (count, blocklength,
     array_of_displacements, oldtype, newtype), AT_ONCE, NOTHING, KEPT)
LARGE(Type_create_resized, (MPI_Datatype oldtype, MPI_Count lb, MPI_Count extent, MPI_Datatype
     *newtype), (oldtype, lb, extent, newtype), AT_ONCE, NOTHING, KEPT)
LARGE(Type_create_struct, (MPI_Count count, const MPI_Count array_of_blocklengths[], const
     MPI_Count array_of_displacements[], const MPI_Datatype array_of_types[], MPI_Datatype
     *newtype), (count, array_of_blocklengths, array_of_displacements, array_of_types, newtype),
     AT_ONCE, NOTHING, KEPT)
LARGE(Type_create_subarray, (int ndims, const MPI_Count array_of_sizes[], const MPI_Count
     array_of_subsizes[], const MPI_Count array_of_starts[], int order, MPI_Datatype oldtype,
     MPI_Datatype *newtype), (ndims, array_of_sizes, array_of_subsizes, array_of_starts, order,
     oldtype, newtype), AT_ONCE, NOTHING, KEPT)
LARGE(Type_get_contents, (MPI_Datatype datatype, MPI_Count max_integers, MPI_Count max_addresses,
     MPI_Count max_large_counts, MPI_Count max_datatypes, int array_of_integers[], MPI_Aint
     array_of_addresses[], MPI_Count array_of_large_counts[], MPI_Datatype array_of_datatypes[]),
     (datatype, max_integers, max_addresses, max_large_counts, max_datatypes, array_of_integers,
     array_of_addresses, array_of_large_counts, array_of_datatypes), AT_ONCE, NOTHING, LOST)
LARGE(Type_get_envelope, (MPI_Datatype datatype, MPI_Count *num_integers, MPI_Count
     *num_addresses, MPI_Count *num_large_counts, MPI_Count *num_datatypes, int *combiner),
     (datatype, num_integers, num_addresses, num_large_counts, num_datatypes, combiner), AT_ONCE,
     NOTHING, LOST)
LARGE(Type_get_extent, (MPI_Datatype datatype, MPI_Count *lb, MPI_Count *extent), (datatype, lb,
     extent), AT_ONCE, NOTHING, LOST)
LARGE(Type_get_true_extent, (MPI_Datatype datatype, MPI_Count *true_lb, MPI_Count *true_extent),
     (datatype, true_lb, true_extent), AT_ONCE, NOTHING, LOST)
CALL(Type_get_value_index, (MPI_Datatype value_type, MPI_Datatype index_type, MPI_Datatype
     *pair_type), (value_type, index_type, pair_type), AT_ONCE, NOTHING, LOST)
LARGE(Type_indexed, (MPI_Count count, const MPI_Count array_of_blocklengths[], const MPI_Count
     array_of_displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype), (count,
     array_of_blocklengths, array_of_displacements, oldtype, newtype), AT_ONCE, NOTHING, KEPT)
LARGE(Type_size, (MPI_Datatype datatype, MPI_Count *size), (datatype, size), AT_ONCE, NOTHING,
     LOST)
LARGE(Type_vector, (MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype
     oldtype, MPI_Datatype *newtype), (count, blocklength, stride, oldtype, newtype), AT_ONCE,
     NOTHING, KEPT)
LARGE(Unpack, (const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf, MPI_Count
     outcount, MPI_Datatype datatype, MPI_Comm comm), (inbuf, insize, position, outbuf, outcount,
     datatype, comm), AT_ONCE, NOTHING, LOST)
LARGE(Unpack_external, (const char datarep[], const void *inbuf, MPI_Count insize, MPI_Count
     *position, void *outbuf, MPI_Count outcount, MPI_Datatype datatype), (datarep, inbuf, insize,
     position, outbuf, outcount, datatype), AT_ONCE, NOTHING, LOST)
#endif
