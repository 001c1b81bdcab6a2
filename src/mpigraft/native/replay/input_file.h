/* The file that a replay reads: made by Python of a record, an entry for each rank and its part,
 * which is what the rank wrote (record_file.h). A rank reads its own part alone. */
#ifndef MPIGRAFT_REPLAY_INPUT_FILE_H
#define MPIGRAFT_REPLAY_INPUT_FILE_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/check.h"
#include "../calls/record_file.h"

#define REPLAY_MAGIC "mpigraft-replay" /* with its NUL 16 bytes */

enum { REPLAY_VERSION = 1 };

/* Calls of the replay itself are none of the program's: a library that traces leaves them out. */
static void own_calls(int more)
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

#define OWN(call) (own_calls(1), OK(call), own_calls(-1))

struct replay_head {
    char magic[16];
    uint32_t version, ranks;
    uint32_t abi, reserved; /* of the MPI of the record: enum abi */
};

struct replay_part {
    uint64_t offset, bytes, checksum;
    uint64_t first, last; /* calls that are made, from 0; before them only objects are */
};

/* Bytes that are read one after the other; `bad` stays set after the first that is missing. */
struct bytes {
    const unsigned char *at, *end;
    bool bad;
};

static uint64_t read_unsigned(struct bytes *bytes)
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

static int64_t read_signed(struct bytes *bytes)
{
    uint64_t value = read_unsigned(bytes);
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static struct bytes take_bytes(struct bytes *bytes, uint64_t length)
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
static const char *read_part(const char *path, int rank, int size, struct replay_head *head,
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

#endif
