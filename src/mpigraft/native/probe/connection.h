/* One TCP connection: its two ends, and what it has sent and received by the kernel's count. */
#ifndef MPIGRAFT_PROBE_CONNECTION_H
#define MPIGRAFT_PROBE_CONNECTION_H

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

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

/* One end of a connection. An IPv4 address that is mapped into IPv6 is an IPv4 address. */
struct endpoint {
    int family;
    unsigned char address[16];
    uint16_t port;  /* as on the network */
    unsigned scope; /* index of the interface of a link-local address, or 0 */
};

enum peer_class { NO_RANK, SELF, NEAR, FAR, PEER_CLASSES };

struct connection {
    uint64_t inode; /* of the socket: descriptors may share it */
    struct endpoint local, peer;
    enum peer_class class;
    bool tried; /* the ranks have been asked for the other end */
    char device[IF_NAMESIZE]; /* that it is bound to, or empty */
    int interface; /* a place in the list of interfaces, or -1 */
    long long sent, received, sent_before, received_before;
    unsigned walk; /* in which it was last there */
};

static bool endpoint_of(const struct sockaddr_storage *name, struct endpoint *end)
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
static bool kernel_counts(void)
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

#endif
