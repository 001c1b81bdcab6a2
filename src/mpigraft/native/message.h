/* Messages: how they lie in memory, what they contain, and whether they arrived.
 *
 * Content is cut from one table of pseudo-random bytes at a place that depends on sender,
 * receiver and round, so making and checking it is a memcpy and a memcmp. No byte of the
 * table is POISON; whatever shall receive is filled with POISON first.
 */
#ifndef MPIGRAFT_MESSAGE_H
#define MPIGRAFT_MESSAGE_H

#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "check.h"
#include "memory.h"
#include "run.h"

enum {
    POISON = 0xFF,
    KEYS = 4093,  /* places in the table; a prime */
    GUARD = 64,   /* bytes after a buffer that must stay as they are */
    BLOCK = 64,   /* payload bytes per block of the indexed layout */
    PITCH = 128,  /* bytes from one block to the next but for ... */
    SHIFT = 32,   /* ... every second one, which is moved: not a vector in disguise */
    MAX_IN_FLIGHT = 64 << 20, /* bytes of one window; larger messages have a shorter window */
};

static unsigned char *content; /* KEYS + the largest message */
static size_t content_bytes;

static void make_content(size_t largest)
{
    if (content_bytes >= largest + KEYS)
        return;
    free(content);
    content_bytes = largest + KEYS;
    content = need(content_bytes, 1);
    uint32_t state = 2463534242u;
    for (size_t i = 0; i < content_bytes; i++) {
        state ^= state << 13, state ^= state >> 17, state ^= state << 5; /* xorshift32 */
        content[i] = (unsigned char)((state >> 8) % 251);
    }
}

/* ---- layout ---- */

static bool strided(const struct message *message)
{
    return message->datatype != DATATYPE_CONTIGUOUS;
}

static size_t block_offset(size_t block)
{
    return block * PITCH + (block & 1) * SHIFT;
}

static size_t blocks_of(size_t bytes)
{
    return (bytes + BLOCK - 1) / BLOCK;
}

static size_t span_of(const struct message *message, size_t bytes)
{
    return strided(message) ? blocks_of(bytes) * PITCH : bytes;
}

static MPI_Datatype indexed_type(size_t bytes, size_t extent)
{
    int blocks = (int)blocks_of(bytes);
    int *lengths = need((size_t)blocks, sizeof *lengths);
    int *places = need((size_t)blocks, sizeof *places);
    for (int i = 0; i < blocks; i++) {
        lengths[i] = BLOCK;
        places[i] = (int)block_offset((size_t)i);
    }
    lengths[blocks - 1] = (int)(bytes - (size_t)(blocks - 1) * BLOCK);
    MPI_Datatype bare, type;
    OK(MPI_Type_indexed(blocks, lengths, places, MPI_CHAR, &bare));
    OK(MPI_Type_create_resized(bare, 0, (MPI_Aint)extent, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_free(&bare));
    free(lengths);
    free(places);
    return type;
}

static struct message make_message(const struct benchmark *benchmark, enum datatype datatype,
                                   size_t bytes)
{
    struct message message = {.datatype = datatype, .bytes = bytes, .count = (int)bytes};
    message.extent = span_of(&message, bytes);
    message.type = MPI_CHAR;
    if (benchmark->traits & REDUCES) {
        bool floats = bytes % sizeof(float) == 0;
        message.type = floats ? MPI_FLOAT : MPI_UNSIGNED_CHAR;
        message.count = (int)(floats ? bytes / sizeof(float) : bytes);
    } else if (datatype == DATATYPE_INDEXED && bytes) {
        message.type = indexed_type(bytes, message.extent);
        message.count = 1;
    }
    return message;
}

static void free_message(struct message *message)
{
    if (message->datatype == DATATYPE_INDEXED && message->bytes)
        OK(MPI_Type_free(&message->type));
}

/* Gather a strided payload into `packed`, or lay it out from there. Full blocks are copied with
 * a length that the compiler knows, as a careful application would. */
static void pack_bytes(char *packed, const char *laid, size_t bytes)
{
    size_t block = 0, done = 0;
    for (; bytes - done >= BLOCK; block++, done += BLOCK)
        memcpy(packed + done, laid + block_offset(block), BLOCK);
    memcpy(packed + done, laid + block_offset(block), bytes - done);
}

static void unpack_bytes(char *laid, const char *packed, size_t bytes)
{
    size_t block = 0, done = 0;
    for (; bytes - done >= BLOCK; block++, done += BLOCK)
        memcpy(laid + block_offset(block), packed + done, BLOCK);
    memcpy(laid + block_offset(block), packed + done, bytes - done);
}

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

static inline void unpack(struct run *run)
{
    if (run->message.datatype == DATATYPE_PACKED)
        for (int i = 0; i < run->recv.slots; i++) {
            const struct slot *s = &run->recv.slot[i];
            unpack_bytes(run->recv.data + s->offset, run->recv.wire + s->wire, s->bytes);
        }
}

/* ---- areas ---- */

/* A message from rank `from` to rank `to` (-1: to all) is the next one in `area`. */
static void add_slot(struct run *run, struct area *area, int from, int to, size_t bytes)
{
    bool packed = run->message.datatype == DATATYPE_PACKED;
    unsigned key = (unsigned)(from + 1) * 641u + (unsigned)(to + 1) * 269u;
    area->slot[area->slots++] =
        (struct slot){area->bytes, packed ? area->wire_bytes : area->bytes, bytes, key};
    area->bytes += span_of(&run->message, bytes);
    area->wire_bytes += packed ? bytes : span_of(&run->message, bytes);
}

static void plan_areas(struct run *run)
{
    size_t most = (size_t)(run->size > run->window ? run->size : run->window);
    run->send = run->recv = (struct area){0};
    run->send.slot = need(most, sizeof *run->send.slot);
    run->recv.slot = need(most, sizeof *run->recv.slot);
    run->benchmark->setup(run);
}

static void forget_areas(struct run *run)
{
    free(run->send.slot);
    free(run->recv.slot);
}

/* Bytes of host memory that the areas of this rank will take. */
static size_t bytes_of_areas(const struct run *run)
{
    bool packed = run->message.datatype == DATATYPE_PACKED;
    size_t bytes = run->send.bytes + run->recv.bytes;
    return bytes + (packed ? run->send.wire_bytes + run->recv.wire_bytes : 0);
}

static void allocate_area(const struct run *run, struct area *area)
{
    const struct memory *memory = &MEMORIES[run->options->buffers];
    area->data = area->owned[0] = memory->allocate(area->bytes + GUARD);
    area->wire = area->host = area->data;
    if (run->message.datatype == DATATYPE_PACKED)
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

static const unsigned char *content_of(const struct run *run, const struct slot *slot)
{
    return content + (slot->key + run->round * 97u) % KEYS;
}

/* What rank `rank` adds to the content before a reduction, small enough that float sums of
 * tens of thousands of ranks are exact. */
static unsigned addend(int rank)
{
    return (unsigned)rank & 7u;
}

static void fill_numbers(const struct run *run, char *to, const unsigned char *from, size_t bytes)
{
    unsigned mine = addend(run->rank);
    if (run->message.type == MPI_FLOAT)
        for (size_t i = 0; i < bytes / sizeof(float); i++)
            ((float *)(void *)to)[i] = (float)(from[i] + mine);
    else
        for (size_t i = 0; i < bytes; i++)
            to[i] = (char)(unsigned char)(from[i] + mine);
}

static bool right_sums(const struct run *run, const char *at, const unsigned char *from,
                       size_t bytes)
{
    unsigned ranks = (unsigned)run->size, more = 0, wrong = 0;
    for (int rank = 0; rank < run->size; rank++)
        more += addend(rank);
    if (run->message.type == MPI_FLOAT)
        for (size_t i = 0; i < bytes / sizeof(float); i++)
            wrong |= ((const float *)(const void *)at)[i] != (float)(from[i] * ranks + more);
    else
        for (size_t i = 0; i < bytes; i++)
            wrong |= (unsigned char)at[i] != (unsigned char)(from[i] * ranks + more);
    return !wrong;
}

static void fill(const struct run *run, struct area *area)
{
    for (int i = 0; i < area->slots; i++) {
        const struct slot *slot = &area->slot[i];
        const unsigned char *from = content_of(run, slot);
        if (has(run, REDUCES))
            fill_numbers(run, area->host + slot->offset, from, slot->bytes);
        else if (strided(&run->message))
            unpack_bytes(area->host + slot->offset, (const char *)from, slot->bytes);
        else
            memcpy(area->host + slot->offset, from, slot->bytes);
    }
    if (area->host != area->data)
        MEMORIES[run->options->buffers].upload(area->data, area->host, area->bytes);
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
    const unsigned char *expected = content_of(run, s);
    const char *at = area->host + s->offset;
    if (has(run, REDUCES))
        return right_sums(run, at, expected, s->bytes);
    if (strided(&run->message))
        return right_blocks(at, expected, s->bytes);
    return !memcmp(at, expected, s->bytes);
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

#endif
