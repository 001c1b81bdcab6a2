/* Made by tools/write_calls.py of MPICH's mpi_proto.h: not to be edited. */
#define FIELDS_Cart_create "ciIIiC"
#define IN_Cart_create \
    put_known_handle(COMM, KEY(comm_old)); put_integer((int64_t)(ndims)); \
    PUT_INTEGERS(dims, ndims); PUT_INTEGERS(periods, ndims); put_integer((int64_t)(reorder));
#define OUT_Cart_create put_new_comm(*comm_cart, IS_NO_COMM(*comm_cart));
#define FIELDS_Cart_sub "cIC"
#define IN_Cart_sub put_known_handle(COMM, KEY(comm)); PUT_INTEGERS(remain_dims, dims_of(comm));
#define OUT_Cart_sub put_new_comm(*newcomm, IS_NO_COMM(*newcomm));
#define FIELDS_Comm_create "cgC"
#define IN_Comm_create put_known_handle(COMM, KEY(comm)); put_known_handle(GROUP, KEY(group));
#define OUT_Comm_create put_new_comm(*newcomm, IS_NO_COMM(*newcomm));
#define FIELDS_Comm_create_group "cgkC"
#define IN_Comm_create_group \
    put_known_handle(COMM, KEY(comm)); put_known_handle(GROUP, KEY(group)); put_tag(tag);
#define OUT_Comm_create_group put_new_comm(*newcomm, IS_NO_COMM(*newcomm));
#define FIELDS_Comm_disconnect "c"
#define IN_Comm_disconnect put_last(COMM, KEY(*comm));
#define OUT_Comm_disconnect
#define FIELDS_Comm_dup "cC"
#define IN_Comm_dup put_known_handle(COMM, KEY(comm));
#define OUT_Comm_dup put_new_comm(*newcomm, IS_NO_COMM(*newcomm));
#define FIELDS_Comm_dup_with_info "cC"
#define IN_Comm_dup_with_info put_known_handle(COMM, KEY(comm));
#define OUT_Comm_dup_with_info put_new_comm(*newcomm, IS_NO_COMM(*newcomm));
#define FIELDS_Comm_free "c"
#define IN_Comm_free put_last(COMM, KEY(*comm));
#define OUT_Comm_free
#define FIELDS_Comm_group "cB"
#define IN_Comm_group put_known_handle(COMM, KEY(comm));
#define OUT_Comm_group put_new(GROUP, KEY(*group));
#define FIELDS_Comm_idup "cCH"
#define IN_Comm_idup put_known_handle(COMM, KEY(comm));
#define OUT_Comm_idup \
    put_new_comm(*newcomm, IS_NO_COMM(*newcomm)); put_new(REQUEST, KEY(*request));
#define FIELDS_Comm_idup_with_info "cCH"
#define IN_Comm_idup_with_info put_known_handle(COMM, KEY(comm));
#define OUT_Comm_idup_with_info \
    put_new_comm(*newcomm, IS_NO_COMM(*newcomm)); put_new(REQUEST, KEY(*request));
#define FIELDS_Comm_remote_group "cB"
#define IN_Comm_remote_group put_known_handle(COMM, KEY(comm));
#define OUT_Comm_remote_group put_new(GROUP, KEY(*group));
#define FIELDS_Comm_split "ciiC"
#define IN_Comm_split \
    put_known_handle(COMM, KEY(comm)); put_integer((int64_t)(color)); \
    put_integer((int64_t)(key));
#define OUT_Comm_split put_new_comm(*newcomm, IS_NO_COMM(*newcomm));
#define FIELDS_Comm_split_type "ciiC"
#define IN_Comm_split_type \
    put_known_handle(COMM, KEY(comm)); put_integer((int64_t)(split_type)); \
    put_integer((int64_t)(key));
#define OUT_Comm_split_type put_new_comm(*newcomm, IS_NO_COMM(*newcomm));
#define FIELDS_Dist_graph_create "ciIIIiC"
#define IN_Dist_graph_create \
    put_known_handle(COMM, KEY(comm_old)); put_integer((int64_t)(n)); \
    PUT_INTEGERS(sources, n); PUT_INTEGERS(degrees, n); \
    PUT_INTEGERS(destinations, sum_of(degrees, n)); put_integer((int64_t)(reorder));
#define OUT_Dist_graph_create put_new_comm(*comm_dist_graph, IS_NO_COMM(*comm_dist_graph));
#define FIELDS_Dist_graph_create_adjacent "ciIiIiC"
#define IN_Dist_graph_create_adjacent \
    put_known_handle(COMM, KEY(comm_old)); put_integer((int64_t)(indegree)); \
    PUT_INTEGERS(sources, indegree); put_integer((int64_t)(outdegree)); \
    PUT_INTEGERS(destinations, outdegree); put_integer((int64_t)(reorder));
#define OUT_Dist_graph_create_adjacent \
    put_new_comm(*comm_dist_graph, IS_NO_COMM(*comm_dist_graph));
#define FIELDS_Graph_create "ciIIiC"
#define IN_Graph_create \
    put_known_handle(COMM, KEY(comm_old)); put_integer((int64_t)(nnodes)); \
    PUT_INTEGERS(indx, nnodes); PUT_INTEGERS(edges, nnodes > 0 ? indx[nnodes - 1] : 0); \
    put_integer((int64_t)(reorder));
#define OUT_Graph_create put_new_comm(*comm_graph, IS_NO_COMM(*comm_graph));
#define FIELDS_Group_difference "ggB"
#define IN_Group_difference \
    put_known_handle(GROUP, KEY(group1)); put_known_handle(GROUP, KEY(group2));
#define OUT_Group_difference put_new(GROUP, KEY(*newgroup));
#define FIELDS_Group_excl "giIB"
#define IN_Group_excl \
    put_known_handle(GROUP, KEY(group)); put_integer((int64_t)(n)); PUT_INTEGERS(ranks, n);
#define OUT_Group_excl put_new(GROUP, KEY(*newgroup));
#define FIELDS_Group_free "g"
#define IN_Group_free put_last(GROUP, KEY(*group));
#define OUT_Group_free
#define FIELDS_Group_incl "giIB"
#define IN_Group_incl \
    put_known_handle(GROUP, KEY(group)); put_integer((int64_t)(n)); PUT_INTEGERS(ranks, n);
#define OUT_Group_incl put_new(GROUP, KEY(*newgroup));
#define FIELDS_Group_intersection "ggB"
#define IN_Group_intersection \
    put_known_handle(GROUP, KEY(group1)); put_known_handle(GROUP, KEY(group2));
#define OUT_Group_intersection put_new(GROUP, KEY(*newgroup));
#define FIELDS_Group_range_excl "giIB"
#define IN_Group_range_excl \
    put_known_handle(GROUP, KEY(group)); put_integer((int64_t)(n)); \
    PUT_INTEGERS((&ranges[0][0]), 3 * n);
#define OUT_Group_range_excl put_new(GROUP, KEY(*newgroup));
#define FIELDS_Group_range_incl "giIB"
#define IN_Group_range_incl \
    put_known_handle(GROUP, KEY(group)); put_integer((int64_t)(n)); \
    PUT_INTEGERS((&ranges[0][0]), 3 * n);
#define OUT_Group_range_incl put_new(GROUP, KEY(*newgroup));
#define FIELDS_Group_union "ggB"
#define IN_Group_union put_known_handle(GROUP, KEY(group1)); put_known_handle(GROUP, KEY(group2));
#define OUT_Group_union put_new(GROUP, KEY(*newgroup));
#define FIELDS_Intercomm_create "cicikC"
#define IN_Intercomm_create \
    put_known_handle(COMM, KEY(local_comm)); put_integer((int64_t)(local_leader)); \
    put_known_handle(COMM, KEY(peer_comm)); put_integer((int64_t)(remote_leader)); \
    put_tag(tag);
#define OUT_Intercomm_create put_new_comm(*newintercomm, IS_NO_COMM(*newintercomm));
#define FIELDS_Intercomm_merge "ciC"
#define IN_Intercomm_merge put_known_handle(COMM, KEY(intercomm)); put_integer((int64_t)(high));
#define OUT_Intercomm_merge put_new_comm(*newintracomm, IS_NO_COMM(*newintracomm));
#define FIELDS_Op_create "iD"
#define IN_Op_create put_integer((int64_t)(commute));
#define OUT_Op_create put_new(OP, KEY(*op));
#define FIELDS_Op_free "o"
#define IN_Op_free put_last(OP, KEY(*op));
#define OUT_Op_free
#define FIELDS_Type_commit "t"
#define IN_Type_commit put_known_handle(TYPE, KEY(*datatype));
#define OUT_Type_commit
#define FIELDS_Type_contiguous "itA"
#define IN_Type_contiguous put_integer((int64_t)(count)); put_known_handle(TYPE, KEY(oldtype));
#define OUT_Type_contiguous put_new(TYPE, KEY(*newtype));
#define FIELDS_Type_create_darray "iiiIIIIitA"
#define IN_Type_create_darray \
    put_integer((int64_t)(size)); put_integer((int64_t)(rank)); put_integer((int64_t)(ndims)); \
    PUT_INTEGERS(array_of_gsizes, ndims); PUT_INTEGERS(array_of_distribs, ndims); \
    PUT_INTEGERS(array_of_dargs, ndims); PUT_INTEGERS(array_of_psizes, ndims); \
    put_integer((int64_t)(order)); put_known_handle(TYPE, KEY(oldtype));
#define OUT_Type_create_darray put_new(TYPE, KEY(*newtype));
#define FIELDS_Type_create_f90_complex "iiA"
#define IN_Type_create_f90_complex put_integer((int64_t)(p)); put_integer((int64_t)(r));
#define OUT_Type_create_f90_complex put_new(TYPE, KEY(*newtype));
#define FIELDS_Type_create_f90_integer "iA"
#define IN_Type_create_f90_integer put_integer((int64_t)(r));
#define OUT_Type_create_f90_integer put_new(TYPE, KEY(*newtype));
#define FIELDS_Type_create_f90_real "iiA"
#define IN_Type_create_f90_real put_integer((int64_t)(p)); put_integer((int64_t)(r));
#define OUT_Type_create_f90_real put_new(TYPE, KEY(*newtype));
#define FIELDS_Type_create_hindexed "iIItA"
#define IN_Type_create_hindexed \
    put_integer((int64_t)(count)); PUT_INTEGERS(array_of_blocklengths, count); \
    PUT_INTEGERS(array_of_displacements, count); put_known_handle(TYPE, KEY(oldtype));
#define OUT_Type_create_hindexed put_new(TYPE, KEY(*newtype));
#define FIELDS_Type_create_hindexed_block "iiItA"
#define IN_Type_create_hindexed_block \
    put_integer((int64_t)(count)); put_integer((int64_t)(blocklength)); \
    PUT_INTEGERS(array_of_displacements, count); put_known_handle(TYPE, KEY(oldtype));
#define OUT_Type_create_hindexed_block put_new(TYPE, KEY(*newtype));
#define FIELDS_Type_create_hvector "iiitA"
#define IN_Type_create_hvector \
    put_integer((int64_t)(count)); put_integer((int64_t)(blocklength)); \
    put_integer((int64_t)(stride)); put_known_handle(TYPE, KEY(oldtype));
#define OUT_Type_create_hvector put_new(TYPE, KEY(*newtype));
#define FIELDS_Type_create_indexed_block "iiItA"
#define IN_Type_create_indexed_block \
    put_integer((int64_t)(count)); put_integer((int64_t)(blocklength)); \
    PUT_INTEGERS(array_of_displacements, count); put_known_handle(TYPE, KEY(oldtype));
#define OUT_Type_create_indexed_block put_new(TYPE, KEY(*newtype));
#define FIELDS_Type_create_resized "tiiA"
#define IN_Type_create_resized \
    put_known_handle(TYPE, KEY(oldtype)); put_integer((int64_t)(lb)); \
    put_integer((int64_t)(extent));
#define OUT_Type_create_resized put_new(TYPE, KEY(*newtype));
#define FIELDS_Type_create_struct "iIITA"
#define IN_Type_create_struct \
    put_integer((int64_t)(count)); PUT_INTEGERS(array_of_blocklengths, count); \
    PUT_INTEGERS(array_of_displacements, count); PUT_TYPES(array_of_types, count);
#define OUT_Type_create_struct put_new(TYPE, KEY(*newtype));
#define FIELDS_Type_create_subarray "iIIIitA"
#define IN_Type_create_subarray \
    put_integer((int64_t)(ndims)); PUT_INTEGERS(array_of_sizes, ndims); \
    PUT_INTEGERS(array_of_subsizes, ndims); PUT_INTEGERS(array_of_starts, ndims); \
    put_integer((int64_t)(order)); put_known_handle(TYPE, KEY(oldtype));
#define OUT_Type_create_subarray put_new(TYPE, KEY(*newtype));
#define FIELDS_Type_dup "tA"
#define IN_Type_dup put_known_handle(TYPE, KEY(oldtype));
#define OUT_Type_dup put_new(TYPE, KEY(*newtype));
#define FIELDS_Type_free "t"
#define IN_Type_free put_last(TYPE, KEY(*datatype));
#define OUT_Type_free
#define FIELDS_Type_indexed "iIItA"
#define IN_Type_indexed \
    put_integer((int64_t)(count)); PUT_INTEGERS(array_of_blocklengths, count); \
    PUT_INTEGERS(array_of_displacements, count); put_known_handle(TYPE, KEY(oldtype));
#define OUT_Type_indexed put_new(TYPE, KEY(*newtype));
#define FIELDS_Type_vector "iiitA"
#define IN_Type_vector \
    put_integer((int64_t)(count)); put_integer((int64_t)(blocklength)); \
    put_integer((int64_t)(stride)); put_known_handle(TYPE, KEY(oldtype));
#define OUT_Type_vector put_new(TYPE, KEY(*newtype));
