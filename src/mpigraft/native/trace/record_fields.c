/* What a rank writes of a call: the fields of its signature (record_file.h).
 *
 * What goes into a call is written down before it, since handles are gone after it; what came out
 * after it.
 */
#include <stdlib.h>

#include "recorder.h"

/* ---- numbers ---- */

static void put_byte(unsigned char byte)
{
    if (event.length == event.room) {
        size_t room = event.room ? 2 * event.room : 256;
        unsigned char *more = realloc(event.bytes, room);
        if (!more)
            return;
        event.bytes = more;
        event.room = room;
    }
    event.bytes[event.length++] = byte;
}

void put_unsigned(uint64_t value)
{
    for (; value > 127; value >>= 7)
        put_byte((unsigned char)(value | 128));
    put_byte((unsigned char)value);
}

OUTSIDE void put_integer(int64_t value)
{
    put_unsigned((uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

OUTSIDE void put_rank(int rank)
{
    event.any |= rank == MPI_ANY_SOURCE;
    put_integer(rank == MPI_PROC_NULL    ? RANK_OF_NULL
                : rank == MPI_ANY_SOURCE ? RANK_ANY
                : rank == MPI_ROOT       ? RANK_OF_ROOT
                : rank < 0               ? RANK_UNDEFINED
                                         : rank);
}

OUTSIDE void put_tag(int tag)
{
    event.any |= tag == MPI_ANY_TAG;
    put_integer(tag == MPI_ANY_TAG ? -1 : tag);
}

OUTSIDE void put_address(const void *address)
{
    put_integer(address == MPI_IN_PLACE ? 1 : !address ? 2 : 0);
}

/* ---- handles ---- */

#ifdef OPEN_MPI
#define OWN_OBJECT(mpi, class, own) open_mpi_object("ompi_mpi_" class #own)
#else
#define OWN_OBJECT(mpi, class, own) mpi
#endif

/* Predefined handles have the negative numbers. */
void know(enum class class, uint64_t handle, int place)
{
    if (!find_known(&recorder.ids[class], handle))
        put_known(&recorder.ids[class], (struct known){handle, (uint32_t)(-1 - place), 0});
}

void know_predefined(void)
{
    int place = 0;
#define TYPE(mpi, own) know(TYPE, KEY(OWN_OBJECT(MPI_##mpi, "", own)), place++);
    PREDEFINED_TYPES(TYPE)
#undef TYPE
    place = 0;
#define OP(mpi, own) know(OP, KEY(OWN_OBJECT(MPI_##mpi, "op_", own)), place++);
    PREDEFINED_OPS(OP)
#undef OP
    place = 0;
#define COMM(mpi, own) know(COMM, KEY(OWN_OBJECT(MPI_COMM_##mpi, "comm_", own)), place++);
    PREDEFINED_COMMS(COMM)
#undef COMM
    place = 0;
#define GROUP(mpi, own) know(GROUP, KEY(OWN_OBJECT(MPI_GROUP_##mpi, "group_", own)), place++);
    PREDEFINED_GROUPS(GROUP)
#undef GROUP
}

OUTSIDE void put_known_handle(enum class class, uint64_t handle)
{
    pthread_mutex_lock(&recorder.lock);
    struct known *known = find_known(&recorder.ids[class], handle);
    int32_t id = known ? (int32_t)known->id : 0;
    event.stray |= !id && (class == COMM || class == GROUP || class == WIN);
    pthread_mutex_unlock(&recorder.lock);
    put_integer(id);
}

/* The same for receives that are given the same; never 0. */
static uint32_t kind_of_event(void)
{
    uint32_t kind = UINT32_C(0x811c9dc5);
    for (size_t i = 0; i < event.length; i++)
        kind = (kind ^ event.bytes[i]) * UINT32_C(0x01000193);
    return kind | 1;
}

/* The handle that a call gives back: a number for it, unless it is predefined. */
OUTSIDE void put_new(enum class class, uint64_t handle)
{
    pthread_mutex_lock(&recorder.lock);
    struct known *known = class == REQUEST ? NULL : find_known(&recorder.ids[class], handle);
    if (class == GROUP && known && (int32_t)known->id > 0)
        known = NULL; /* Open MPI gives a group again, to be freed as often */
    int32_t id = known ? (int32_t)known->id
                       : (int32_t)new_id(&recorder.ids[class], handle, event.any ? kind_of_event() : 0);
    pthread_mutex_unlock(&recorder.lock);
    put_integer(id);
}

/* A handle that a call takes for good. */
OUTSIDE void put_last(enum class class, uint64_t handle)
{
    pthread_mutex_lock(&recorder.lock);
    struct known known = take_known(&recorder.ids[class], handle);
    if ((int32_t)known.id < 0) /* predefined: it stays */
        put_known(&recorder.ids[class], known);
    else
        free_id(&recorder.ids[class], known.id);
    pthread_mutex_unlock(&recorder.lock);
    put_integer((int32_t)known.id);
}

OUTSIDE void put_new_comm(MPI_Comm comm, bool none)
{
    int size = 0, rank = 0;
    MPI_Group group;
    struct members members = {.handle = 0};
    if (none) {
        put_integer(0);
        return;
    }
    event.any = false;
    put_new(COMM, KEY(comm));
    PMPI(Comm_size, int (*)(MPI_Comm, int *))(comm, &size);
    PMPI(Comm_rank, int (*)(MPI_Comm, int *))(comm, &rank);
    if (!PMPI(Comm_group, ask_group *)(comm, &group))
        translate_members(&members, group);
    put_integer(size);
    put_integer(rank);
    int many = rank ? size > 0 : size;
    put_integer(many);
    for (int i = 0, before = 0; i < many; i++) {
        int world = members.world ? members.world[i] : i;
        put_integer(world - before);
        before = world;
    }
    free(members.world);
}

/* ---- how long arrays are ---- */

/* Blocks that a rank gives (`out`) or takes in a collective on a communicator. */
OUTSIDE int64_t blocks_of(MPI_Comm comm, bool near, bool out)
{
    struct members *members = members_of_comm(&self, comm);
    if (near)
        members = with_neighbors(members, comm);
    return !members ? 0 : !near ? members->size : out ? members->neighbors : members->sources;
}

/* Parts of a reduction that is scattered. */
OUTSIDE int64_t parts_of(MPI_Comm comm)
{
    return own_count(members_of_comm(&self, comm));
}

OUTSIDE int64_t dims_of(MPI_Comm comm)
{
    int dims = 0;
    PMPI(Cartdim_get, int (*)(MPI_Comm, int *))(comm, &dims);
    return dims;
}

int64_t sum_of(const int *numbers, int64_t many)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < many; i++)
        sum += numbers[i];
    return sum;
}

/* ---- requests ---- */

/* Room for statuses that the caller does not want. */
OUTSIDE MPI_Status *own_statuses(int64_t many)
{
    if (many > event.status_room) {
        MPI_Status *more = realloc(event.statuses, (size_t)many * sizeof *more);
        if (!more)
            return MPI_STATUSES_IGNORE;
        event.statuses = more;
        event.status_room = (int)many;
    }
    return event.statuses;
}

/* The status of a request that is cancelled says whether it was, as one of a wildcard does. */
OUTSIDE void put_cancelled(uint64_t handle)
{
    pthread_mutex_lock(&recorder.lock);
    struct known *known = find_known(&recorder.ids[REQUEST], handle);
    int32_t id = known ? (int32_t)known->id : 0;
    if (known)
        known->wild = true;
    pthread_mutex_unlock(&recorder.lock);
    put_integer(id);
}

/* The source that a request got, RANK_ANY if it was cancelled. Of a probe's status MPICH leaves the
 * part that says so as it was. */
int source_of(const MPI_Status *status)
{
    int cancelled = 0;
    PMPI(Test_cancelled, int (*)(const MPI_Status *, int *))(status, &cancelled);
    return cancelled ? RANK_ANY : status->MPI_SOURCE;
}

void put_source(int source, const MPI_Status *status)
{
    put_integer(source);
    put_integer(status->MPI_TAG);
}
