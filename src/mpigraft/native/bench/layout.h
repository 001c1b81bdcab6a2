/* The layout of a message in memory: one piece, or blocks with gaps; and its description to MPI. */
#ifndef MPIGRAFT_LAYOUT_H
#define MPIGRAFT_LAYOUT_H

#include <stdint.h>
#include <string.h>

#include "../common/check.h"
#include "mpi_functions.h"
#include "run.h"

enum {
    BLOCK = 64,  /* payload bytes per block of the indexed layout */
    PITCH = 128, /* bytes from one block to the next but for ... */
    SHIFT = 32,  /* ... every second one, which is moved: not a vector in disguise */
};

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

static bool is_indexed(const struct message *message)
{
    return message->datatype == DATATYPE_INDEXED && message->bytes;
}

/* Bytes that the description of the layout takes: ours while it is made, and MPI's own. */
static size_t bytes_of_type(const struct message *message)
{
    size_t block = sizeof(int) + sizeof(MPI_Aint);
    return is_indexed(message) ? 2 * block * blocks_of(message->bytes) : 0;
}

/* The plan of a message; a type that describes its layout is still to be committed. */
static struct message make_message(const struct benchmark *benchmark, enum datatype datatype,
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

static void commit_message(struct message *message)
{
    if (is_indexed(message))
        commit_indexed(message);
}

static void free_message(struct message *message)
{
    if (is_indexed(message))
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

#endif
