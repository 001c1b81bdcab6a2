/* By which interface the kernel sends from one address to another: its own answer, by netlink. */
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/time.h>

#include "kernel.h"

/* A socket to ask routes by, or -1 where the kernel gives none. */
int open_routes(void)
{
    const struct timeval patience = {.tv_sec = 1};
    int routes = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (routes >= 0 && setsockopt(routes, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience)) {
        close(routes);
        routes = -1;
    }
    return routes;
}

struct route_request {
    struct nlmsghdr head;
    struct rtmsg route;
    char attributes[64];
};

static void add_address(struct route_request *request, int type, const struct endpoint *end)
{
    unsigned bytes = end->family == AF_INET ? 4 : 16;
    struct rtattr attribute = {.rta_len = (unsigned short)RTA_LENGTH(bytes),
                               .rta_type = (unsigned short)type};
    char *at = (char *)request + NLMSG_ALIGN(request->head.nlmsg_len);
    memcpy(at, &attribute, sizeof attribute);
    memcpy(at + RTA_LENGTH(0), end->address, bytes);
    request->head.nlmsg_len = NLMSG_ALIGN(request->head.nlmsg_len) + RTA_SPACE(bytes);
}

/* The index of the outgoing interface in an answer of `bytes`, or 0. */
static unsigned interface_in(const char *answer, size_t bytes, unsigned sequence)
{
    struct nlmsghdr head;
    if (bytes < sizeof head)
        return 0;
    memcpy(&head, answer, sizeof head);
    if (head.nlmsg_type != RTM_NEWROUTE || head.nlmsg_seq != sequence || head.nlmsg_len > bytes)
        return 0;
    size_t at = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(struct rtmsg)), end = head.nlmsg_len;
    while (at + sizeof(struct rtattr) <= end) {
        struct rtattr attribute;
        unsigned index;
        memcpy(&attribute, answer + at, sizeof attribute);
        if (attribute.rta_len < sizeof attribute || at + attribute.rta_len > end)
            return 0;
        if (attribute.rta_type == RTA_OIF && attribute.rta_len >= RTA_LENGTH(sizeof index)) {
            memcpy(&index, answer + at + RTA_LENGTH(0), sizeof index);
            return index;
        }
        at += RTA_ALIGN(attribute.rta_len);
    }
    return 0;
}

static unsigned asked_interface(int routes, const struct endpoint *from, const struct endpoint *to)
{
    static unsigned sequence;
    char answer[4096];
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    struct route_request request = {
        .head = {.nlmsg_len = NLMSG_LENGTH(sizeof request.route), .nlmsg_type = RTM_GETROUTE,
                 .nlmsg_flags = NLM_F_REQUEST, .nlmsg_seq = ++sequence},
        .route = {.rtm_family = (unsigned char)to->family,
                  .rtm_dst_len = to->family == AF_INET ? 32 : 128,
                  .rtm_src_len = to->family == AF_INET ? 32 : 128}};
    add_address(&request, RTA_DST, to);
    add_address(&request, RTA_SRC, from);
    if (routes < 0 || from->family != to->family ||
        sendto(routes, &request, request.head.nlmsg_len, 0, (struct sockaddr *)&kernel,
               sizeof kernel) < 0)
        return 0;
    ssize_t bytes = recv(routes, answer, sizeof answer, 0);
    return bytes > 0 ? interface_in(answer, (size_t)bytes, sequence) : 0;
}

/* The interface that has this address, where routes cannot be asked. */
static bool interface_with(const struct endpoint *local, char *name)
{
    struct ifaddrs *all = NULL;
    bool matches = false;
    if (getifaddrs(&all))
        return false;
    for (const struct ifaddrs *one = all; one && !matches; one = one->ifa_next) {
        struct sockaddr_storage address = {0};
        struct endpoint end;
        if (!one->ifa_addr)
            continue;
        if (one->ifa_addr->sa_family == AF_INET)
            memcpy(&address, one->ifa_addr, sizeof(struct sockaddr_in));
        else if (one->ifa_addr->sa_family == AF_INET6)
            memcpy(&address, one->ifa_addr, sizeof(struct sockaddr_in6));
        matches = endpoint_of(&address, &end) && end.family == local->family &&
                !memcmp(end.address, local->address, sizeof end.address);
        if (matches)
            snprintf(name, IF_NAMESIZE, "%s", one->ifa_name);
    }
    freeifaddrs(all);
    return matches;
}

/* The name of the interface that a connection sends by; false where the kernel does not say. */
bool interface_of(int routes, const struct connection *connection, char *name)
{
    const struct endpoint *from = &connection->local, *to = &connection->peer;
    bool linked = to->family == AF_INET6 && to->address[0] == 0xFE &&
                  (to->address[1] & 0xC0) == 0x80;
    if (connection->device[0]) {
        snprintf(name, IF_NAMESIZE, "%s", connection->device);
        return true;
    }
    unsigned index = linked && to->scope ? to->scope : asked_interface(routes, from, to);
    return (index && if_indextoname(index, name)) || interface_with(from, name);
}
