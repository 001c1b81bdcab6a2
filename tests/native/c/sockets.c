/* The walk over a process's own connections, tried on what this program opens: one act a word.
 * Prints one line of JSON: how many connections there are, what was sent and received since the
 * window began, the gap, and for the last connection its interface and both its ends. */
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *refused = "";

/* The kernel as older, emulated and forbidding ones are. */
static int kernel(int fd, int level, int option, void *value, socklen_t *length)
{
    int code = (int)syscall(SYS_getsockopt, fd, level, option, value, length);
    if (level != IPPROTO_TCP || code)
        return code;
    if (!strcmp(refused, "refused"))
        return errno = EPERM, -1;
    if (!strcmp(refused, "short"))
        *length = 120;
    if (!strcmp(refused, "zeros"))
        memset(value, 0, *length);
    return 0;
}
#define getsockopt kernel
#include "../../../src/mpigraft/native/probe/sockets.c"
#include "../../../src/mpigraft/native/probe/routes.c"
#undef getsockopt

#define MUST(call)                                                       \
    do {                                                                 \
        if ((call) < 0) {                                                \
            perror(#call);                                               \
            exit(3);                                                     \
        }                                                                \
    } while (0)

enum { SENT = 100000 };

static struct sockets own;
static int ends[2] = {-1, -1};

static void connect_pair(int family, const char *address)
{
    struct sockaddr_in six_no = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr *name = family == AF_INET ? (struct sockaddr *)&six_no : (struct sockaddr *)&six;
    socklen_t length = family == AF_INET ? sizeof six_no : sizeof six;
    void *where = family == AF_INET ? (void *)&six_no.sin_addr : (void *)&six.sin6_addr;
    if (inet_pton(family, address, where) != 1)
        exit(4);
    int server = socket(family, SOCK_STREAM, 0);
    MUST(server);
    MUST(bind(server, name, length));
    MUST(listen(server, 1));
    MUST(getsockname(server, name, &length));
    MUST(ends[0] = socket(family, SOCK_STREAM, 0));
    MUST(connect(ends[0], name, length));
    MUST(ends[1] = accept(server, NULL, NULL));
    close(server);
}

static void send_all(void)
{
    static char data[SENT];
    for (size_t done = 0, in = 0; in < sizeof data;) {
        ssize_t out = send(ends[0], data + done, sizeof data - done, MSG_DONTWAIT);
        done += out > 0 ? (size_t)out : 0;
        ssize_t got = recv(ends[1], data, sizeof data, 0);
        MUST(got);
        in += (size_t)got;
    }
}

static void many(void)
{
    for (int i = 0; i < 100; i++)
        connect_pair(AF_INET, "127.0.0.1");
}

static void bound(int type)
{
    struct sockaddr_in name = {.sin_family = AF_INET};
    int fd = socket(AF_INET, type, 0);
    MUST(fd);
    MUST(bind(fd, (struct sockaddr *)&name, sizeof name));
}

static void act(const char *word)
{
    if (!strcmp(word, "v4"))
        connect_pair(AF_INET, "127.0.0.1");
    else if (!strcmp(word, "v6"))
        connect_pair(AF_INET6, "::1");
    else if (!strcmp(word, "mapped"))
        connect_pair(AF_INET6, "::ffff:127.0.0.1");
    else if (!strcmp(word, "many"))
        many();
    else if (!strcmp(word, "send"))
        send_all();
    else if (!strcmp(word, "begin"))
        begin_window(&own);
    else if (!strcmp(word, "end"))
        end_window(&own);
    else if (!strcmp(word, "close"))
        close(ends[0]);
    else if (!strcmp(word, "dup"))
        MUST(dup(ends[0]));
    else if (!strcmp(word, "udp"))
        bound(SOCK_DGRAM);
    else if (!strcmp(word, "listen"))
        bound(SOCK_STREAM);
    else if (!strcmp(word, "idle-udp"))
        MUST(socket(AF_INET, SOCK_DGRAM, 0));
    else if (!strcmp(word, "unix"))
        MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    else if (!strcmp(word, "raw"))
        MUST(socket(AF_INET, SOCK_RAW, IPPROTO_RAW));
    else if (!strcmp(word, "child")) {
        pid_t child = fork();
        MUST(child);
        if (!child) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;)
                pause();
        }
    } else if (!strcmp(word, "strangers"))
        for (size_t i = 0; i < own.count; i++)
            own.all[i].tried = true; /* and no rank holds the other end */
    else if (!strcmp(word, "counts"))
        own.counts = kernel_counts();
    else
        refused = word;
}

static void print_end(const char *title, const struct endpoint *end)
{
    char text[INET6_ADDRSTRLEN] = "";
    inet_ntop(end->family, end->address, text, sizeof text);
    printf(",\"%s\":[\"%s\",%d]", title, text, ntohs(end->port));
}

int main(int argc, char **argv)
{
    long long sent = 0, received = 0;
    char name[IF_NAMESIZE] = "";
    own.counts = true;
    for (int i = 1; i < argc; i++)
        act(argv[i]);
    for (size_t i = 0; i < own.count; i++) {
        if (own.all[i].walk != own.walk)
            continue;
        sent += own.all[i].sent - own.all[i].sent_before;
        received += own.all[i].received - own.all[i].received_before;
    }
    printf("{\"count\":%zu,\"sent\":%lld,\"received\":%lld,\"gap\":\"%s\",\"counts\":%s", own.count,
           sent, received, GAPS[own.gap], own.counts ? "true" : "false");
    if (own.count) {
        const struct connection *last = &own.all[own.count - 1];
        int routes = open_routes();
        interface_of(routes, last, name);
        printf(",\"route\":\"%s\"", name);
        *name = 0;
        interface_of(-1, last, name);
        printf(",\"address\":\"%s\"", name);
        print_end("local", &last->local);
        print_end("peer", &last->peer);
        close(routes);
    }
    puts("}");
    forget_sockets(&own);
    return 0;
}
