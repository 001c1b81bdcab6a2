/* Where the data of a call is: its buffers as blocks, and memory that is as large as they need.
 *
 * One description serves three ends: the size of a buffer, the bytes that a call moves, and what is
 * written and checked with --check.
 */
#include <sys/mman.h>

#include "replay.h"

struct blocks blocks;

static void add_block(int64_t peer, int64_t offset, int64_t count, struct datatype *type)
{
    if (type->handle == MPI_DATATYPE_NULL)
        return;
    if (count < 0)
        DIE("the record has a negative count");
    if (blocks.count == blocks.room) {
        blocks.room = 2 * blocks.room + 64;
        blocks.items = realloc(blocks.items, (size_t)blocks.room * sizeof *blocks.items);
        if (!blocks.items)
            DIE("out of memory");
    }
    blocks.items[blocks.count++] = (struct block){peer, offset, count, type};
}

/* `Ialltoallv`, `Neighbor_alltoallv_init`, ... as `alltoallv`. */
const char *stem_of(const char *name)
{
    static char stem[32];
    const char *from = name[0] == 'I' && name[1] >= 'a' && name[1] <= 'z' ? name + 1 : name;
    from += starts_with(from, "Neighbor_") || starts_with(from, "neighbor_") ? 9 : 0;
    snprintf(stem, sizeof stem, "%s", from);
    stem[0] |= 0x20;
    if (ends_with(stem, "_init"))
        stem[strlen(stem) - 5] = 0;
    return stem;
}

bool among_neighbors(const char *name)
{
    return strstr(name, "eighbor_") != NULL;
}

/* How many blocks a side of a collective has. */
static int64_t blocks_of_side(const struct call *call, const struct communicator *comm, bool sends)
{
    const char *name = call->routine->name, *stem = stem_of(name);
    if (among_neighbors(name))
        return sends && starts_with(stem, "allgather") ? 1 : sends ? comm->out : comm->in;
    int64_t all = comm->far ? comm->far : comm->size, root = field_of(call, "root", 0);
    bool is_root = comm->far ? root == RANK_OF_ROOT : root == comm->rank;
    if (starts_with(stem, "alltoall"))
        return all;
    if (starts_with(stem, "allgather"))
        return sends ? 1 : all;
    if (starts_with(stem, "gather"))
        return sends ? (comm->far && is_root ? 0 : 1) : is_root ? all : 0;
    if (starts_with(stem, "scatter"))
        return sends ? (is_root ? all : 0) : comm->far && is_root ? 0 : 1;
    return 1;
}

/* Blocks with counts and places of their own. */
static void uneven_blocks(const struct call *call, bool sends, const struct field *counts, int64_t due)
{
    const struct field *places = array_of(call, sends ? "sdispls" : "rdispls");
    places = places ? places : array_of(call, "displs");
    const struct field *types = array_of(call, sends ? "sendtypes" : "recvtypes");
    struct datatype *type = type_of(field_of(call, sends ? "sendtype" : "recvtype", 0));
    if (counts->value == 0 && (!places || places->value == 0))
        return; /* in place, or not the root */
    if (counts->value < due || !places || places->value < due || (types && types->value < due))
        DIE("the record of MPI_%s has %lld counts for %lld ranks", call->routine->name,
            (long long)counts->value, (long long)due);
    for (int64_t i = 0; i < due; i++) {
        struct datatype *own = types ? type_of(types->array[i]) : type;
        add_block(i, places->array[i] * (types ? 1 : (int64_t)own->extent), counts->array[i], own);
    }
}

static int64_t sum_of(const struct field *counts)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < counts->value; i++)
        sum += counts->array[i];
    return sum;
}

/* A collective's buffer of data that `sends`, or receives. */
static void blocks_of_collective(const struct call *call, const struct communicator *comm, bool sends)
{
    const struct field *counts = array_of(call, sends ? "sendcounts" : "recvcounts");
    struct datatype *single = type_of(field_of(call, "datatype", 0));
    int64_t due = blocks_of_side(call, comm, sends);
    const struct field *reduced = array_of(call, "recvcounts");
    if (reduced && !array_of(call, "recvtype") && !array_of(call, "recvtypes")) { /* reduce_scatter */
        if (reduced->value < comm->size)
            DIE("the record of MPI_%s has too few counts", call->routine->name);
        add_block(-1, 0, sends ? sum_of(reduced) : reduced->array[comm->rank], single);
        return;
    }
    if (counts) {
        uneven_blocks(call, sends, counts, due);
        return;
    }
    int64_t count = field_of(call, sends ? "sendcount" : "recvcount", -1);
    struct datatype *type = type_of(field_of(call, sends ? "sendtype" : "recvtype", 0));
    if (single->handle != MPI_DATATYPE_NULL) {
        int64_t block = field_of(call, "recvcount", -1); /* reduce_scatter_block */
        count = block < 0 ? field_of(call, "count", 0) : sends ? block * comm->size : block;
        add_block(-1, 0, count, single);
        return;
    }
    for (int64_t i = 0; i < due && count >= 0; i++)
        add_block(due == 1 && sends ? -1 : i, i * count * (int64_t)type->extent, count, type);
}

/* The buffer that parameter `name` is. */
void blocks_of_buffer(const struct call *call, const char *name)
{
    blocks.count = 0;
    struct datatype *type = type_of(field_of(call, "datatype", 0));
    if (!strcmp(name, "buf")) {
        add_block(-1, 0, field_of(call, "count", 0) * field_of(call, "partitions", 1), type);
    } else if (!strcmp(name, "buffer")) {
        add_block(-1, 0, field_of(call, "count", 0), type);
    } else if (!strcmp(name, "origin_addr") || !strcmp(name, "result_addr")) {
        bool origin = name[0] == 'o';
        const char *of = origin ? "origin_datatype" : "result_datatype";
        struct datatype *own = type_of(field_of(call, of, 0));
        if (own->handle == MPI_DATATYPE_NULL)
            own = type;
        add_block(-1, 0, field_of(call, origin ? "origin_count" : "result_count", 1), own);
    } else if (!strcmp(name, "compare_addr")) {
        add_block(-1, 0, 1, type);
    } else if (parameter_of(call->routine, "dest") >= 0) { /* a Sendrecv */
        bool sends = name[0] == 's';
        add_block(-1, 0, field_of(call, sends ? "sendcount" : "recvcount", 0),
                  type_of(field_of(call, sends ? "sendtype" : "recvtype", 0)));
    } else
        blocks_of_collective(call, comm_of(field_of(call, "comm", 0)), name[0] == 's');
}

/* ---- how much memory ---- */

static struct span span_of_blocks(void)
{
    struct span span = {INT64_MAX, INT64_MIN};
    for (int64_t i = 0; i < blocks.count; i++) {
        const struct block *block = &blocks.items[i];
        if (!block->count || !block->type->true_extent)
            continue;
        int64_t last = (block->count - 1) * (int64_t)block->type->extent;
        int64_t low = block->offset + (int64_t)block->type->true_lb + (last < 0 ? last : 0);
        int64_t high = block->offset + (int64_t)(block->type->true_lb + block->type->true_extent) +
                       (last > 0 ? last : 0);
        span.low = low < span.low ? low : span.low;
        span.high = high > span.high ? high : span.high;
    }
    return span.low > span.high ? (struct span){0, 0} : span;
}

static uint64_t bytes_of_blocks(void)
{
    uint64_t bytes = 0;
    for (int64_t i = 0; i < blocks.count; i++)
        bytes += (uint64_t)blocks.items[i].count * (uint64_t)blocks.items[i].type->size;
    return bytes;
}

/* Of data that a rank has in place, its part is among those of all. */
static uint64_t bytes_of_part(const struct call *call, const struct communicator *comm)
{
    bool uneven = array_of(call, "recvcounts") != NULL;
    uint64_t bytes = 0;
    if (!starts_with(stem_of(call->routine->name), "reduce_scatter")) {
        for (int64_t i = 0; i < blocks.count; i++)
            if (blocks.items[i].peer == comm->rank)
                bytes += (uint64_t)blocks.items[i].count * (uint64_t)blocks.items[i].type->size;
        return bytes;
    }
    blocks.count = 0;
    blocks_of_collective(call, comm, true);
    return uneven || blocks.count ? bytes_of_blocks() : 0;
}

/* Bytes of data that this rank gives, or takes where it gives none, as a profile has them
 * (trace/count.h). */
static uint64_t moved_bytes(const struct call *call)
{
    const struct communicator *comm = comm_of(field_of(call, "comm", 0));
    const char *name = call->routine->name;
    bool placed = in_place(call, call->buffers[0]) && call->buffers[1] >= 0;
    bool fetched = parameter_of(call->routine, "result_addr") >= 0 &&
                   *op_of(field_of(call, "op", 0)) == MPI_NO_OP;
    blocks_of_buffer(call, call->routine->parameters[call->buffers[placed || fetched]].name);
    if (placed && one_of(stem_of(name), " allgather allgatherv gather gatherv reduce_scatter "
                                        "reduce_scatter_block "))
        return bytes_of_part(call, comm);
    if (!placed && !blocks.count && starts_with(stem_of(name), "scatter"))
        blocks_of_buffer(call, "recvbuf"); /* not the root */
    if (!among_neighbors(name))
        return bytes_of_blocks();
    uint64_t bytes = bytes_of_blocks(), all = 0;
    for (int64_t i = 0; i < comm->out; i++) {
        bool absent = i < 64 && comm->absent >> i & 1;
        const struct block *block = blocks.count > i ? &blocks.items[i] : NULL;
        if (!absent)
            all += blocks.count == 1 && comm->out > 1 ? bytes
                   : block ? (uint64_t)block->count * (uint64_t)block->type->size : 0;
    }
    return all;
}

/* What has to be there for the buffers of a call, and what it moves. */
void describe_buffers(struct call *call)
{
    if (call->generation == objects.generation)
        return;
    int found = 0;
    for (int i = 0; i < MOST_BUFFERS; i++)
        call->buffers[i] = -1;
    for (int i = 0; i < call->routine->count; i++) {
        const struct parameter *parameter = &call->routine->parameters[i];
        if (parameter->letter != 'a' || found == MOST_BUFFERS)
            continue;
        blocks_of_buffer(call, parameter->name);
        call->buffers[found] = i;
        call->spans[found++] = span_of_blocks();
    }
    call->bytes = found ? moved_bytes(call) : 0;
    call->generation = objects.generation;
}

/* ---- memory ---- */

struct areas areas;

const int64_t LARGEST_AREA = (int64_t)1 << 40;

/* Pages are touched here, so that no call pays for them. */
static struct area *new_area(size_t bytes)
{
    if (areas.count == MOST_AREAS)
        DIE("more than %d buffers are in use at once", MOST_AREAS);
    struct area *area = need(1, sizeof *area);
    area->bytes = (bytes + 4096) & ~(size_t)4095;
    area->memory = mmap(NULL, area->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area->memory == MAP_FAILED)
        DIE("out of memory: a buffer of %zu bytes", bytes);
    memset(area->memory, 1, area->bytes);
    areas.items[areas.count++] = area;
    return area;
}

/* The smallest that is free and large enough. */
struct area *take_area(struct span span)
{
    if (span.high - span.low > LARGEST_AREA || span.high < span.low)
        DIE("a buffer of the record spans %lld bytes: its datatype holds addresses, which a replay "
            "has no memory at", (long long)(span.high - span.low));
    size_t bytes = (size_t)(span.high - span.low);
    struct area *best = NULL;
    for (int i = 0; i < areas.count; i++) {
        struct area *one = areas.items[i];
        if (!one->taken && one->bytes >= bytes && (!best || one->bytes < best->bytes))
            best = one;
    }
    best = best ? best : new_area(bytes);
    best->taken = true;
    return best;
}

void free_area(struct area *area)
{
    if (area)
        area->taken = false;
}
