/* Objects by the numbers that the record gives them, and what a replay has to know of each. */
#include "replay.h"

struct call;
struct kept;

struct objects objects;

void describe_type(struct datatype *type)
{
    MPI_Count lb;
    OWN(PMPI_Type_get_extent_x(type->handle, &lb, &type->extent));
    OWN(PMPI_Type_get_true_extent_x(type->handle, &type->true_lb, &type->true_extent));
    OWN(PMPI_Type_size_x(type->handle, &type->size));
    objects.generation++;
}

/* One of MPI's own; of those that an MPI has no size for, its languages have no such type. */
static void describe_predefined(struct datatype *type, MPI_Datatype handle)
{
    MPI_Count size;
    bool here = handle != MPI_DATATYPE_NULL && !PMPI_Type_size_x(handle, &size);
    type->handle = here ? handle : MPI_DATATYPE_NULL;
    if (here)
        describe_type(type);
}

static void count_neighbors(struct communicator *comm)
{
    int kind = MPI_UNDEFINED, dimensions = 0, weighted;
    comm->in = comm->out = 0;
    comm->absent = 0;
    OWN(PMPI_Topo_test(comm->handle, &kind));
    if (kind == MPI_CART) {
        OWN(PMPI_Cartdim_get(comm->handle, &dimensions));
        comm->in = comm->out = 2 * dimensions;
        for (int i = 0, near[2]; i < dimensions && i < 32; i++) {
            OWN(PMPI_Cart_shift(comm->handle, i, 1, &near[0], &near[1]));
            comm->absent |= (uint64_t)(near[0] == MPI_PROC_NULL) << 2 * i;
            comm->absent |= (uint64_t)(near[1] == MPI_PROC_NULL) << (2 * i + 1);
        }
    } else if (kind == MPI_GRAPH) {
        OWN(PMPI_Graph_neighbors_count(comm->handle, comm->rank, &comm->in));
        comm->out = comm->in;
    } else if (kind == MPI_DIST_GRAPH)
        OWN(PMPI_Dist_graph_neighbors_count(comm->handle, &comm->in, &comm->out, &weighted));
}

void describe_comm(struct communicator *comm)
{
    int both = 0;
    comm->key = comm->collectives = 0;
    comm->far = 0;
    OWN(PMPI_Comm_rank(comm->handle, &comm->rank));
    OWN(PMPI_Comm_size(comm->handle, &comm->size));
    OWN(PMPI_Comm_test_inter(comm->handle, &both));
    if (both)
        OWN(PMPI_Comm_remote_size(comm->handle, &comm->far));
    else
        count_neighbors(comm);
    OWN(PMPI_Comm_rank(MPI_COMM_WORLD, &comm->world));
    objects.generation++;
}

void make_predefined(void)
{
    MPI_Datatype types[] = {
#define TYPE(name, end) MPI_##name,
        PREDEFINED_TYPES(TYPE)
#undef TYPE
    };
    MPI_Op ops[] = {
#define OP(name, end) MPI_##name,
        PREDEFINED_OPS(OP)
#undef OP
    };
    OWN(PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OWN(PMPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        describe_predefined(&objects.predefined_types[i], types[i]);
    OWN(PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    OWN(PMPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        objects.predefined_ops[i] = ops[i];
    objects.predefined_comms[0].handle = MPI_COMM_WORLD;
    objects.predefined_comms[1].handle = MPI_COMM_SELF;
    for (int i = 0; i < 2; i++) {
        describe_comm(&objects.predefined_comms[i]);
        objects.predefined_comms[i].key = (uint64_t)i + 1;
    }
    objects.no_type.handle = MPI_DATATYPE_NULL;
    objects.no_comm.handle = MPI_COMM_NULL;
    objects.no_window.handle = MPI_WIN_NULL;
    objects.no_message.handle = MPI_MESSAGE_NULL;
    objects.no_op = MPI_OP_NULL;
    objects.no_group = MPI_GROUP_NULL;
    objects.empty_group = MPI_GROUP_EMPTY;
}

void make_tables(void)
{
    const int64_t *most = objects.most;
    objects.types = need((size_t)most[TYPES_OF] + 1, sizeof *objects.types);
    objects.comms = need((size_t)most[COMMS_OF] + 1, sizeof *objects.comms);
    objects.groups = need((size_t)most[GROUPS_OF] + 1, sizeof *objects.groups);
    objects.ops = need((size_t)most[OPS_OF] + 1, sizeof *objects.ops);
    objects.windows = need((size_t)most[WINS_OF] + 1, sizeof *objects.windows);
    objects.messages = need((size_t)most[MESSAGES_OF] + 1, sizeof *objects.messages);
    objects.requests = need((size_t)most[REQUESTS_OF] + 1, sizeof *objects.requests);
    for (int64_t i = 0; i <= most[TYPES_OF]; i++)
        objects.types[i].handle = MPI_DATATYPE_NULL;
    for (int64_t i = 0; i <= most[COMMS_OF]; i++)
        objects.comms[i].handle = MPI_COMM_NULL;
    for (int64_t i = 0; i <= most[GROUPS_OF]; i++)
        objects.groups[i] = MPI_GROUP_NULL;
    for (int64_t i = 0; i <= most[OPS_OF]; i++)
        objects.ops[i] = MPI_OP_NULL;
    for (int64_t i = 0; i <= most[WINS_OF]; i++)
        objects.windows[i].handle = MPI_WIN_NULL;
    for (int64_t i = 0; i <= most[MESSAGES_OF]; i++)
        objects.messages[i].handle = MPI_MESSAGE_NULL;
    for (int64_t i = 0; i <= most[REQUESTS_OF]; i++)
        objects.requests[i].handle = MPI_REQUEST_NULL;
}

/* ---- by number: 0 none, > 0 made, < 0 predefined ---- */

struct datatype *type_of(int64_t id)
{
    return id > 0 ? &objects.types[id] : id < 0 ? &objects.predefined_types[-1 - id] : &objects.no_type;
}

struct communicator *comm_of(int64_t id)
{
    return id > 0 ? &objects.comms[id] : id < 0 ? &objects.predefined_comms[-1 - id] : &objects.no_comm;
}

MPI_Group *group_of(int64_t id)
{
    return id > 0 ? &objects.groups[id] : id < 0 ? &objects.empty_group : &objects.no_group;
}

MPI_Op *op_of(int64_t id)
{
    return id > 0 ? &objects.ops[id] : id < 0 ? &objects.predefined_ops[-1 - id] : &objects.no_op;
}

struct window *window_of(int64_t id)
{
    return id > 0 ? &objects.windows[id] : &objects.no_window;
}

struct message *message_of(int64_t id)
{
    return id > 0 ? &objects.messages[id] : &objects.no_message;
}

/* How many objects of a class are predefined. */
int64_t predefined_of(enum class class)
{
    enum {
#define ONE(name, end) +1
        TYPE_COUNT = PREDEFINED_TYPES(ONE),
        OP_COUNT = PREDEFINED_OPS(ONE),
        COMM_COUNT = PREDEFINED_COMMS(ONE),
        GROUP_COUNT = PREDEFINED_GROUPS(ONE),
#undef ONE
    };
    static const int64_t counts[CLASSES] = {[TYPES_OF] = TYPE_COUNT, [OPS_OF] = OP_COUNT,
                                            [COMMS_OF] = COMM_COUNT, [GROUPS_OF] = GROUP_COUNT};
    return counts[class];
}
