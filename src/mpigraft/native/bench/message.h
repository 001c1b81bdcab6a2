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

#include "run.h"

enum {
    POISON = 0xFF,
    KEYS = 4093, /* places in the table; a prime */
    STEP = 61,   /* content of one message of a rank to that of the next */
    GUARD = 64,  /* bytes after a buffer that must stay as they are */
    MAX_IN_FLIGHT = 64 << 20, /* bytes of one window; larger messages have a shorter window */
};

/* ---- layout: one piece, or blocks with gaps ---- */

enum {
    BLOCK = 64,  /* payload bytes per block of the indexed layout */
    PITCH = 128, /* bytes from one block to the next but for ... */
    SHIFT = 32,  /* ... every second one, which is moved: not a vector in disguise */
};

static inline bool strided(const struct message *message)
{
    return message->datatype != DATATYPE_CONTIGUOUS;
}

static inline size_t block_offset(size_t block)
{
    return block * PITCH + (block & 1) * SHIFT;
}

static inline size_t blocks_of(size_t bytes)
{
    return (bytes + BLOCK - 1) / BLOCK;
}

static inline size_t span_of(const struct message *message, size_t bytes)
{
    return strided(message) ? blocks_of(bytes) * PITCH : bytes;
}

static inline bool is_indexed(const struct message *message)
{
    return message->datatype == DATATYPE_INDEXED && message->bytes;
}

/* Gather a strided payload into `packed`, or lay it out from there. Full blocks are copied with
 * a length that the compiler knows, as a careful application would. */
static inline void pack_bytes(char *packed, const char *laid, size_t bytes)
{
    size_t block = 0, done = 0;
    for (; bytes - done >= BLOCK; block++, done += BLOCK)
        memcpy(packed + done, laid + block_offset(block), BLOCK);
    memcpy(packed + done, laid + block_offset(block), bytes - done);
}

static inline void unpack_bytes(char *laid, const char *packed, size_t bytes)
{
    size_t block = 0, done = 0;
    for (; bytes - done >= BLOCK; block++, done += BLOCK)
        memcpy(laid + block_offset(block), packed + done, BLOCK);
    memcpy(laid + block_offset(block), packed + done, bytes - done);
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

/* ---- message.c ---- */

struct message make_message(const struct benchmark *benchmark, enum datatype datatype,
                            size_t bytes);
void commit_message(struct message *message);
void free_message(struct message *message);
unsigned key_between(int from, int to);
struct slot *add_slot(struct run *run, struct area *area, int from, int to, size_t bytes);
void plan_areas(struct run *run);
void forget_areas(struct run *run);
size_t bytes_of_messages(const struct run *run);
void allocate_area(const struct run *run, struct area *area, bool lent);
void release_area(const struct run *run, struct area *area);
size_t share(const struct run *run, int rank);
size_t share_between(const struct run *run, int from, int to);

/* Setups of collectives. */
setup_of_messages nothing, from_root, sum, sum_in_portions, sum_in_blocks, one_to_root,
    one_from_root, one_between_all;

/* ---- content.c ---- */

size_t content_for(size_t largest);
void make_content(size_t largest);
void fill_slot(const struct run *run, struct area *area, const struct slot *slot);
void upload(const struct run *run, struct area *area);
void fill(const struct run *run, struct area *area);
void poison(const struct run *run, struct area *area);
void check_area(struct run *run, struct area *area);
void forget_content(void);

/* ---- buffers.c ---- */

void plan_size(struct run *run, size_t bytes);
void set_up(struct run *run, size_t bytes);
void tear_down(struct run *run);
void prepare(struct run *run);
void check(struct run *run, long iterations);

#endif
