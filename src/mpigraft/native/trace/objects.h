/* What handles mean: the size of a datatype, the ranks of a communicator or window. */
#ifndef MPIGRAFT_TRACE_OBJECTS_H
#define MPIGRAFT_TRACE_OBJECTS_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "../preload/next_mpi.h"
#include "self.h"

/* The functions that a call goes on to: [0] MPI_X, or what another tool has under this name;
 * [1] PMPI_X, for what MPI or such a tool calls inside of a call that is counted. */
extern function functions[2][FUNCTIONS];

COLD function find_function(int profiled, int number);

static inline function next_function(int profiled, int number)
{
    function known = functions[profiled][number];
    return __builtin_expect(known != NULL, 1) ? known : find_function(profiled, number);
}

#define PMPI(name, type) ((type)next_function(1, F_##name))

#define KEY(handle) ((uint64_t)(uintptr_t)(handle))

COLD uint64_t ask_type_size(MPI_Datatype type, uint64_t *size);

/* Bytes of data in one item; MPI counts no holes. */
static inline uint64_t type_size(struct self *me, MPI_Datatype type)
{
    uint64_t key = KEY(type);
    size_t place = (key ^ key >> 6 ^ key >> 12) % TYPES;
    if (me->types[place].type == key && me->types[place].generation == process.types)
        return me->types[place].size;
    me->types[place].type = key;
    me->types[place].generation = process.types;
    return ask_type_size(type, &me->types[place].size);
}

typedef int ask_group(MPI_Comm, MPI_Group *);

void translate_members(struct members *members, MPI_Group group);
struct members *find_members(struct self *me, MPI_Comm comm);

static inline struct members *members_of_comm(struct self *me, MPI_Comm comm)
{
    struct members *recent = me->recent;
    if (recent && recent->handle == KEY(comm) && recent->generation == process.generation)
        return recent;
    return find_members(me, comm);
}

struct members *members_of_win(struct self *me, MPI_Win win);

/* Rank of the world; -1: it is in none, as one of a job that was spawned. */
static inline int world_rank(const struct members *members, int rank)
{
    if (!members || rank < 0 || rank >= members->size)
        return -1;
    int world = members->world ? members->world[rank] : rank;
    return world < process.head->size ? world : -1;
}

/* ---- neighbors in a topology ---- */

struct members *with_neighbors(struct members *members, MPI_Comm comm);

/* How many blocks a collective has for others, and the rank of the i-th. */
enum place { OTHERS, NEIGHBORS };

static inline int block_count(enum place place, const struct members *members)
{
    return !members ? 0 : place == OTHERS ? members->size : members->neighbors;
}

/* Blocks that a rank takes. */
static inline int taken_count(enum place place, const struct members *members)
{
    return !members ? 0 : place == OTHERS ? members->size : members->sources;
}

static inline int own_count(const struct members *members)
{
    return members ? members->own : 0;
}

static inline int block_rank(enum place place, const struct members *members, int i)
{
    return place == OTHERS ? i : members->neighbor[i];
}

/* What a Fortran library queries for itself. To know how long an array of its caller is, it calls
 * three routines by the same names as a program would: Open MPI's mpi_alltoallw_ and
 * mpi_cart_coords_ call PMPI_Comm_size and PMPI_Cartdim_get, MPICH's the MPI_ names. Who calls
 * tells them apart: the function for MPI_COMM_SIZE itself passes its caller's query on. */

bool is_own_query(const void *address, const char *name);

/* Known when it is compiled: other routines pay nothing. */
#define IS_QUERY(routine) \
    ((routine) == R_Comm_size || (routine) == R_Cartdim_get || (routine) == R_Topo_test)
#define OWN_QUERY(routine, name) \
    (IS_QUERY(routine) && is_own_query(__builtin_return_address(0), name))

#endif
