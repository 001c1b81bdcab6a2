/* A sequence of calls with its repeats folded into loops, as it grows.
 *
 * The sequence ends in calls and loops. Whenever the last L of them equal the L before, the two
 * become a loop; whenever they equal the body of the loop before them, it counts one more. Loops
 * of loops come of the same rule. Equality is of signatures and counts; what a call took and the
 * gap before it are added up, with a histogram of gaps. Candidates for L are the distances to
 * former places of what was added last, so that a call costs the same however long the run is.
 * Windows are compared by a polynomial hash of 64 bits of their prefix, and then one by one.
 */
#include "fold.h"

struct fold fold;

enum {
    LONGEST_BODY = 8192, /* items of a loop */
    TRIES = 24,          /* former places that are looked at */
};

#define BASE UINT64_C(0x9e3779b97f4a7c15)

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

void *need(void *memory, size_t from, size_t to)
{
    void *more = realloc(memory, to);
    if (more)
        fold.bytes += to - from;
    return more;
}

static bool add_node(struct sequence *to, struct node node)
{
    if (to->length == to->room) {
        size_t room = to->room ? 2 * to->room : 8;
        struct node *more = need(to->nodes, to->room * sizeof node, room * sizeof node);
        if (!more)
            return false;
        to->nodes = more;
        to->room = room;
    }
    to->nodes[to->length++] = node;
    return true;
}

/* ---- gaps ---- */

static void add_to_histogram(struct histogram *histogram, const struct gaps *gaps)
{
    uint64_t mean = gaps->gap / gaps->times;
    unsigned exponent = mean ? (63 - (unsigned)__builtin_clzll(mean)) / 2 : 0;
    exponent = exponent < BUCKETS ? exponent : BUCKETS - 1;
    histogram->counts[exponent] += gaps->times;
    histogram->ticks[exponent] += (double)gaps->gap;
    histogram->squares[exponent] += (double)mean * (double)gaps->gap;
}

/* Without memory for a histogram the mean is kept. */
static void merge_gaps(struct gaps *to, const struct gaps *from)
{
    if (!to->histogram) {
        to->histogram = calloc(1, sizeof *to->histogram);
        if (to->histogram) {
            fold.bytes += sizeof *to->histogram;
            add_to_histogram(to->histogram, to);
        }
    }
    if (to->histogram && !from->histogram)
        add_to_histogram(to->histogram, from);
    else if (to->histogram)
        for (int i = 0; i < BUCKETS; i++) {
            to->histogram->counts[i] += from->histogram->counts[i];
            to->histogram->ticks[i] += from->histogram->ticks[i];
            to->histogram->squares[i] += from->histogram->squares[i];
        }
    to->times += from->times;
    to->gap += from->gap;
    to->took += from->took;
}

/* ---- nodes ---- */

/* Add the gaps of `from` to those of `to`, which is the same, and free it. */
static void merge_node(struct node *to, struct node *from)
{
    if (to->count)
        for (size_t i = 0; i < to->body->length; i++)
            merge_node(&to->body->nodes[i], &from->body->nodes[i]);
    else
        merge_gaps(&to->gaps, &from->gaps);
    if (from->count) {
        fold.bytes -= from->body->room * sizeof *from + sizeof *from->body;
        free(from->body->nodes);
        free(from->body);
    } else if (from->gaps.histogram) {
        fold.bytes -= sizeof *from->gaps.histogram;
        free(from->gaps.histogram);
    }
}

static uint64_t hash_of_loop(uint64_t count, uint64_t body)
{
    return mix(body + mix(count + BASE)) | 1;
}

static uint64_t hash_of_window(const uint64_t *prefix, size_t from, size_t to)
{
    uint64_t power = 1, base = BASE;
    for (size_t n = to - from; n; n >>= 1, base *= base)
        if (n & 1)
            power *= base;
    return prefix[to] - prefix[from] * power;
}

static uint64_t hash_of_body(const struct sequence *body)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < body->length; i++)
        hash = hash * BASE + body->nodes[i].hash;
    return hash;
}

static bool same_nodes(const struct node *one, const struct node *other, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (one[i].hash != other[i].hash || one[i].count != other[i].count ||
            (!one[i].count && one[i].signature != other[i].signature))
            return false;
    return true;
}

/* ---- the last place of a hash ---- */

/* An entry stays in the table when nothing has its hash any more, since others were led past it. */
static uint32_t *last_place(uint64_t hash)
{
    size_t at = hash % fold.last_room;
    while (fold.last[at].hash && fold.last[at].hash != hash)
        at = (at + 1) % fold.last_room;
    fold.last_used += !fold.last[at].hash;
    fold.last[at].hash = hash;
    return &fold.last[at].place;
}

static bool grow_last(void)
{
    if (fold.last && fold.last_used * 2 < fold.last_room)
        return true;
    size_t room = fold.last_room ? fold.last_room * 2 : 1024;
    void *old = fold.last, *more = calloc(room, sizeof *fold.last);
    if (!more)
        return false;
    fold.bytes += (room - fold.last_room) * sizeof *fold.last;
    fold.last = more;
    fold.last_room = room;
    fold.last_used = 0;
    for (size_t i = 0; i < fold.all.length; i++)
        *last_place(fold.all.nodes[i].hash) = (uint32_t)i + 1;
    free(old);
    return true;
}

/* ---- the end of the sequence ---- */

static bool push(struct node node)
{
    struct sequence *all = &fold.all;
    if (all->length + 2 > fold.room) {
        size_t room = fold.room ? 2 * fold.room : 64;
        uint64_t *more = need(fold.prefix, fold.room * 8, room * 8);
        if (!more)
            return false;
        more[0] = 0;
        fold.prefix = more;
        fold.room = room;
    }
    if (!grow_last())
        return false;
    uint32_t *place = last_place(node.hash);
    const struct node *before = all->length ? &all->nodes[all->length - 1] : NULL;
    node.former = *place;
    node.loop = !before ? 0 : before->count ? (uint32_t)all->length : before->loop;
    if (!add_node(all, node))
        return false;
    *place = (uint32_t)all->length;
    fold.prefix[all->length] = fold.prefix[all->length - 1] * BASE + node.hash;
    return true;
}

static struct node pop(void)
{
    struct node node = fold.all.nodes[--fold.all.length];
    *last_place(node.hash) = node.former;
    return node;
}

/* Merge the last nodes into a body that equals them. */
static void pop_into(struct sequence *body)
{
    for (size_t i = body->length; i-- > 0;) {
        struct node node = pop();
        merge_node(&body->nodes[i], &node);
    }
}

static bool push_loop(struct sequence *body, uint64_t count)
{
    struct node loop = {.hash = hash_of_loop(count, hash_of_body(body)), .count = count};
    loop.body = body;
    return push(loop);
}

/* Whether the last nodes are the body of the loop before them once more. */
static bool extends_loop(void)
{
    struct sequence *all = &fold.all;
    uint32_t place = all->length ? all->nodes[all->length - 1].loop : 0;
    for (int i = 0; place && i < TRIES; i++, place = all->nodes[place - 1].loop) {
        size_t length = all->length - place;
        struct node *loop = &all->nodes[place - 1];
        if (length > LONGEST_BODY)
            return false;
        if (loop->body->length != length || !same_nodes(loop->body->nodes, loop + 1, length))
            continue;
        struct sequence *body = loop->body;
        pop_into(body);
        struct node old = pop();
        return push_loop(body, old.count + 1);
    }
    return false;
}

/* Whether the last nodes equal as many before them: both become a loop. */
static bool becomes_loop(void)
{
    struct sequence *all = &fold.all;
    size_t end = all->length, place = end ? all->nodes[end - 1].former : 0;
    for (int i = 0; place && i < TRIES; i++, place = all->nodes[place - 1].former) {
        size_t length = end - place;
        if (length > place || length > LONGEST_BODY)
            return false;
        if (hash_of_window(fold.prefix, place - length, place) !=
                hash_of_window(fold.prefix, place, end) ||
            !same_nodes(&all->nodes[place - length], &all->nodes[place], length))
            continue;
        struct sequence *body = calloc(1, sizeof *body);
        if (!body)
            return false;
        fold.bytes += sizeof *body;
        for (size_t k = place - length; k < place; k++)
            if (!add_node(body, all->nodes[k])) {
                fold.bytes -= sizeof *body + body->room * sizeof *body->nodes;
                free(body->nodes);
                free(body);
                return false;
            }
        pop_into(body);
        for (size_t k = 0; k < length; k++)
            pop(); /* they are in the body */
        return push_loop(body, 2);
    }
    return false;
}

/* Add a call; false: there is no memory for it. */
bool fold_call(uint32_t signature, uint64_t gap, uint64_t took)
{
    struct node node = {.hash = mix(signature + BASE) | 1, .signature = signature};
    node.gaps = (struct gaps){.times = 1, .gap = gap, .took = took};
    if (!push(node))
        return false;
    while (extends_loop() || becomes_loop())
        ;
    return true;
}
