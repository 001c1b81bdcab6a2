/* What handles mean: the size of a datatype, the ranks of a communicator or window. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "objects.h"

function functions[2][FUNCTIONS];

COLD uint64_t ask_type_size(MPI_Datatype type, uint64_t *size)
{
    MPI_Count bytes = 0; /* an int has no room for 2 GiB */
    PMPI(Type_size_x, int (*)(MPI_Datatype, MPI_Count *))(type, &bytes);
    return *size = bytes > 0 ? (uint64_t)bytes : 0;
}

typedef int translate(MPI_Group, int, const int *, MPI_Group, int *);

/* Ranks of the world for the members of `group`, which it frees. */
void translate_members(struct members *members, MPI_Group group)
{
    int size = 0, *own = NULL;
    PMPI(Group_size, int (*)(MPI_Group, int *))(group, &size);
    members->size = size;
    members->world = malloc(sizeof(int) * (size_t)(size > 0 ? size : 1));
    own = malloc(sizeof(int) * (size_t)(size > 0 ? size : 1));
    if (members->world && own) {
        bool same = size == process.head->size;
        for (int i = 0; i < size; i++)
            own[i] = i;
        PMPI(Group_translate_ranks, translate *)(group, size, own, process.world, members->world);
        for (int i = 0; i < size; i++)
            same = same && members->world[i] == i;
        if (same)
            free(members->world), members->world = NULL;
    }
    free(own);
    PMPI(Group_free, int (*)(MPI_Group *))(&group);
}

static void forget_members(struct members *members)
{
    free(members->world);
    free(members->neighbor);
    *members = (struct members){.handle = 0};
}

static struct members *place_for_members(struct self *me, uint64_t key)
{
    if (!me->members && !(me->members = calloc(MEMBERS, sizeof *me->members)))
        return NULL;
    struct members *best = NULL;
    for (uint64_t i = 0, at = key ^ key >> 5 ^ key >> 11; i < NEAR; i++, at++) {
        struct members *one = &me->members[at % MEMBERS];
        if (one->handle == key)
            return one;
        if (!best || one->generation < best->generation)
            best = one; /* free, or of handles that may mean others by now */
    }
    return best;
}

OUTSIDE struct members *find_members(struct self *me, MPI_Comm comm)
{
    uint64_t key = KEY(comm);
    struct members *members = me->recent = place_for_members(me, key);
    if (!members || (members->handle == key && members->generation == process.generation))
        return members;
    forget_members(members);
    members->handle = key;
    members->generation = process.generation;
    int far = 0;
    MPI_Group group;
    PMPI(Comm_test_inter, int (*)(MPI_Comm, int *))(comm, &far);
    int code = far ? PMPI(Comm_remote_group, ask_group *)(comm, &group)
                   : PMPI(Comm_group, ask_group *)(comm, &group);
    if (!code)
        translate_members(members, group);
    members->own = members->size;
    if (far)
        PMPI(Comm_size, int (*)(MPI_Comm, int *))(comm, &members->own);
    return members;
}

OUTSIDE struct members *members_of_win(struct self *me, MPI_Win win)
{
    uint64_t key = KEY(win) ^ 0x5ul << 60; /* no handle of a communicator */
    struct members *members = place_for_members(me, key);
    if (!members || (members->handle == key && members->generation == process.generation))
        return members;
    forget_members(members);
    members->handle = key;
    members->generation = process.generation;
    MPI_Group group;
    if (!PMPI(Win_get_group, int (*)(MPI_Win, MPI_Group *))(win, &group))
        translate_members(members, group);
    return members;
}

/* ---- neighbors in a topology ---- */

static int cartesian_neighbors(MPI_Comm comm, int **to)
{
    int dims = 0;
    PMPI(Cartdim_get, int (*)(MPI_Comm, int *))(comm, &dims);
    *to = malloc(sizeof(int) * (size_t)(2 * dims + 1));
    for (int i = 0; *to && i < dims; i++)
        PMPI(Cart_shift, int (*)(MPI_Comm, int, int, int *, int *))(comm, i, 1, *to + 2 * i,
                                                                    *to + 2 * i + 1);
    return *to ? 2 * dims : 0;
}

static int graph_neighbors(MPI_Comm comm, int **to)
{
    int rank = 0, count = 0;
    PMPI(Comm_rank, int (*)(MPI_Comm, int *))(comm, &rank);
    PMPI(Graph_neighbors_count, int (*)(MPI_Comm, int, int *))(comm, rank, &count);
    *to = malloc(sizeof(int) * (size_t)(count + 1));
    if (*to)
        PMPI(Graph_neighbors, int (*)(MPI_Comm, int, int, int *))(comm, rank, count, *to);
    return *to ? count : 0;
}

static int dist_graph_neighbors(MPI_Comm comm, int **to, int *in)
{
    int out = 0, weighted = 0;
    PMPI(Dist_graph_neighbors_count, int (*)(MPI_Comm, int *, int *, int *))(comm, in, &out,
                                                                             &weighted);
    int *unused_ranks = malloc(sizeof(int) * (size_t)(*in + 1) * 2);
    int *weights = malloc(sizeof(int) * (size_t)(out + 1));
    *to = malloc(sizeof(int) * (size_t)(out + 1));
    if (*to && unused_ranks && weights)
        PMPI(Dist_graph_neighbors, int (*)(MPI_Comm, int, int *, int *, int, int *, int *))(
            comm, *in, unused_ranks, unused_ranks + *in, out, *to, weights);
    free(unused_ranks);
    free(weights);
    return *to ? out : 0;
}

/* Read the destinations of a communicator with a topology, as its own ranks. */
static void read_neighbors(struct members *members, MPI_Comm comm)
{
    int kind = MPI_UNDEFINED, *to = NULL, count = 0, in = 0;
    PMPI(Topo_test, int (*)(MPI_Comm, int *))(comm, &kind);
    if (kind == MPI_CART)
        in = count = cartesian_neighbors(comm, &to);
    else if (kind == MPI_GRAPH)
        in = count = graph_neighbors(comm, &to);
    else if (kind == MPI_DIST_GRAPH)
        count = dist_graph_neighbors(comm, &to, &in);
    members->neighbors = count;
    members->sources = in;
    members->neighbor = to ? to : malloc(sizeof(int));
}

OUTSIDE struct members *with_neighbors(struct members *members, MPI_Comm comm)
{
    if (members && !members->neighbor)
        read_neighbors(members, comm);
    return members;
}

enum { CALLERS = 256 }; /* a power of two */

/* Return addresses whose answer is known, shifted by one, and the answer in the bit that is free.
 * Each is of one routine. Any thread may write the same again. */
static uint64_t known_callers[CALLERS];

static bool is_fortran_library(const char *path)
{
    static const char *const names[] = {"libmpi_mpifh", "libmpi_usempi", "libmpifort", "libmpichf"};
    const char *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(base, names[i], strlen(names[i])))
            return true;
    return false;
}

/* Whether the code at `address` is of a Fortran library, and of another routine than `name`. */
__attribute__((noinline, cold)) static bool find_own_query(const void *address, const char *name)
{
    Dl_info info;
    return dladdr(address, &info) && info.dli_fname && is_fortran_library(info.dli_fname) &&
           info.dli_sname && !strcasestr(info.dli_sname, name);
}

bool is_own_query(const void *address, const char *name)
{
    uint64_t key = (uint64_t)(uintptr_t)address << 1; /* addresses end below 2^57 */
    uint64_t *place = &known_callers[((key >> 3) ^ (key >> 12)) % CALLERS];
    uint64_t seen = __atomic_load_n(place, __ATOMIC_RELAXED);
    if (seen >> 1 == key >> 1)
        return seen & 1;
    bool own = find_own_query(address, name);
    __atomic_store_n(place, key | own, __ATOMIC_RELAXED);
    return own;
}
