/* Where ranks find mpigraft-stdin: its sockets, and the file that names them (stdin.h). */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/un.h>

#include "stdin.h"

_Noreturn void fail(const char *what)
{
    fprintf(stderr, "mpigraft-stdin: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void digits(char *text, size_t count)
{
    unsigned char bytes[32];
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, bytes, count / 2) != (ssize_t)(count / 2))
        fail("/dev/urandom");
    close(fd);
    for (size_t i = 0; i < count / 2; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

static void listen_near(struct place *place)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    digits(place->name + snprintf(place->name, sizeof place->name, "mpigraft-stdin-"), 2 * HALF);
    memcpy(address.sun_path + 1, place->name, strlen(place->name));
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(place->name));
    place->near = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (place->near < 0 || bind(place->near, (void *)&address, length) ||
        listen(place->near, 1024))
        fail("no socket for standard input");
}

/* The port, of all addresses of this node. */
static int listen_far(struct place *place)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};
    socklen_t length = sizeof six;
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && !setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){0}, sizeof(int)) &&
        !bind(fd, (void *)&six, sizeof six) && !listen(fd, 1024) &&
        !getsockname(fd, (void *)&six, &length)) {
        place->far = fd;
        return ntohs(six.sin6_port);
    }
    length = sizeof four;
    place->far = fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (void *)&four, sizeof four) || listen(fd, 1024) ||
        getsockname(fd, (void *)&four, &length))
        fail("no port for standard input");
    return ntohs(four.sin_port);
}

static void write_addresses(FILE *file, int port, int family)
{
    struct ifaddrs *all, *one;
    char text[INET6_ADDRSTRLEN];
    if (getifaddrs(&all))
        fail("the addresses of this node are not known");
    for (one = all; one; one = one->ifa_next) {
        if (!one->ifa_addr || one->ifa_addr->sa_family != family || !(one->ifa_flags & IFF_UP) ||
            one->ifa_flags & IFF_LOOPBACK)
            continue;
        const struct in6_addr *six = &((struct sockaddr_in6 *)one->ifa_addr)->sin6_addr;
        const void *address = &((struct sockaddr_in *)one->ifa_addr)->sin_addr;
        if (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(six))
            continue;
        if (inet_ntop(family, family == AF_INET6 ? (const void *)six : address, text, sizeof text))
            fprintf(file, "tcp %s %d\n", text, port);
    }
    freeifaddrs(all);
}

/* Under a name of its own first: ranks find all of it, or nothing. */
void announce(struct place *place, const char *folder, bool far)
{
    char path[4096], begun[4096];
    if ((size_t)snprintf(path, sizeof path, "%s/" STDIN_FILE, folder) >= sizeof path ||
        (size_t)snprintf(begun, sizeof begun, "%s/." STDIN_FILE, folder) >= sizeof begun) {
        errno = ENAMETOOLONG;
        fail(folder);
    }
    int fd = open(begun, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (!file)
        fail(begun);
    listen_near(place);
    fprintf(file, "unix %s\n", place->name);
    if (far) {
        digits(place->greeting, HALF);
        digits(place->reply, HALF);
        fprintf(file, "token %s %s\n", place->greeting, place->reply);
        int port = listen_far(place);
        write_addresses(file, port, AF_INET);
        write_addresses(file, port, AF_INET6);
    }
    if (fflush(file) || fclose(file) || rename(begun, path))
        fail(path);
}
