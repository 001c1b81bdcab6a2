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

enum { GROWTH = 256 << 10 }; /* bytes that are allocated at a time */

static struct slot {
    char path[PATH_MAX];
    ino_t inode;
    uint64_t bytes, offset;    /* of the slot, and its place in the file */
    uint64_t used, allocated;  /* bytes */
    char *base;                /* NULL: there is none */
    pthread_mutex_t lock;
} slot = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Give `length` bytes of a file room on the disk: 0, or the error. */
static int allocate(int file, uint64_t offset, uint64_t length)
{
    if (!fallocate(file, 0, (off_t)offset, (off_t)length))
        return 0;
    if (errno != EOPNOTSUPP && errno != ENOSYS)
        return errno;
    static const char zeros[4096];
    for (uint64_t done = 0; done < length; done += sizeof zeros)
        if (pwrite(file, zeros, sizeof zeros, (off_t)(offset + done)) != (ssize_t)sizeof zeros)
            return errno ? errno : ENOSPC;
    return fdatasync(file) ? errno : 0;
}

/* The file is opened anew: a program may close what it has not opened. */
static int grow(uint64_t to)
{
    int file = open(slot.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct stat status;
    if (file < 0)
        return errno;
    int error = fstat(file, &status) ? errno : status.st_ino != slot.inode ? ESTALE : 0;
    if (!error)
        error = allocate(file, slot.offset + slot.allocated, to - slot.allocated);
    close(file);
    if (!error)
        slot.allocated = to;
    return error;
}

/* Let other nodes see what is in the slot. A client of NFS sends what was written through a map when
 * any handle for writing on the file is closed, else half a minute later; the job may end sooner,
 * and its first node reads the file then. msync would wait for a local disk too. */
static void publish_slot(void)
{
    int file = open(slot.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file >= 0)
        close(file);
}

/* Room of `bytes` in the slot, all zero; NULL: what `dropped` names goes uncounted from now on. */
static void *take_room(uint64_t bytes, uint32_t dropped)
{
    struct trace_rank *head = (struct trace_rank *)(void *)slot.base;
    void *room = NULL;
    pthread_mutex_lock(&slot.lock);
    uint64_t from = (slot.used + 63) & ~UINT64_C(63), to = from + bytes;
    int error = bytes > slot.bytes || to > slot.bytes ? EFBIG : 0;
    if (!error && to > slot.allocated) {
        uint64_t all = (to + GROWTH - 1) / GROWTH * GROWTH;
        error = grow(all < slot.bytes ? all : slot.bytes);
    }
    if (!error) {
        room = slot.base + from;
        slot.used = head->used = to;
    } else if (!(head->dropped & dropped)) {
        head->dropped |= dropped | (error == EFBIG ? 0 : NO_DISK_SPACE);
        if (error != EFBIG)
            fprintf(stderr, "mpigraft-trace: %s: %s; the program goes on, not all is counted\n",
                    slot.path, strerror(error));
    }
    pthread_mutex_unlock(&slot.lock);
    return room;
}

static uint64_t offset_of(const void *room)
{
    return room ? (uint64_t)((const char *)room - slot.base) : 0;
}

static void *at_offset(uint64_t offset)
{
    return offset ? slot.base + offset : NULL;
}

/* ---- the node's file ---- */

/* Make the file under another name and link it, so that it appears whole. */
static int make_node_file(const char *path, const void *start, size_t bytes)
{
    char begun[PATH_MAX];
    if (snprintf(begun, sizeof begun, "%s.%ld", path, (long)getpid()) >= (int)sizeof begun)
        return ENAMETOOLONG;
    int file = open(begun, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        return errno;
    int error = allocate(file, 0, TRACE_START);
    if (!error && pwrite(file, start, bytes, 0) != (ssize_t)bytes)
        error = errno ? errno : ENOSPC;
    close(file);
    if (!error && link(begun, path) && errno != EEXIST)
        error = errno;
    unlink(begun);
    return error;
}

/* Map the next slot of the node's file in `folder`. `start` are the first `bytes` of a new file;
 * 0, or the error. */
static int take_slot(const char *folder, const void *start, size_t bytes)
{
    char host[256] = "", boot[64], node[128];
    gethostname(host, sizeof host - 1);
    read_line("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    name_node(host, boot, node, sizeof node);
    if (snprintf(slot.path, sizeof slot.path, "%s/%s.trace", folder, node) >=
        (int)sizeof slot.path)
        return ENAMETOOLONG;
    int file = open(slot.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW), error = 0;
    if (file < 0 && errno == ENOENT && !(error = make_node_file(slot.path, start, bytes)))
        file = open(slot.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return error ? error : errno;
    struct stat status;
    struct trace_file *head = mmap(NULL, TRACE_NAMES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (head == MAP_FAILED || fstat(file, &status)) {
        error = errno;
        goto end;
    }
    slot.inode = status.st_ino;
    slot.bytes = head->slot_bytes;
    uint64_t number = __atomic_fetch_add(&head->slots, 1, __ATOMIC_SEQ_CST);
    munmap(head, TRACE_NAMES);
    slot.offset = TRACE_START + number * slot.bytes;
    if ((error = allocate(file, slot.offset, GROWTH)))
        goto end;
    char *base = mmap(NULL, slot.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                      (off_t)slot.offset);
    if (base == MAP_FAILED) {
        error = errno;
        goto end;
    }
    slot.allocated = GROWTH;
    slot.used = sizeof(struct trace_rank);
    slot.base = base;
end:
    close(file);
    return error;
}

#endif
