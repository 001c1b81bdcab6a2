/* Messages: their layout as MPI gets it, where they lie in buffers, and who has how many. */
#include "../common/check.h"
#include "../common/memory.h"
#include "message.h"
#include "mpi_functions.h"

/* The blocks of `bytes` as a type: by displacements of int, or beyond them by addresses. */
static MPI_Datatype blocks_type(int blocks, const int *lengths, size_t extent)
{
    MPI_Datatype type;
    int *places = need((size_t)blocks, sizeof *places);
    MPI_Aint *far = NULL;
    if (extent > INT_LIMIT) {
        far = need((size_t)blocks, sizeof *far);
        for (int i = 0; i < blocks; i++)
            far[i] = (MPI_Aint)block_offset((size_t)i);
        OK(MPI_Type_create_hindexed(blocks, lengths, far, MPI_CHAR, &type));
    } else {
        for (int i = 0; i < blocks; i++)
            places[i] = (int)block_offset((size_t)i);
        OK(MPI_Type_indexed(blocks, lengths, places, MPI_CHAR, &type));
    }
    free(places);
    free(far);
    return type;
}

static void commit_indexed(struct message *message)
{
    size_t bytes = message->bytes, extent = message->extent;
    int blocks = (int)blocks_of(bytes);
    int *lengths = need((size_t)blocks, sizeof *lengths);
    for (int i = 0; i < blocks; i++)
        lengths[i] = BLOCK;
    lengths[blocks - 1] = (int)(bytes - (size_t)(blocks - 1) * BLOCK);
    MPI_Datatype bare = blocks_type(blocks, lengths, extent);
    OK(MPI_Type_create_resized(bare, 0, (MPI_Aint)extent, &message->type));
    OK(MPI_Type_commit(&message->type));
    OK(MPI_Type_free(&bare));
    free(lengths);
}

/* Bytes that the description of the layout takes: ours while it is made, and MPI's own. */
static size_t bytes_of_type(const struct message *message)
{
    size_t block = sizeof(int) + sizeof(MPI_Aint);
    return is_indexed(message) ? 2 * block * blocks_of(message->bytes) : 0;
}

/* The plan of a message; a type that describes its layout is still to be committed. */
struct message make_message(const struct benchmark *benchmark, enum datatype datatype,
                            size_t bytes)
{
    struct message message = {.datatype = datatype, .bytes = bytes, .count = (MPI_Count)bytes};
    message.extent = span_of(&message, bytes);
    message.type = MPI_CHAR;
    if (benchmark->traits & REDUCES) {
        bool floats = bytes % sizeof(float) == 0;
        message.type = floats ? MPI_FLOAT : MPI_UNSIGNED_CHAR;
        message.count = (MPI_Count)(floats ? bytes / sizeof(float) : bytes);
    } else if (benchmark->traits & ONE_NUMBER) {
        message.type = MPI_UINT64_T;
        message.count = 1;
    } else if (benchmark->traits & ACCUMULATES) {
        bool words = bytes % sizeof(uint32_t) == 0;
        message.type = words ? MPI_UINT32_T : MPI_BYTE;
        message.count = (MPI_Count)(words ? bytes / sizeof(uint32_t) : bytes);
    } else if (is_indexed(&message)) {
        message.type = MPI_DATATYPE_NULL;
        message.count = 1;
    }
    return message;
}

void commit_message(struct message *message)
{
    if (is_indexed(message))
        commit_indexed(message);
}

void free_message(struct message *message)
{
    if (is_indexed(message))
        OK(MPI_Type_free(&message->type));
}

/* ---- areas ---- */

/* Names a message from rank `from` to rank `to` (-1: all). */
unsigned key_between(int from, int to)
{
    return (unsigned)(from + 1) * 641u + (unsigned)(to + 1) * 269u;
}

/* A message from rank `from` to rank `to` (-1: to all) is the next one in `area`. */
struct slot *add_slot(struct run *run, struct area *area, int from, int to, size_t bytes)
{
    bool packed = run->message.datatype == DATATYPE_PACKED;
    unsigned key = key_between(from, to);
    if (area->slots == area->room)
        DIE("%s: its setup takes more than the %d messages that a buffer has room for: the larger "
            "of ranks and window; this is a mistake in the benchmark",
            run->benchmark->name, area->room);
    struct slot *slot = &area->slot[area->slots++];
    *slot = (struct slot){area->bytes, packed ? area->wire_bytes : area->bytes, bytes, key};
    area->bytes += span_of(&run->message, bytes);
    area->wire_bytes += packed ? bytes : span_of(&run->message, bytes);
    return slot;
}

void plan_areas(struct run *run)
{
    int most = run->size > run->window ? run->size : run->window;
    if (has(run, NEIGHBORS) && most < MOST_NEIGHBORS)
        most = MOST_NEIGHBORS;
    if (has(run, SWAPS) && most < NUMBERS_SWAPPED)
        most = NUMBERS_SWAPPED;
    run->send = run->recv = (struct area){.room = most};
    run->send.slot = need((size_t)most, sizeof *run->send.slot);
    run->recv.slot = need((size_t)most, sizeof *run->recv.slot);
    run->benchmark->setup(run);
}

void forget_areas(struct run *run)
{
    free(run->send.slot);
    free(run->recv.slot);
}

/* Bytes of host memory that this rank's messages will take: buffers, what a sum needs inside of
 * MPI, the description of their layout and the table of content. */
size_t bytes_of_messages(const struct run *run)
{
    bool packed = run->message.datatype == DATATYPE_PACKED;
    size_t bytes = run->send.bytes + run->recv.bytes + (has(run, REDUCES) ? run->recv.bytes : 0);
    bytes += packed ? run->send.wire_bytes + run->recv.wire_bytes : 0;
    return bytes + bytes_of_type(&run->message) + content_for(2 * run->message.bytes);
}

/* `lent`: `wire` is memory that is allocated with the window. */
void allocate_area(const struct run *run, struct area *area, bool lent)
{
    const struct memory *memory = &MEMORIES[run->options->buffers];
    bool packed = run->message.datatype == DATATYPE_PACKED;
    if (packed || !lent)
        area->data = area->owned[0] = memory->allocate(area->bytes + GUARD);
    area->wire = area->host = area->data;
    if (packed && !lent)
        area->wire = area->owned[1] = host_allocate(area->wire_bytes + GUARD);
    if (memory->upload)
        area->host = area->owned[2] = host_allocate(area->bytes + GUARD);
}

void release_area(const struct run *run, struct area *area)
{
    if (area->owned[0])
        MEMORIES[run->options->buffers].release(area->owned[0]);
    free(area->owned[1]);
    free(area->owned[2]);
}

/* ---- setups: who has how many bytes for whom ---- */

/* Bytes that `rank` gives to, or gets from, a root. */
size_t share(const struct run *run, int rank)
{
    size_t n = (size_t)run->size, k = (size_t)rank;
    switch (has(run, COUNTED) ? run->options->counts : COUNTS_EQUAL) {
    case COUNTS_SKEWED: return run->message.bytes * 2 * (k + 1) / (n + 1); /* a ramp, mean 1 */
    case COUNTS_SPARSE: return k % 2 ? 0 : run->message.bytes;
    default: return run->message.bytes;
    }
}

/* Bytes from one rank to another in alltoallv: skewed is a ramp that differs from row to row,
 * sparse are the neighbours in a ring. Both ways alike, as in place they have to be. */
size_t share_between(const struct run *run, int from, int to)
{
    int apart = (to - from + run->size) % run->size;
    switch (has(run, COUNTED) ? run->options->counts : COUNTS_EQUAL) {
    case COUNTS_SKEWED: return share(run, (from + to) % run->size);
    case COUNTS_SPARSE: return apart == 1 || apart == run->size - 1 ? run->message.bytes : 0;
    default: return run->message.bytes;
    }
}

void nothing(struct run *run)
{
    (void)run;
}

void from_root(struct run *run)
{
    add_slot(run, &run->recv, 0, -1, run->message.bytes);
}

void sum(struct run *run)
{
    add_slot(run, &run->send, 0, -1, run->message.bytes);
    add_slot(run, &run->recv, 0, -1, run->message.bytes);
}

/* Bytes of what `rank` gets of a sum that is dealt out: the first ranks get a number more. */
static size_t portion(const struct run *run, int rank)
{
    size_t numbers = (size_t)run->message.count, ranks = (size_t)run->size;
    size_t each = run->message.bytes / (numbers ? numbers : 1);
    return each * (numbers / ranks + ((size_t)rank < numbers % ranks));
}

void sum_in_portions(struct run *run)
{
    for (int p = 0; p < run->size; p++)
        add_slot(run, &run->send, -1, p, portion(run, p));
    add_slot(run, &run->recv, -1, run->rank, portion(run, run->rank));
}

void sum_in_blocks(struct run *run)
{
    for (int p = 0; p < run->size; p++)
        add_slot(run, &run->send, -1, p, run->message.bytes);
    add_slot(run, &run->recv, -1, run->rank, run->message.bytes);
}

void one_to_root(struct run *run)
{
    add_slot(run, &run->send, run->rank, -1, share(run, run->rank));
    for (int p = 0; p < run->size; p++)
        add_slot(run, &run->recv, p, -1, share(run, p));
}

void one_from_root(struct run *run)
{
    for (int p = 0; p < run->size; p++)
        add_slot(run, &run->send, -1, p, share(run, p));
    add_slot(run, &run->recv, -1, run->rank, share(run, run->rank));
}

void one_between_all(struct run *run)
{
    for (int p = 0; p < run->size; p++)
        add_slot(run, &run->send, run->rank, p, share_between(run, run->rank, p));
    for (int p = 0; p < run->size; p++)
        add_slot(run, &run->recv, p, run->rank, share_between(run, p, run->rank));
}
