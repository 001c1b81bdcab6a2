/* The slot of this rank in its node's file (slot.h), and room in it. */
#ifndef MPIGRAFT_TRACE_SLOT_H
#define MPIGRAFT_TRACE_SLOT_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../preload/task.h"

/* What libmpigraft-trace.so writes: one file per node, with a slot for each rank of that node.
 *
 * FOLDER/HOST-NODE.trace begins with `struct trace_file` and the names of all routines; slot i
 * begins at TRACE_START + i * slot_bytes. Ranks map their slot, so that what they count is in the
 * file at every moment: a rank that aborts or is killed leaves its numbers. A slot is sparse; what
 * is used of it is allocated before it is touched, so that a full disk is an answer and no signal.
 * Offsets count from the start of the slot; 0 is none. Numbers are those of the machine
 * (little-endian), times are ticks of its counter (ticks.h).
 */

#define TRACE_MAGIC "mpigraft-trace\n" /* with its NUL 16 bytes */

enum {
    TRACE_VERSION = 3,
    TRACE_NAMES = 4096,  /* where names of routines begin: NAME_BYTES each, without MPI_ */
    TRACE_START = 65536, /* where slots begin */
    NAME_BYTES = 32,
};

struct trace_file {
    char magic[16];
    uint32_t version, routines;
    uint64_t slot_bytes;
    uint64_t slots; /* taken so far */
};

enum rank_state { RANK_RUNNING = 1, RANK_FINALIZED = 2 };

/* What a rank no longer counted, and why. */
enum dropped {
    DROPPED_THREADS = 1, /* calls of some threads */
    DROPPED_SIZES = 2,   /* sizes of messages of some routines */
    DROPPED_PEERS = 4,   /* the matrix */
    DROPPED_SITES = 8,   /* some call sites */
    DROPPED_EVENTS = 16, /* the end of the record */
    NO_DISK_SPACE = 32,  /* the reason: the disk, and not the budget */
};

/* At the start of a slot. */
struct trace_rank {
    uint32_t state, dropped;
    int32_t rank, size, pid, thread_level;
    uint64_t began, ended;  /* ticks: before MPI_Init, after MPI_Finalize (or 0) */
    uint64_t began_ns;      /* the same moment by CLOCK_REALTIME */
    double ticks_per_s;     /* as measured from `began` to the latest of Init, Finalize */
    uint64_t pair_ticks;    /* what two reads of the counter take, one after the other */
    uint64_t used;          /* bytes of this slot */
    uint64_t threads;       /* the first struct trace_thread */
    uint64_t sites;         /* struct trace_sites */
    uint64_t maps, maps_bytes;       /* text of /proc/self/maps, with `sites` */
    uint64_t program, program_bytes; /* path of the program */
    uint64_t record;        /* struct trace_record (record_file.h) */
    uint64_t paused;        /* ticks that MPI_Pcontrol left out */
    uint64_t paused_since;  /* ticks at which it left out what follows; 0: it does not */
    uint64_t task, task_bytes; /* JSON: which process of the launch it is (task.h) */
};

/* One routine, as called by one thread. */
struct trace_routine {
    uint64_t calls, ticks;
    uint64_t bytes;   /* of the data that this rank gives; where it gives none, of what it takes */
    uint64_t waited;  /* part of ticks, with waits: for others, not moving data */
    uint64_t longest; /* ticks of one call */
    uint64_t errors;  /* calls that returned an error */
    uint64_t sizes;   /* SIZE_CLASSES of struct trace_size */
    uint64_t mixed;   /* struct trace_mixed */
};

/* Class 0 has 0 bytes, class k has 2^(k-1) to 2^k - 1. */
enum { SIZE_CLASSES = 64 };

struct trace_size {
    uint64_t calls, bytes, ticks;
};

/* Blocks of calls whose blocks lie more than two classes apart, and the smallest and largest of
 * them: their time is of no one class. Blocks of no bytes are not among them. */
struct trace_mixed {
    uint64_t calls, bytes, ticks, least, most;
};

/* What this rank sent to one of the world: at [rank * PEER_KINDS + kind]. */
enum peer_kind { PEER_P2P, PEER_COLLECTIVE, PEER_ONE_SIDED, PEER_KINDS };

struct trace_peer {
    uint64_t messages, bytes;
};

/* One thread; it is followed by a struct trace_routine for each routine. */
struct trace_thread {
    uint64_t next;
    int64_t thread;   /* id of the kernel */
    uint64_t current; /* routine that runs now, plus 1; 0: none */
    uint64_t entered; /* ticks at which it was called, or the last one returned */
    uint64_t peers;   /* `size` * PEER_KINDS of struct trace_peer */
    uint64_t paused;  /* of the rank, when `entered` was */
    uint64_t unused;  /* the next thread that has ended, whose counts another one goes on with */
    uint64_t reserved;
};

/* Where calls come from: a hash table with open addressing; `calls` of 0 is a free place. */
enum { SITE_FRAMES = 8, SITES = 4096 };

struct trace_site {
    uint64_t routine, calls, ticks, bytes;
    uint64_t frames[SITE_FRAMES]; /* return addresses outside of MPI, the innermost first */
};

extern struct slot {
    char path[PATH_MAX];
    ino_t inode;
    uint64_t bytes, offset;    /* of the slot, and its place in the file */
    uint64_t used, allocated;  /* bytes */
    char *base;                /* NULL: there is none */
    pthread_mutex_t lock;
} slot;

void publish_slot(void);
void *take_room(uint64_t bytes, uint32_t dropped);

static inline uint64_t offset_of(const void *room)
{
    return room ? (uint64_t)((const char *)room - slot.base) : 0;
}

static inline void *at_offset(uint64_t offset)
{
    return offset ? slot.base + offset : NULL;
}

int take_slot(const char *folder, const void *start, size_t bytes);

#endif
