/* Standard input between mpigraft-stdin, which has it, and mpigraft-gpu-select, whose rank is to get it.
 *
 * The file "stdin" in the job's folder of records says how to come by it, a line each:
 *     unix NAME            an abstract socket: the answer is a byte with a file descriptor
 *     token GREETING REPLY 16 digits each
 *     tcp ADDRESS PORT     where the server listens for ranks on other nodes
 * Over TCP the server says GREETING, and the rank says REPLY, so that neither talks to a stranger.
 * Then the rank asks for bytes and gets as many or fewer: their number, and the bytes; 0 is the
 * end. A question is two numbers, the bytes that are wanted and 0; the last one is GONE and the
 * bytes of the last answer that the program left unread, or ALL_OF_IT where it was gone before the
 * answer came. Numbers have 4 bytes, in network order.
 */
#ifndef MPIGRAFT_START_STDIN_H
#define MPIGRAFT_START_STDIN_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define STDIN_FILE "stdin"
#define HALF 16           /* digits of each half of the token */
#define PIECE 4096        /* bytes that wait in a pipe for the program: its smallest size */
#define PORTION (1 << 16) /* bytes of a stream, for a rank that is known to read much */
#define BLOCK (1 << 18)   /* bytes of a file that are sent at once; what is not read is put back */
#define GONE 0xffffffffu
#define ALL_OF_IT 0xffffffffu

struct place {
    int near, far; /* sockets that listen; -1: none does */
    char name[64], greeting[HALF + 1], reply[HALF + 1];
};

/* stdin_place.c */
_Noreturn void fail(const char *what);
void announce(struct place *place, const char *folder, bool far);

/* stdin_rank.c */
void nothing_to_read(void);
void take_stdin(const char *folder);

/* gpu_select.c */
__attribute__((noreturn, format(printf, 2, 3))) void refuse(int code, const char *format, ...);

/* Whether all of it was written. */
static inline bool send_all(int fd, const void *bytes, size_t count, int flags)
{
    for (const char *at = bytes; count;) {
        ssize_t done = send(fd, at, count, MSG_NOSIGNAL | flags);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        at += done;
        count -= (size_t)done;
    }
    return true;
}

#endif
