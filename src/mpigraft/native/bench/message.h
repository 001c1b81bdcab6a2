/* Messages: where they lie in buffers, what they contain, and whether they arrived.
 *
 * Content is cut from one table of pseudo-random bytes at a place that depends on sender,
 * receiver and round, so making and checking it is a memcpy and a memcmp. No byte of the
 * table is POISON; what shall receive is filled with POISON first.
 */
#ifndef MPIGRAFT_MESSAGE_H
#define MPIGRAFT_MESSAGE_H

#include <stdint.h>
#include <string.h>

#include "../common/check.h"
#include "../common/memory.h"
#include "layout.h"
#include "run.h"
#include "sums.h"

enum {
    POISON = 0xFF,
    KEYS = 4093, /* places in the table; a prime */
    GUARD = 64,  /* bytes after a buffer that must stay as they are */
    MAX_IN_FLIGHT = 64 << 20, /* bytes of one window; larger messages have a shorter window */
};

/* Longer messages are cut into pieces, each from a place of its own in the table: a table as
 * long as the messages would take the memory of another buffer. An even number of blocks. */
#ifndef PIECE
#define PIECE (16 << 20)
#endif

static unsigned char *content;
static size_t content_bytes;

/* Bytes of a table for messages of up to `largest`. */
static size_t content_for(size_t largest)
{
    return KEYS + (largest < PIECE ? largest : PIECE);
}

static void make_content(size_t largest)
{
    if (content_bytes >= content_for(largest))
        return;
    free(content);
    content_bytes = content_for(largest);
    content = need(content_bytes, 1);
    uint32_t state = 2463534242u;
    for (size_t i = 0; i < content_bytes; i++) {
        state ^= state << 13, state ^= state >> 17, state ^= state << 5; /* xorshift32 */
        content[i] = (unsigned char)((state >> 8) % 251);
    }
}

/* ---- packing by hand ---- */

static inline void pack_slot(struct run *run, int slot)
{
    if (run->message.datatype == DATATYPE_PACKED) {
        const struct slot *s = &run->send.slot[slot];
        pack_bytes(run->send.wire + s->wire, run->send.data + s->offset, s->bytes);
    }
}

static inline void pack(struct run *run)
{
    if (run->message.datatype == DATATYPE_PACKED)
        for (int i = 0; i < run->send.slots; i++)
            pack_slot(run, i);
}

static inline void unpack_slot(struct run *run, int slot)
{
    if (run->message.datatype == DATATYPE_PACKED) {
        const struct slot *s = &run->recv.slot[slot];
        unpack_bytes(run->recv.data + s->offset, run->recv.wire + s->wire, s->bytes);
    }
}

static inline void unpack(struct run *run)
{
    if (run->message.datatype == DATATYPE_PACKED)
        for (int i = 0; i < run->recv.slots; i++)
            unpack_slot(run, i);
}

/* ---- areas ---- */

/* Names a message from rank `from` to rank `to` (-1: all). */
static unsigned key_between(int from, int to)
{
    return (unsigned)(from + 1) * 641u + (unsigned)(to + 1) * 269u;
}

/* A message from rank `from` to rank `to` (-1: to all) is the next one in `area`. */
static struct slot *add_slot(struct run *run, struct area *area, int from, int to, size_t bytes)
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

static void plan_areas(struct run *run)
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

static void forget_areas(struct run *run)
{
    free(run->send.slot);
    free(run->recv.slot);
}

/* Bytes of host memory that this rank's messages will take: buffers, what a sum needs inside of
 * MPI, the description of their layout and the table of content. */
static size_t bytes_of_messages(const struct run *run)
{
    bool packed = run->message.datatype == DATATYPE_PACKED;
    size_t bytes = run->send.bytes + run->recv.bytes + (has(run, REDUCES) ? run->recv.bytes : 0);
    bytes += packed ? run->send.wire_bytes + run->recv.wire_bytes : 0;
    return bytes + bytes_of_type(&run->message) + content_for(2 * run->message.bytes);
}

/* `lent`: `wire` is memory that is allocated with the window. */
static void allocate_area(const struct run *run, struct area *area, bool lent)
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

static void release_area(const struct run *run, struct area *area)
{
    if (area->owned[0])
        MEMORIES[run->options->buffers].release(area->owned[0]);
    free(area->owned[1]);
    free(area->owned[2]);
}

/* ---- content ---- */

/* What belongs into a slot from byte `done` of its payload on, as far as `*length`. */
static const unsigned char *content_of(const struct run *run, const struct slot *slot,
                                       size_t done, size_t *length)
{
    size_t rest = slot->bytes - done;
    *length = rest < PIECE ? rest : PIECE;
    return content + (slot->key + run->round * 97u + done / PIECE * 389u) % KEYS;
}

static void fill_slot(const struct run *run, struct area *area, const struct slot *slot)
{
    for (size_t done = 0, length; done < slot->bytes; done += length) {
        const unsigned char *from = content_of(run, slot, done, &length);
        char *to = area->host + slot->offset + span_of(&run->message, done);
        if (has(run, REDUCES))
            fill_numbers(run, to, from, length);
        else if (strided(&run->message))
            unpack_bytes(to, (const char *)from, length);
        else
            memcpy(to, from, length);
    }
}

static void upload(const struct run *run, struct area *area)
{
    if (area->host != area->data)
        MEMORIES[run->options->buffers].upload(area->data, area->host, area->bytes);
}

static void fill(const struct run *run, struct area *area)
{
    for (int i = 0; i < area->slots; i++)
        fill_slot(run, area, &area->slot[i]);
    upload(run, area);
}

static void poison(const struct run *run, struct area *area)
{
    memset(area->host, POISON, area->bytes + GUARD);
    if (area->host != area->data)
        MEMORIES[run->options->buffers].upload(area->data, area->host, area->bytes + GUARD);
}

/* At most PITCH bytes. */
static bool untouched(const char *at, size_t bytes)
{
    static char poisoned[PITCH];
    if (!poisoned[0])
        memset(poisoned, POISON, sizeof poisoned);
    return !memcmp(at, poisoned, bytes);
}

/* Payload block by block, and the gaps: a datatype engine may write between the blocks. */
static bool right_blocks(const char *at, const unsigned char *from, size_t bytes)
{
    bool right = true;
    for (size_t i = 0, done = 0; done < bytes; i++, done += BLOCK) {
        size_t length = bytes - done < BLOCK ? bytes - done : BLOCK;
        const char *pitch = at + i * PITCH, *block = at + block_offset(i), *end = pitch + PITCH;
        right &= !memcmp(block, from + done, length);
        right &= untouched(pitch, (size_t)(block - pitch));
        right &= untouched(block + length, (size_t)(end - (block + length)));
    }
    return right;
}

static bool right_slot(const struct run *run, const struct area *area, int slot)
{
    const struct slot *s = &area->slot[slot];
    bool right = true;
    for (size_t done = 0, length; right && done < s->bytes; done += length) {
        const unsigned char *expected = content_of(run, s, done, &length);
        const char *at = area->host + s->offset + span_of(&run->message, done);
        if (has(run, REDUCES))
            right = right_sums(run, at, expected, length);
        else if (has(run, ACCUMULATES))
            right = right_accumulation(run, at, expected, length);
        else if (strided(&run->message))
            right = right_blocks(at, expected, length);
        else
            right = !memcmp(at, expected, length);
    }
    return right;
}

/* Whether everything that this rank was to receive is there, and nothing else. */
static void check_area(struct run *run, struct area *area)
{
    if (area->host != area->data)
        MEMORIES[run->options->buffers].download(area->host, area->data, area->bytes + GUARD);
    int bad = -1;
    for (int i = 0; i < area->slots && bad < 0; i++)
        if (!right_slot(run, area, i))
            bad = i;
    bool overrun = area->slots && !untouched(area->host + area->bytes, GUARD);
    if (run->valid && (bad >= 0 || overrun))
        fprintf(stderr,
                "mpigraft-bench: rank %d: wrong data: %s, %zu B, message %d of %d, round %u%s\n",
                speaker, run->benchmark->name, run->message.bytes, bad, area->slots, run->round,
                overrun ? ", and bytes after the buffer" : "");
    run->valid &= bad < 0 && !overrun;
}

/* Who has how many bytes for whom in collectives: what their setups are made of. */

/* Bytes that `rank` gives to, or gets from, a root. */
static size_t share(const struct run *run, int rank)
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
static size_t share_between(const struct run *run, int from, int to)
{
    int apart = (to - from + run->size) % run->size;
    switch (has(run, COUNTED) ? run->options->counts : COUNTS_EQUAL) {
    case COUNTS_SKEWED: return share(run, (from + to) % run->size);
    case COUNTS_SPARSE: return apart == 1 || apart == run->size - 1 ? run->message.bytes : 0;
    default: return run->message.bytes;
    }
}

static void nothing(struct run *run)
{
    (void)run;
}

static void from_root(struct run *run)
{
    add_slot(run, &run->recv, 0, -1, run->message.bytes);
}

static void sum(struct run *run)
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

static void sum_in_portions(struct run *run)
{
    for (int p = 0; p < run->size; p++)
        add_slot(run, &run->send, -1, p, portion(run, p));
    add_slot(run, &run->recv, -1, run->rank, portion(run, run->rank));
}

static void sum_in_blocks(struct run *run)
{
    for (int p = 0; p < run->size; p++)
        add_slot(run, &run->send, -1, p, run->message.bytes);
    add_slot(run, &run->recv, -1, run->rank, run->message.bytes);
}

static void one_to_root(struct run *run)
{
    add_slot(run, &run->send, run->rank, -1, share(run, run->rank));
    for (int p = 0; p < run->size; p++)
        add_slot(run, &run->recv, p, -1, share(run, p));
}

static void one_from_root(struct run *run)
{
    for (int p = 0; p < run->size; p++)
        add_slot(run, &run->send, -1, p, share(run, p));
    add_slot(run, &run->recv, -1, run->rank, share(run, run->rank));
}

static void one_between_all(struct run *run)
{
    for (int p = 0; p < run->size; p++)
        add_slot(run, &run->send, run->rank, p, share_between(run, run->rank, p));
    for (int p = 0; p < run->size; p++)
        add_slot(run, &run->recv, p, run->rank, share_between(run, p, run->rank));
}

#endif
