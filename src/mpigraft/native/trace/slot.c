/* The slot of this rank in its node's file (slot.h), and room in it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../preload/task.h"
#include "slot.h"

struct slot slot = {.lock = PTHREAD_MUTEX_INITIALIZER};

enum { GROWTH = 256 << 10 }; /* bytes that are allocated at a time */

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
void publish_slot(void)
{
    int file = open(slot.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file >= 0)
        close(file);
}

/* Room of `bytes` in the slot, all zero; NULL: what `dropped` names goes uncounted from now on. */
void *take_room(uint64_t bytes, uint32_t dropped)
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
int take_slot(const char *folder, const void *start, size_t bytes)
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
