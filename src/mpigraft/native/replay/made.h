/* After calls that made an object: what it is here, and that it is what the record says. */
#ifndef MPIGRAFT_REPLAY_MADE_H
#define MPIGRAFT_REPLAY_MADE_H

#include "acts.h"
#include "../calls/ticks.h"

static int world_rank_of_first(const struct communicator *comm)
{
    int first = 0, world = 0;
    MPI_Group group, all;
    OWN(PMPI_Comm_group(comm->handle, &group));
    OWN(PMPI_Comm_group(MPI_COMM_WORLD, &all));
    OWN(PMPI_Group_translate_ranks(group, 1, &first, all, &world));
    OWN(PMPI_Group_free(&group));
    OWN(PMPI_Group_free(&all));
    return world;
}

/* The same name for a communicator on all its ranks. */
static void agree_on_key(struct communicator *comm)
{
    if (!checks.on || comm->far)
        return;
    uint64_t key = mix((uint64_t)comm->world + 3, ++checks.keys) | 1;
    OWN(PMPI_Bcast(&key, 1, MPI_UINT64_T, 0, comm->handle));
    comm->key = key;
}

static void know_comm(const struct call *call, int64_t id)
{
    struct communicator *comm = comm_of(id);
    if ((comm->handle == MPI_COMM_NULL) != (id == 0))
        DIE("MPI_%s gave %s communicator, unlike the record", call->routine->name, id ? "no" : "a");
    if (!id)
        return;
    describe_comm(comm);
    if (comm->size != call->made.size || comm->rank != call->made.rank ||
        world_rank_of_first(comm) != call->made.first)
        DIE("MPI_%s gave rank %d of %d, and the record has rank %lld of %lld", call->routine->name,
            comm->rank, comm->size, (long long)call->made.rank, (long long)call->made.size);
    agree_on_key(comm);
}

static void know_window(const struct call *call, int64_t id)
{
    struct window *window = window_of(id);
    MPI_Group group;
    int ranks, unit = (int)field_of(call, "disp_unit", 1);
    MPI_Aint size = (MPI_Aint)field_of(call, "size", 0);
    MPI_Comm comm = comm_of(field_of(call, "comm", 0))->handle;
    OWN(PMPI_Win_get_group(window->handle, &group));
    OWN(PMPI_Group_size(group, &ranks));
    OWN(PMPI_Group_free(&group));
    free(window->sizes), free(window->units);
    window->sizes = need((size_t)ranks, sizeof *window->sizes);
    window->units = need((size_t)ranks, sizeof *window->units);
    window->ranks = ranks;
    OWN(PMPI_Allgather(&size, 1, MPI_AINT, window->sizes, 1, MPI_AINT, comm));
    OWN(PMPI_Allgather(&unit, 1, MPI_INT, window->units, 1, MPI_INT, comm));
}

/* That a one-sided call stays in the memory that its target exposes. */
static void check_target(const struct call *call)
{
    const struct window *window = window_of(field_of(call, "win", 0));
    int64_t target = field_of(call, "target_rank", -1), count = field_of(call, "target_count", 1);
    const struct datatype *type = type_of(field_of(call, "target_datatype", field_of(call, "datatype", 0)));
    if (target < 0 || target >= window->ranks || !count || parameter_of(call->routine, "target_disp") < 0)
        return;
    int64_t from = field_of(call, "target_disp", 0) * window->units[target] + (int64_t)type->true_lb;
    int64_t to = from + (count - 1) * (int64_t)type->extent + (int64_t)type->true_extent;
    if (from < 0 || to > window->sizes[target])
        DIE("MPI_%s of the record reaches bytes %lld to %lld of a window of %lld", call->routine->name,
            (long long)from, (long long)to, (long long)window->sizes[target]);
}

/* The memory of MPI_Win_create; freed with the window. */
static char *window_memory(const struct call *call)
{
    struct window *window = window_of(field_of(call, "win", 0));
    int64_t size = field_of(call, "size", 0);
    if (size < 0 || size > LARGEST_AREA)
        DIE("the record has a window of %lld bytes", (long long)size);
    free(window->memory);
    window->memory = need((size_t)size + 1, 1);
    return window->memory;
}

/* A split that gives the communicators of the record, whatever the nodes are here; the ticks that
 * it took. */
static uint64_t split_as_recorded(const struct call *call)
{
    int at = parameter_of(call->routine, "newcomm");
    int64_t id = call->fields[at].value;
    MPI_Comm comm = comm_of(field_of(call, "comm", 0))->handle, made;
    uint64_t from = ticks();
    OK(MPI_Comm_split(comm, id ? (int)call->made.first : MPI_UNDEFINED, (int)call->made.rank, &made));
    uint64_t took = ticks() - from;
    comm_of(id)->handle = made;
    know_comm(call, id);
    return took;
}

/* What came back of a call: objects that are known from now on. */
static void know_objects(const struct call *call, bool complete)
{
    for (int i = 0; i < call->routine->count; i++) {
        int64_t id = call->fields[i].value;
        switch (call->routine->parameters[i].letter) {
        case 'A': describe_type(type_of(id)); break;
        case 'C':
            if (complete)
                know_comm(call, id);
            break;
        case 'E': know_window(call, id); break;
        default: break;
        }
    }
    if (!strcmp(call->routine->name, "Win_free")) {
        struct window *window = window_of(field_of(call, "win", 0));
        free(window->memory);
        window->memory = NULL;
    }
}

#endif
