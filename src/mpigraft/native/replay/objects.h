/* Objects by the numbers that the record gives them, and what a replay has to know of each. */
#ifndef MPIGRAFT_REPLAY_OBJECTS_H
#define MPIGRAFT_REPLAY_OBJECTS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "../common/check.h"
#include "../calls/record_file.h"

enum { MOST_OBJECTS = 1 << 24, PREDEFINED = 128 }; /* of one class */

struct datatype {
    MPI_Datatype handle;
    MPI_Count extent, true_lb, true_extent, size;
};

struct communicator {
    MPI_Comm handle;
    int rank, size, far; /* `far`: ranks of the other side; 0: there is one side */
    int in, out;         /* neighbors */
    uint64_t absent;     /* by bits: neighbors that are MPI_PROC_NULL */
    int world;           /* this rank's in the world */
    uint64_t key;        /* the same on all ranks, of each communicator another; 0: not known */
    uint64_t collectives;
};

struct window {
    MPI_Win handle;
    char *memory; /* NULL: the MPI's own */
    MPI_Aint *sizes;
    int *units, ranks;
};

struct area {
    char *memory;
    size_t bytes;
    bool taken, window;
};

struct call;
struct kept;

enum { MOST_BUFFERS = 3 }; /* of a call: MPI_Compare_and_swap's */

/* A call that is being made: what it has for itself until it is complete. */
struct act {
    struct call *call;
    struct kept *kept; /* objects that may be freed before (acts.h) */
    struct area *areas[MOST_BUFFERS];
    char *buffers[MOST_BUFFERS]; /* as MPI has them */
    uint64_t number;   /* of its message or collective; 0: it is not checked */
    int64_t source, tag; /* of what it receives, without wildcards */
};

struct request {
    MPI_Request handle;
    bool live, persistent, active, wild;
    bool early; /* complete by a call that any one of several completes */
    bool owed;  /* and before the program: the next such call has nothing to wait for */
    struct act act;
};

struct message {
    MPI_Message handle;
    struct communicator *comm;
    int64_t source, tag;
    uint64_t number;
};

/* Numbers of each class that the record has; tables are that long. */
enum class { TYPES_OF, COMMS_OF, GROUPS_OF, OPS_OF, WINS_OF, MESSAGES_OF, REQUESTS_OF, CLASSES };

static struct objects {
    int64_t most[CLASSES];
    struct datatype *types, predefined_types[PREDEFINED];
    struct communicator *comms, predefined_comms[2];
    MPI_Group *groups, no_group, empty_group;
    MPI_Op *ops, predefined_ops[PREDEFINED];
    struct window *windows;
    struct message *messages;
    struct request *requests;
    struct datatype no_type;
    struct communicator no_comm;
    struct window no_window;
    struct message no_message;
    MPI_Op no_op;
    uint64_t generation; /* changes when a type or a communicator is made */
} objects;

static void describe_type(struct datatype *type)
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

static void describe_comm(struct communicator *comm)
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

static void make_predefined(void)
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

static void make_tables(void)
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

static struct datatype *type_of(int64_t id)
{
    return id > 0 ? &objects.types[id] : id < 0 ? &objects.predefined_types[-1 - id] : &objects.no_type;
}

static struct communicator *comm_of(int64_t id)
{
    return id > 0 ? &objects.comms[id] : id < 0 ? &objects.predefined_comms[-1 - id] : &objects.no_comm;
}

static MPI_Group *group_of(int64_t id)
{
    return id > 0 ? &objects.groups[id] : id < 0 ? &objects.empty_group : &objects.no_group;
}

static MPI_Op *op_of(int64_t id)
{
    return id > 0 ? &objects.ops[id] : id < 0 ? &objects.predefined_ops[-1 - id] : &objects.no_op;
}

static struct window *window_of(int64_t id)
{
    return id > 0 ? &objects.windows[id] : &objects.no_window;
}

static struct message *message_of(int64_t id)
{
    return id > 0 ? &objects.messages[id] : &objects.no_message;
}

/* How many objects of a class are predefined. */
static int64_t predefined_of(enum class class)
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

#endif
