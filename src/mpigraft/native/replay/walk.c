/* The folded sequence of calls, walked without being expanded, and the gaps between them. */
#include <dlfcn.h>
#include <fcntl.h>

#include "replay.h"

/* The file that a replay reads: made by Python of a record, an entry for each rank and its part,
 * which is what the rank wrote (record_file.h). A rank reads its own part alone. */

#define REPLAY_MAGIC "mpigraft-replay" /* with its NUL 16 bytes */

enum { REPLAY_VERSION = 1 };

/* Calls of the replay itself are none of the program's: a library that traces leaves them out. */
void own_calls(int more)
{
    static void (*trace)(int);
    static bool asked;
    if (!asked) {
        void *address = dlsym(RTLD_DEFAULT, "mpigraft_trace_own");
        memcpy(&trace, &address, sizeof address);
        asked = true;
    }
    if (trace)
        trace(more);
}

uint64_t read_unsigned(struct bytes *bytes)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (bytes->at >= bytes->end)
            break;
        unsigned char one = *bytes->at++;
        value |= (uint64_t)(one & 0x7F) << shift;
        if (!(one & 0x80))
            return value;
    }
    bytes->bad = true;
    bytes->at = bytes->end;
    return 0;
}

int64_t read_signed(struct bytes *bytes)
{
    uint64_t value = read_unsigned(bytes);
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

struct bytes take_bytes(struct bytes *bytes, uint64_t length)
{
    if (length > (uint64_t)(bytes->end - bytes->at)) {
        bytes->bad = true;
        length = 0;
    }
    struct bytes part = {bytes->at, bytes->at + length, bytes->bad};
    bytes->at += length;
    return part;
}

/* FNV-1a by words of eight bytes, the last one filled with zeros. */
static uint64_t checksum_of(const unsigned char *data, uint64_t length)
{
    uint64_t sum = 0xcbf29ce484222325u;
    for (uint64_t i = 0; i < length; i += 8) {
        uint64_t one = 0;
        memcpy(&one, data + i, length - i < 8 ? length - i : 8);
        sum = (sum ^ one) * 0x100000001b3u;
    }
    return sum;
}

static bool read_at(int file, void *memory, uint64_t length, uint64_t offset)
{
    char *to = memory;
    while (length) {
        ssize_t got = pread(file, to, length, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got, length -= (uint64_t)got, offset += (uint64_t)got;
    }
    return true;
}

/* What is wrong with a file, as text; NULL: nothing. */
const char *read_part(const char *path, int rank, int size, struct replay_head *head,
                      struct replay_part *part, unsigned char **data)
{
    static char problem[160];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return strerror(errno);
    const char *answer = "its end is missing";
    *data = NULL;
    if (!read_at(file, head, sizeof *head, 0) || memcmp(head->magic, REPLAY_MAGIC, 16))
        answer = "it is not a file that mpigraft prepared for a replay";
    else if (head->version != REPLAY_VERSION)
        answer = "another version of mpigraft prepared it";
    else if (head->ranks != (uint32_t)size) {
        snprintf(problem, sizeof problem, "it is a record of %u ranks, and this world has %d",
                 head->ranks, size);
        answer = problem;
    } else if (read_at(file, part, sizeof *part, sizeof *head + (uint64_t)rank * sizeof *part) &&
               part->bytes >= sizeof(struct record_head) && part->bytes < (uint64_t)1 << 40 &&
               (*data = malloc(part->bytes)) && read_at(file, *data, part->bytes, part->offset))
        answer = checksum_of(*data, part->bytes) == part->checksum ? NULL : "its content is damaged";
    close(file);
    return answer;
}

struct walk walk;

static struct node *add_node(void)
{
    if (walk.count == walk.room) {
        walk.room = 2 * walk.room + 256;
        walk.nodes = realloc(walk.nodes, walk.room * sizeof *walk.nodes);
        if (!walk.nodes)
            DIE("out of memory");
    }
    struct node *node = &walk.nodes[walk.count++];
    memset(node, 0, sizeof *node);
    return node;
}

static const double ROOT_OF_3 = 1.7320508075688772; /* an even spread's end, in deviations */

static bool read_leaf(struct bytes *bytes)
{
    struct node *node = add_node();
    uint64_t number = read_unsigned(bytes);
    uint64_t times = read_unsigned(bytes), gap = read_unsigned(bytes);
    uint64_t took = read_unsigned(bytes), buckets = read_unsigned(bytes);
    if (number >= record.call_count || buckets > MOST_BUCKETS)
        return refuse_record("a call has no such signature, or too many gaps");
    node->call = &record.calls[number];
    struct routine *routine = node->call->routine;
    (routine->base ? routine->base : routine)->recorded += took;
    record.ticks += gap + took;
    node->bucket_count = buckets ? buckets : 1;
    node->buckets = need(node->bucket_count, sizeof *node->buckets);
    node->buckets[0] = (struct bucket){.remaining = times, .ticks = times ? gap / times : 0};
    for (uint64_t i = 0; i < buckets; i++) {
        read_unsigned(bytes);
        uint64_t count = read_unsigned(bytes), sum = read_unsigned(bytes);
        double deviation = (double)read_unsigned(bytes);
        node->buckets[i] = (struct bucket){count, count ? sum / count : 0, ROOT_OF_3 * deviation};
    }
    for (uint64_t i = 0; i < node->bucket_count; i++)
        node->remaining += node->buckets[i].remaining;
    return !bytes->bad || refuse_record("the sequence of calls is cut short");
}

/* One node and what is in it. */
bool read_node(struct bytes *bytes, int depth)
{
    uint64_t kind = read_unsigned(bytes);
    if (bytes->bad || kind > 1 || depth == DEEPEST)
        return refuse_record("the sequence of calls is damaged");
    if (kind == 0)
        return read_leaf(bytes);
    uint32_t own = walk.count;
    struct node *node = add_node();
    node->loop = true;
    node->count = read_unsigned(bytes);
    uint64_t items = read_unsigned(bytes);
    if (!node->count || !items || items > (uint64_t)(bytes->end - bytes->at))
        return refuse_record("a loop is empty or too long");
    while (items--)
        if (!read_node(bytes, depth + 1))
            return false;
    walk.nodes[own].end = walk.count;
    return true;
}

/* The next call; NULL: there is none. The gap before it is drawn with next_gap(). */
struct node *next_node(struct cursor *cursor)
{
    for (;;) {
        while (cursor->depth && cursor->at == walk.nodes[cursor->stack[cursor->depth - 1].loop].end) {
            if (--cursor->stack[cursor->depth - 1].remaining == 0)
                cursor->depth--;
            else
                cursor->at = cursor->stack[cursor->depth - 1].loop + 1;
        }
        if (cursor->at >= walk.count)
            return NULL;
        struct node *node = &walk.nodes[cursor->at++];
        if (!node->loop)
            return node;
        cursor->stack[cursor->depth].loop = cursor->at - 1;
        cursor->stack[cursor->depth++].remaining = node->count;
    }
}

/* splitmix64 */
uint64_t scattered(uint64_t z)
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* A number in [0, 1) that these three determine. */
static double drawn_of(uint64_t seed, uint64_t which, uint64_t time)
{
    return (double)(scattered(seed ^ scattered(time) ^ scattered(~which)) >> 11) * 0x1p-53;
}

/* A gap of the bucket with this place, by a rank's own draw. Two that follow each other add up to twice the mean, and
 * one that is left over is the mean. */
static uint64_t gap_of(struct bucket *bucket, uint64_t place)
{
    uint64_t left = bucket->remaining--;
    if (left == 1)
        return bucket->ticks;
    double off = (2 * drawn_of(walk.own_seed, place, left / 2) - 1) * bucket->spread;
    double gap = (double)bucket->ticks + (left % 2 ? -off : off);
    return gap > 0 ? (uint64_t)gap : 0;
}

/* Ticks of the record before this call, drawn without putting back, so that their sum is right.
 * Which bucket depends on how often the call came and on its routine, not on the rank: in a step
 * in which one rank has a far longer gap than in others, others have one too, as where a program
 * writes output in every tenth step. Ranks that drew it on their own would wait for each other. */
uint64_t next_gap(struct node *node)
{
    if (!node->remaining)
        return 0;
    uint64_t routine = (uint64_t)(node->call->routine - record.routines);
    double share = drawn_of(walk.seed, routine, node->drawn++);
    uint64_t draw = (uint64_t)(share * (double)node->remaining--);
    for (uint64_t i = 0; i < node->bucket_count; i++) {
        if (draw < node->buckets[i].remaining)
            return gap_of(&node->buckets[i], (uint64_t)(node - walk.nodes) * MOST_BUCKETS + i);
        draw -= node->buckets[i].remaining;
    }
    return 0;
}
