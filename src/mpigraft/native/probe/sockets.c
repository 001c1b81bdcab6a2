/* One TCP connection: its two ends, and what it has sent and received by the kernel's count. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "kernel.h"

/* struct tcp_info as Linux 4.1 and later have it: headers of glibc 2.17 end before the bytes, and
 * the length that the kernel returns tells what it knows. include/uapi/linux/tcp.h */
struct tcp_counts {
    uint8_t state, other[7];
    uint32_t more[24];
    uint64_t pacing_rate, max_pacing_rate;
    uint64_t bytes_acked, bytes_received;
};
_Static_assert(offsetof(struct tcp_counts, bytes_acked) == 120, "as in the kernel's tcp_info");
_Static_assert(sizeof(struct tcp_counts) == 136, "as in the kernel's tcp_info");

enum { TCP_INFO_OPTION = 11, SIOCOUTQ_REQUEST = 0x5411 };

bool endpoint_of(const struct sockaddr_storage *name, struct endpoint *end)
{
    static const unsigned char mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    memset(end, 0, sizeof *end);
    if (name->ss_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, name, sizeof in);
        memcpy(end->address, &in.sin_addr, 4);
        end->port = in.sin_port;
    } else if (name->ss_family == AF_INET6) {
        struct sockaddr_in6 in;
        memcpy(&in, name, sizeof in);
        memcpy(end->address, &in.sin6_addr, 16);
        end->port = in.sin6_port;
        end->scope = in.sin6_scope_id;
        if (!memcmp(end->address, mapped, sizeof mapped)) {
            memmove(end->address, end->address + 12, 4);
            memset(end->address + 4, 0, 12);
            end->family = AF_INET;
            return true;
        }
    } else {
        return false;
    }
    end->family = name->ss_family;
    return true;
}

/* Bytes that the peer has acknowledged, and those that wait for that: all that was written. */
static bool read_counts(int fd, struct connection *connection)
{
    struct tcp_counts counts;
    socklen_t length = sizeof counts;
    int queued = 0;
    memset(&counts, 0, sizeof counts);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO_OPTION, &counts, &length) || length < sizeof counts)
        return false;
    if (ioctl(fd, SIOCOUTQ_REQUEST, &queued) || queued < 0)
        queued = 0;
    connection->sent = (long long)counts.bytes_acked + queued;
    connection->received = (long long)counts.bytes_received;
    return true;
}

/* ---- whether the kernel counts ---- */

enum { TRIAL_BYTES = 1000 };

static void close_all(const int *fd, int count)
{
    for (int i = 0; i < count; i++)
        if (fd[i] >= 0)
            close(fd[i]);
}

static bool sent_and_counted(int from, int to)
{
    struct connection out = {0}, in = {0};
    char data[TRIAL_BYTES] = {0};
    return send(from, data, sizeof data, MSG_NOSIGNAL) == TRIAL_BYTES &&
           recv(to, data, sizeof data, MSG_WAITALL) == TRIAL_BYTES && read_counts(from, &out) &&
           read_counts(to, &in) && out.sent >= TRIAL_BYTES && in.received >= TRIAL_BYTES;
}

/* Send through a connection of this process to itself and look: kernels before 4.1 do not know,
 * emulated ones may fill in zeros, and a sandbox may refuse the question. */
bool kernel_counts(void)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {.tv_sec = 1};
    socklen_t length = sizeof name;
    int fd[3] = {-1, -1, -1};
    bool works = true;
    for (int i = 0; i < 2; i++) {
        fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        works &= fd[i] >= 0 &&
                 !setsockopt(fd[i], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) &&
                 !setsockopt(fd[i], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    }
    works = works && !bind(fd[0], (struct sockaddr *)&name, length) && !listen(fd[0], 1) &&
            !getsockname(fd[0], (struct sockaddr *)&name, &length) &&
            !connect(fd[1], (struct sockaddr *)&name, length);
    if (works)
        fd[2] = accept4(fd[0], NULL, NULL, SOCK_CLOEXEC);
    works = works && fd[2] >= 0 &&
            !setsockopt(fd[2], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) &&
            sent_and_counted(fd[1], fd[2]) && sent_and_counted(fd[2], fd[1]);
    close_all(fd, 3);
    return works;
}

/* What this process's own TCP connections have sent and received, by the kernel's count of each.
 *
 * Counters of an interface add up what all programs of a host send; TCP_INFO knows one connection.
 * No privilege is needed. What the walk cannot see is a gap, and named: sums are then what was sent
 * at least, and that nothing was sent cannot be known.
 */

#ifndef PROC_SELF
#define PROC_SELF "/proc/self"
#endif

const char *const GAPS[] = {
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
void walk_sockets(struct sockets *own)
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
void begin_window(struct sockets *own)
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
void end_window(struct sockets *own)
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

void forget_sockets(struct sockets *own)
{
    free(own->all);
    memset(own, 0, sizeof *own);
}
