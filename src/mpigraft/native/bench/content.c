/* What messages contain, and whether it arrived. */
#include <limits.h>
#include <stdint.h>

#include "../common/check.h"
#include "../common/memory.h"
#include "message.h"

/* Longer messages are cut into pieces, each from a place of its own in the table: a table as
 * long as the messages would take the memory of another buffer. An even number of blocks. */
#ifndef PIECE
#define PIECE (16 << 20)
#endif

static unsigned char *content;
static size_t content_bytes;

/* Bytes of a table for messages of up to `largest`. */
size_t content_for(size_t largest)
{
    return KEYS + (largest < PIECE ? largest : PIECE);
}

void make_content(size_t largest)
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

enum {
    MOST_ADDING = 42, /* ranks that add to one sum of signed chars: each at most 3 then */
    MOST_ADDEND = 7,
    UNKNOWN = 0xFF,   /* no part of a sum, and no sum of signed chars */
};

/* What rank `rank` adds to the content before a reduction, small enough that float sums of
 * tens of thousands of ranks are exact. */
static unsigned addend(int rank)
{
    return (unsigned)rank & MOST_ADDEND;
}

/* No sum of signed chars is over 127. What comes beyond is left open by C and MPI: Open MPI's loops
 * for AVX stop at 127 where its others wrap. So of many ranks every k-th one adds to a byte. */
static unsigned every_kth(int ranks)
{
    return ((unsigned)ranks + MOST_ADDING - 1) / MOST_ADDING;
}

/* What `rank` adds where the content has `byte`. */
static unsigned part_of_sum(int rank, int ranks, unsigned byte)
{
    unsigned k = every_kth(ranks), adding = ((unsigned)ranks + k - 1) / k;
    if (((unsigned)rank + byte) % k)
        return 0;
    return 1 + ((unsigned)rank & 1u) + byte % (SCHAR_MAX / adding - 1);
}

/* What all ranks add there: 1 or more. */
static unsigned sum_of_parts(int ranks, unsigned byte)
{
    unsigned k = every_kth(ranks), sum = 0;
    for (unsigned rank = (k - byte % k) % k; rank < (unsigned)ranks; rank += k)
        sum += part_of_sum((int)rank, ranks, byte);
    return sum;
}

/* The most that any of them adds there. */
static unsigned most_of_parts(int ranks, unsigned byte)
{
    unsigned k = every_kth(ranks), most = 0;
    for (unsigned rank = (k - byte % k) % k; rank < (unsigned)ranks; rank += k) {
        unsigned part = part_of_sum((int)rank, ranks, byte);
        most = part > most ? part : most;
    }
    return most;
}

static void fill_small_numbers(const struct run *run, char *to, const unsigned char *from,
                               size_t bytes)
{
    unsigned char parts[UCHAR_MAX + 1];
    memset(parts, UNKNOWN, sizeof parts);
    for (size_t i = 0; i < bytes; i++) {
        unsigned char *part = &parts[from[i]];
        if (*part == UNKNOWN)
            *part = (unsigned char)part_of_sum(run->rank, run->size, from[i]);
        to[i] = (char)*part;
    }
}

static bool right_small_sums(const struct run *run, const char *at, const unsigned char *from,
                             size_t bytes)
{
    unsigned char sums[UCHAR_MAX + 1];
    unsigned wrong = 0;
    memset(sums, UNKNOWN, sizeof sums);
    for (size_t i = 0; i < bytes; i++) {
        unsigned char *sum = &sums[from[i]];
        if (*sum == UNKNOWN)
            *sum = (unsigned char)(in_place(run) ? most_of_parts(run->size, from[i])
                                                 : sum_of_parts(run->size, from[i]));
        wrong |= (unsigned char)at[i] != *sum;
    }
    return !wrong;
}

static void fill_numbers(const struct run *run, char *to, const unsigned char *from, size_t bytes)
{
    unsigned mine = addend(run->rank);
    if (run->message.type == MPI_FLOAT)
        for (size_t i = 0; i < bytes / sizeof(float); i++)
            ((float *)(void *)to)[i] = (float)(from[i] + mine);
    else if (run->message.type == MPI_SIGNED_CHAR)
        fill_small_numbers(run, to, from, bytes);
    else
        for (size_t i = 0; i < bytes; i++)
            to[i] = (char)(unsigned char)(from[i] + mine);
}

/* The largest of what ranks give: content and the largest addend, as far as a byte holds it. */
static bool right_maxima(const struct run *run, const char *at, const unsigned char *from,
                         size_t bytes)
{
    unsigned wrong = 0;
    bool floats = run->message.type == MPI_FLOAT;
    for (size_t i = 0; i < (floats ? bytes / sizeof(float) : bytes); i++) {
        unsigned most = 0;
        for (int rank = 0; rank < run->size && rank <= (int)MOST_ADDEND; rank++) {
            unsigned given = from[i] + addend(rank);
            given = floats ? given : (unsigned char)given;
            most = given > most ? given : most;
        }
        wrong |= floats ? ((const float *)(const void *)at)[i] != (float)most
                        : (unsigned char)at[i] != most;
    }
    return !wrong;
}

static bool right_sums(const struct run *run, const char *at, const unsigned char *from,
                       size_t bytes)
{
    unsigned ranks = (unsigned)run->size, more = 0, wrong = 0;
    if (run->message.type == MPI_SIGNED_CHAR)
        return right_small_sums(run, at, from, bytes);
    if (in_place(run))
        return right_maxima(run, at, from, bytes);
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

/* Whether numbers that were all ones have had the content added to them `accumulated` times: as
 * unsigned integers, whose sums wrap in every MPI; or as bytes, by an exclusive or. */
static bool right_accumulation(const struct run *run, const char *at, const unsigned char *from,
                               size_t bytes)
{
    uint64_t times = (uint64_t)run->accumulated, wrong = 0;
    size_t width = run->message.type == MPI_BYTE ? 1 : run->message.bytes /
                                                           (size_t)run->message.count;
    for (size_t i = 0; i + width <= bytes; i += width) {
        uint64_t number = 0, given = 0, all = UINT64_MAX >> (64 - 8 * width);
        memcpy(&number, at + i, width); /* of machines that store the low byte first */
        memcpy(&given, from + i, width);
        uint64_t expected = width > 1 ? all + times * given : all ^ (times % 2 ? given : 0);
        wrong |= number ^ (expected & all);
    }
    return !wrong;
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

void fill_slot(const struct run *run, struct area *area, const struct slot *slot)
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

void upload(const struct run *run, struct area *area)
{
    if (area->host != area->data)
        MEMORIES[run->options->buffers].upload(area->data, area->host, area->bytes);
}

void fill(const struct run *run, struct area *area)
{
    for (int i = 0; i < area->slots; i++)
        fill_slot(run, area, &area->slot[i]);
    upload(run, area);
}

void poison(const struct run *run, struct area *area)
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
void check_area(struct run *run, struct area *area)
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

void forget_content(void)
{
    free(content);
}
