/* Reductions whose result all ranks know: predefined operations on predefined numbers. */
#include <limits.h>

#include "replay.h"

/* --check: what ranks send is written before a call and compared after it, off the clock.
 *
 * A message is a stream of bytes that both sides make of who sends it to whom, on which
 * communicator, with which tag, as which in number. It is unpacked into the sender's buffer and
 * packed out of the receiver's, so that datatypes may differ. Reductions have sums that all know.
 */

struct checks checks;

uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t z = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    return z ^ z >> 29;
}

static struct counter *counter_of(uint64_t key)
{
    if (checks.used * 2 >= checks.room) {
        struct counter *old = checks.counters;
        size_t before = checks.room;
        checks.room = before ? 2 * before : 1024;
        checks.counters = need(checks.room, sizeof *checks.counters);
        checks.used = 0;
        for (size_t i = 0; i < before; i++)
            if (old[i].key)
                *counter_of(old[i].key) = old[i];
        free(old);
    }
    key |= 1;
    for (size_t at = (size_t)(key >> 1) % checks.room;; at = (at + 1) % checks.room) {
        struct counter *one = &checks.counters[at];
        if (!one->key) {
            one->key = key;
            checks.used++;
        }
        if (one->key == key)
            return one;
    }
}

/* The how-manieth message this is, of those that `sends` or receives between two ranks. */
uint64_t message_number(const struct communicator *comm, bool sends, int64_t peer, int64_t tag)
{
    return ++counter_of(mix(mix(mix(comm->key, (uint64_t)tag), (uint64_t)peer), sends))->number;
}

uint64_t seed_of(const struct communicator *comm, uint64_t number, int64_t from, int64_t to,
                 int64_t tag)
{
    return mix(mix(mix(mix(comm->key, number), (uint64_t)from), (uint64_t)to), (uint64_t)tag);
}

static bool make_stream(uint64_t seed, int64_t bytes)
{
    if (bytes > INT_MAX)
        return false;
    if ((size_t)bytes + 8 > checks.stream_room) {
        checks.stream_room = 2 * (size_t)bytes + 4096;
        free(checks.stream), free(checks.packed);
        checks.stream = need(checks.stream_room, 1);
        checks.packed = need(checks.stream_room, 1);
    }
    for (int64_t i = 0; i < bytes; i += 8) {
        uint64_t one = mix(seed, (uint64_t)i);
        memcpy(checks.stream + i, &one, 8);
    }
    return true;
}

void fill_block(char *buffer, const struct block *block, const struct communicator *comm,
                uint64_t seed)
{
    int64_t bytes = block->count * (int64_t)block->type->size;
    int position = 0;
    if (bytes && make_stream(seed, bytes))
        OWN(PMPI_Unpack(checks.stream, (int)bytes, &position, buffer + block->offset, (int)block->count,
                       block->type->handle, comm->handle));
}

/* -1: as it should be; else the first byte that differs. `bytes`: no more arrived. */
int64_t difference(char *buffer, const struct block *block, const struct communicator *comm,
                   uint64_t seed, int64_t bytes)
{
    int64_t all = block->count * (int64_t)block->type->size;
    int position = 0;
    bytes = bytes < all ? bytes : all;
    if (!bytes || !make_stream(seed, all))
        return -1;
    OWN(PMPI_Pack(buffer + block->offset, (int)block->count, block->type->handle, checks.packed,
                 (int)checks.stream_room, &position, comm->handle));
    if (!memcmp(checks.packed, checks.stream, (size_t)bytes))
        return -1;
    for (int64_t i = 0; i < bytes; i++)
        if (checks.packed[i] != checks.stream[i])
            return i;
    return -1;
}

void report_difference(const char *name, int64_t from, int64_t at)
{
    if (!checks.wrong++)
        fprintf(stderr, PROGRAM ": rank %d: MPI_%s got wrong data from rank %lld, from byte %lld on\n",
                speaker, name, (long long)from, (long long)at);
}

/* ---- collectives that move data ---- */

bool moves_data(const char *stem)
{
    return one_of(stem, " bcast gather gatherv scatter scatterv allgather allgatherv alltoall "
                        "alltoallv alltoallw ");
}

/* The seed of a block: `sends`, or arrives here. */
static uint64_t block_seed(const struct call *call, const char *stem, const struct communicator *comm,
                           uint64_t number, const struct block *block, bool sends)
{
    int64_t peer = block->peer < 0 ? 0 : block->peer, root = field_of(call, "root", 0);
    if (!strcmp(stem, "bcast"))
        return seed_of(comm, number, root, 0, 0);
    if (starts_with(stem, "scatter"))
        return seed_of(comm, number, root, sends ? peer : comm->rank, 0);
    if (starts_with(stem, "alltoall"))
        return seed_of(comm, number, sends ? comm->rank : peer, sends ? peer : comm->rank, 0);
    return seed_of(comm, number, sends ? comm->rank : peer, 0, 0);
}

/* In place, a rank's part is where it is received. */
static void fill_in_place(const struct call *call, const char *stem, const struct communicator *comm,
                          uint64_t number, char *buffer)
{
    bool all = starts_with(stem, "alltoall");
    for (int64_t i = 0; i < blocks.count; i++)
        if (all || blocks.items[i].peer == comm->rank)
            fill_block(buffer, &blocks.items[i], comm,
                       block_seed(call, stem, comm, number, &blocks.items[i], true));
}

void fill_collective(const struct call *call, const char *stem, const struct communicator *comm,
                     uint64_t number, char *const buffers[2])
{
    bool broadcast = !strcmp(stem, "bcast"), in_place = false;
    for (int side = 0; side < 2; side++) {
        int at = call->buffers[side];
        if (at < 0 || (broadcast && field_of(call, "root", 0) != comm->rank))
            continue;
        const char *name = call->routine->parameters[at].name;
        in_place |= call->fields[at].value == 1;
        if (call->fields[at].value == 1)
            continue;
        blocks_of_buffer(call, name);
        if (broadcast || name[0] == 's')
            for (int64_t i = 0; i < blocks.count; i++)
                fill_block(buffers[side], &blocks.items[i], comm,
                           block_seed(call, stem, comm, number, &blocks.items[i], true));
        else if (in_place)
            fill_in_place(call, stem, comm, number, buffers[side]);
    }
}

void verify_collective(const struct call *call, const char *stem, const struct communicator *comm,
                       uint64_t number, char *const buffers[2])
{
    bool broadcast = !strcmp(stem, "bcast");
    for (int side = 0; side < 2; side++) {
        int at = call->buffers[side];
        if (at < 0 || call->fields[at].value == 1)
            continue;
        const char *name = call->routine->parameters[at].name;
        if (!broadcast && name[0] == 's')
            continue;
        blocks_of_buffer(call, name);
        for (int64_t i = 0; i < blocks.count; i++) {
            const struct block *block = &blocks.items[i];
            int64_t where = difference(buffers[side], block, comm,
                                       block_seed(call, stem, comm, number, block, false), INT64_MAX);
            if (where >= 0) {
                report_difference(call->routine->name, block->peer < 0 ? 0 : block->peer, where);
                return;
            }
        }
    }
    checks.right++;
}

enum number_kind { NO_NUMBER, WHOLE, REAL };
enum { PERIOD = 5 }; /* elements repeat after so many */

static enum number_kind kind_of(int64_t type)
{
    static const char *const names[] = {
#define TYPE(name, end) #name,
        PREDEFINED_TYPES(TYPE)
#undef TYPE
    };
    static const char whole[] =
        " SIGNED_CHAR UNSIGNED_CHAR SHORT UNSIGNED_SHORT INT UNSIGNED LONG UNSIGNED_LONG LONG_LONG "
        "UNSIGNED_LONG_LONG INT8_T INT16_T INT32_T INT64_T UINT8_T UINT16_T UINT32_T UINT64_T AINT "
        "OFFSET COUNT INTEGER INTEGER1 INTEGER2 INTEGER4 INTEGER8 ";
    static const char real[] = " FLOAT DOUBLE REAL DOUBLE_PRECISION REAL4 REAL8 ";
    const char *name = type < 0 ? names[-1 - type] : "";
    return one_of(name, whole) ? WHOLE : one_of(name, real) ? REAL : NO_NUMBER;
}

static int64_t element_of(int64_t rank, int64_t at, uint64_t number)
{
    return 1 + (rank * 7 + at * 3 + (int64_t)(number % 5)) % PERIOD;
}

/* The place of an operation in PREDEFINED_OPS. */
enum { OP_MAX, OP_MIN, OP_SUM, OP_PROD };

static int64_t combined(int64_t op, int64_t from, int64_t to, int64_t at, uint64_t number)
{
    int64_t result = op == OP_PROD ? 1 : element_of(from, at, number);
    for (int64_t rank = from; rank < to; rank++) {
        int64_t one = element_of(rank, at, number);
        switch (op) {
        case OP_MAX: result = one > result ? one : result; break;
        case OP_MIN: result = one < result ? one : result; break;
        case OP_SUM: result += rank == from ? 0 : one; break;
        default: result = (int64_t)((uint64_t)result * (uint64_t)(rank ? 1 : one));
        }
    }
    return result;
}

static void put_number(char *memory, int64_t at, int64_t size, enum number_kind kind, int64_t value)
{
    float single = (float)value;
    double twofold = (double)value;
    const void *from = kind == WHOLE ? (const void *)&value : size == 4 ? (void *)&single : (void *)&twofold;
    memcpy(memory + at * size, from, (size_t)size);
}

static bool is_reduction(const char *stem)
{
    return one_of(stem, " allreduce reduce reduce_scatter reduce_scatter_block scan ");
}

/* Whether the sum of a call is known. */
bool has_known_sum(const struct call *call, const char *stem)
{
    int64_t op = -1 - field_of(call, "op", 0), type = field_of(call, "datatype", 0);
    return is_reduction(stem) && op >= OP_MAX && op <= OP_PROD && kind_of(type) &&
           type_of(type)->size <= 8;
}

/* A rank's numbers: in a product those of other ranks than the first are 1. */
void fill_sum(const struct call *call, const struct communicator *comm, uint64_t number,
              char *const buffers[2])
{
    int64_t type = field_of(call, "datatype", 0), op = -1 - field_of(call, "op", 0);
    int side = call->fields[call->buffers[0]].value == 1; /* in place: the other */
    int at = call->buffers[side];
    if (at < 0)
        return;
    blocks_of_buffer(call, side ? "sendbuf" : call->routine->parameters[at].name);
    int64_t size = (int64_t)type_of(type)->size;
    for (int64_t i = 0; blocks.count && i < blocks.items[0].count; i++) {
        int64_t value = op == OP_PROD && comm->rank ? 1 : element_of(comm->rank, i, number);
        put_number(buffers[side], i, size, kind_of(type), value);
    }
}

/* Which of all elements is the first that arrives here. */
static int64_t first_element(const struct call *call, const struct communicator *comm, const char *stem)
{
    int64_t first = 0;
    if (!strcmp(stem, "reduce_scatter_block"))
        return comm->rank * field_of(call, "recvcount", 0);
    const struct field *counts = array_of(call, "recvcounts");
    for (int i = 0; counts && i < comm->rank; i++)
        first += counts->array[i];
    return first;
}

void verify_sum(const struct call *call, const char *stem, const struct communicator *comm,
                uint64_t number, char *const buffers[2])
{
    int at = call->buffers[1];
    if (at < 0 || (!strcmp(stem, "reduce") && field_of(call, "root", 0) != comm->rank))
        return;
    int64_t type = field_of(call, "datatype", 0), size = (int64_t)type_of(type)->size;
    int64_t op = -1 - field_of(call, "op", 0), first = first_element(call, comm, stem);
    int64_t ranks = !strcmp(stem, "scan") ? comm->rank + 1 : comm->size, due[PERIOD];
    for (int i = 0; i < PERIOD; i++)
        due[i] = combined(op, 0, ranks, i, number);
    blocks_of_buffer(call, "recvbuf");
    for (int64_t i = 0; blocks.count && i < blocks.items[0].count; i++) {
        char wanted[16];
        put_number(wanted, 0, size, kind_of(type), due[(first + i) % PERIOD]);
        if (memcmp(wanted, buffers[1] + i * size, (size_t)size)) {
            report_difference(call->routine->name, -1, i * size);
            return;
        }
    }
    checks.right++;
}
