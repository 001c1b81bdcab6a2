/* What the kernel counts: bytes of connections, by which interface they go, and networks. */
#ifndef MPIGRAFT_PROBE_KERNEL_H
#define MPIGRAFT_PROBE_KERNEL_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../common/json.h"

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

struct sockets {
    struct connection *all; /* by inode */
    size_t count, room;
    unsigned walk;
    enum gap gap;
    bool counts; /* the kernel counts bytes of connections, as was tried */
};

enum { MOST_WIRES = 64 };

struct wire {
    char name[48];
    int counter;     /* a place in COUNTERS */
    long long sent;  /* bytes */
    long long least; /* of several hosts together: what the one sent that sent least */
    long long own;   /* what connections between ranks sent through it, by the kernel's routes */
    long long lacking; /* of several hosts: the most that a host's counter is below its `own` */
};

/* Who counted: an interface of the kernel does not see what a device sends by itself. */
enum { NETDEV, INFINIBAND, CXI_TELEMETRY };

struct wires {
    int count;
    struct wire wire[MOST_WIRES];
};

extern const char *const GAPS[];

/* sockets.c */
bool endpoint_of(const struct sockaddr_storage *name, struct endpoint *end);
bool kernel_counts(void);
void walk_sockets(struct sockets *own);
void begin_window(struct sockets *own);
void end_window(struct sockets *own);
void forget_sockets(struct sockets *own);

/* routes.c */
int open_routes(void);
bool interface_of(int routes, const struct connection *connection, char *name);

/* network_counters.c */
void add_wire(struct wires *wires, const char *name, int counter, long long sent);
void read_wires(struct wires *wires, bool interfaces, bool devices);
struct wires wires_since(const struct wires *before, const struct wires *after);
long long all_sent(const struct wires *wires);
void print_counters(const struct wires *wires);
void print_by_name(const char *title, const struct wires *wires, size_t member, bool all);
bool counts(const struct wires *wires, int counter);
struct wires wires_of_all(const struct wires *all, int hosts);

#endif
