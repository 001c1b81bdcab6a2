/* What this process's own TCP connections have sent and received, by the kernel's count of each.
 *
 * Counters of an interface add up what all programs of a host send; TCP_INFO knows one connection.
 * No privilege is needed. What the walk cannot see is a gap, and named: sums are then what was sent
 * at least, and that nothing was sent cannot be known.
 */
#ifndef MPIGRAFT_PROBE_SOCKETS_H
#define MPIGRAFT_PROBE_SOCKETS_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "connection.h"

#ifndef PROC_SELF
#define PROC_SELF "/proc/self"
#endif

/* Why sums are not all; of several the last one of this list is reported. */
enum gap {
    NO_GAP,
    GAP_LOST,
    GAP_CHILD,
    GAP_RING,
    GAP_DEVICE,
    GAP_OTHER,
    GAP_MEMORY,
    GAP_UNCOUNTED,
    GAP_UNREADABLE,
};
static const char *const GAPS[] = {
    "",
    "a connection was closed meanwhile",
    "a rank has child processes, which may have connections",
    "a rank uses io_uring, which may have connections of its own",
    "a rank has an RDMA device open",
    "a rank has sockets that are not TCP (UDP, SCTP, raw)",
    "a rank had no memory left for the list of its connections",
    "the kernel does not count the bytes of a connection",
    "a rank cannot list its open files",
};

struct sockets {
    struct connection *all; /* by inode */
    size_t count, room;
    unsigned walk;
    enum gap gap;
    bool counts; /* the kernel counts bytes of connections, as was tried */
};

static void note_gap(struct sockets *own, enum gap gap)
{
    if (gap > own->gap)
        own->gap = gap;
}

/* ---- the walk ---- */

static int option_of(int fd, int option)
{
    int value = -1;
    socklen_t length = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &length) ? -1 : value;
}

static int by_inode(const void *one, const void *other)
{
    const struct connection *a = one, *b = other;
    return a->inode < b->inode ? -1 : a->inode > b->inode;
}

static struct connection *add_connection(struct sockets *own, uint64_t inode)
{
    if (own->count == own->room) {
        size_t room = own->room ? 2 * own->room : 16;
        struct connection *more = realloc(own->all, room * sizeof *more);
        if (!more) {
            note_gap(own, GAP_MEMORY);
            return NULL;
        }
        own->all = more;
        own->room = room;
    }
    struct connection *added = &own->all[own->count++];
    *added = (struct connection){.inode = inode, .interface = -1, .walk = own->walk};
    return added;
}

static bool tcp(int domain, int type, int protocol)
{
    return (domain == AF_INET || domain == AF_INET6) && type == SOCK_STREAM &&
           protocol == IPPROTO_TCP;
}

/* Whether a socket that is no TCP connection may carry messages between ranks. One of UDP without
 * a port of its own never sent anything: such are kept to ask the kernel about interfaces. */
static bool may_carry(int fd, int domain, int type)
{
    struct sockaddr_storage name = {0};
    struct endpoint end;
    socklen_t length = sizeof name;
    if (domain == AF_UNIX || domain == AF_NETLINK || domain == AF_ALG)
        return false;
    if ((domain != AF_INET && domain != AF_INET6) || type != SOCK_DGRAM)
        return true;
    return getsockname(fd, (struct sockaddr *)&name, &length) || !endpoint_of(&name, &end) ||
           end.port;
}

/* A socket that is not in the list yet. One without a peer listens, or is not connected yet. */
static void add_socket(struct sockets *own, int fd, uint64_t inode)
{
    struct sockaddr_storage local = {0}, peer = {0};
    socklen_t length = sizeof local, peer_length = sizeof peer;
    int domain = option_of(fd, SO_DOMAIN), type = option_of(fd, SO_TYPE);
    if (!tcp(domain, type, option_of(fd, SO_PROTOCOL))) {
        if (may_carry(fd, domain, type))
            note_gap(own, domain < 0 ? GAP_UNCOUNTED : GAP_OTHER);
        return;
    }
    if (getpeername(fd, (struct sockaddr *)&peer, &peer_length)) {
        if (errno != ENOTCONN)
            note_gap(own, GAP_UNCOUNTED);
        return;
    }
    struct endpoint ends[2];
    if (getsockname(fd, (struct sockaddr *)&local, &length) || !endpoint_of(&local, &ends[0]) ||
        !endpoint_of(&peer, &ends[1])) {
        note_gap(own, GAP_UNCOUNTED);
        return;
    }
    struct connection *added = add_connection(own, inode);
    if (!added)
        return;
    added->local = ends[0];
    added->peer = ends[1];
    socklen_t room = sizeof added->device;
    if (getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, added->device, &room))
        added->device[0] = 0;
    added->device[IF_NAMESIZE - 1] = 0;
    if (!read_counts(fd, added))
        note_gap(own, GAP_UNCOUNTED);
}

static void visit_socket(struct sockets *own, size_t known, int fd, uint64_t inode)
{
    struct connection like = {.inode = inode};
    struct connection *entry =
        known ? bsearch(&like, own->all, known, sizeof like, by_inode) : NULL;
    if (!entry) {
        add_socket(own, fd, inode);
    } else if (entry->walk != own->walk) {
        entry->walk = own->walk;
        if (!read_counts(fd, entry))
            note_gap(own, GAP_UNCOUNTED);
    }
}

/* Files that have ways of their own into a network. */
static void visit_other(struct sockets *own, int folder, const char *name)
{
    char target[128];
    ssize_t length = readlinkat(folder, name, target, sizeof target - 1);
    if (length < 0)
        return; /* closed meanwhile */
    target[length] = 0;
    if (strstr(target, "[io_uring]"))
        note_gap(own, GAP_RING);
    if (!strncmp(target, "/dev/infiniband/uverbs", 22))
        note_gap(own, GAP_DEVICE);
}

/* Whether a thread of this process has started another process. Kernels without such a file do
 * not say. */
static bool has_children(void)
{
    DIR *tasks = opendir(PROC_SELF "/task");
    struct dirent *task;
    bool any = false;
    while (tasks && !any && (task = readdir(tasks))) {
        char path[sizeof PROC_SELF + 320];
        snprintf(path, sizeof path, PROC_SELF "/task/%s/children", task->d_name);
        FILE *file = task->d_name[0] == '.' ? NULL : fopen(path, "r");
        if (!file)
            continue;
        any = fgetc(file) != EOF;
        fclose(file);
    }
    if (tasks)
        closedir(tasks);
    return any;
}

/* Two descriptors of a new socket have made two entries of it. */
static void drop_doubles(struct sockets *own)
{
    size_t kept = 0;
    for (size_t i = 0; i < own->count; i++)
        if (!kept || own->all[i].inode != own->all[kept - 1].inode)
            own->all[kept++] = own->all[i];
    own->count = kept;
}

/* Bring the list up to date. A connection that is gone stays in it, with an older walk. */
static void walk_sockets(struct sockets *own)
{
    size_t known = own->count;
    DIR *folder = opendir(PROC_SELF "/fd");
    struct dirent *entry;
    own->walk++;
    if (!own->counts)
        note_gap(own, GAP_UNCOUNTED);
    if (!folder)
        note_gap(own, GAP_UNREADABLE);
    while (folder && (entry = readdir(folder))) {
        struct stat status;
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9' || fstat(fd, &status))
            continue;
        if (S_ISSOCK(status.st_mode))
            visit_socket(own, known, fd, status.st_ino);
        else if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode) && !S_ISDIR(status.st_mode))
            visit_other(own, dirfd(folder), entry->d_name);
    }
    if (folder)
        closedir(folder);
    if (own->count)
        qsort(own->all, own->count, sizeof *own->all, by_inode);
    drop_doubles(own);
    if (has_children())
        note_gap(own, GAP_CHILD);
}

/* ---- between two walks ---- */

/* Forget what is gone, and count from here. */
static void begin_window(struct sockets *own)
{
    size_t kept = 0;
    own->gap = NO_GAP;
    walk_sockets(own);
    for (size_t i = 0; i < own->count; i++)
        if (own->all[i].walk == own->walk) {
            own->all[kept] = own->all[i];
            own->all[kept].sent_before = own->all[kept].sent;
            own->all[kept].received_before = own->all[kept].received;
            kept++;
        }
    own->count = kept;
}

/* What a connection to a rank sent before it was closed is not known. One that has come meanwhile
 * counts from its start. */
static void end_window(struct sockets *own)
{
    walk_sockets(own);
    for (size_t i = 0; i < own->count; i++) {
        const struct connection *one = &own->all[i];
        bool gone = one->walk != own->walk;
        bool back = one->sent < one->sent_before || one->received < one->received_before;
        if ((gone || back) && (!one->tried || one->class != NO_RANK))
            note_gap(own, GAP_LOST);
    }
}

static void forget_sockets(struct sockets *own)
{
    free(own->all);
    memset(own, 0, sizeof *own);
}

#endif
