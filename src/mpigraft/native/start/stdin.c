/* mpigraft-stdin FOLDER 0|all RANKS near|far: hands its own standard input to the first rank of a
 * job, or to all RANKS of them, by way of FOLDER/stdin (stdin.h). `far`: ranks may be on other
 * nodes, so it listens at a port too.
 *
 * A rank of this node gets the very descriptor, which is not read here: so a file keeps its one
 * position, and of a pipe nothing is lost. Each of several ranks gets a file opened anew. What
 * cannot be handed over is passed on piece by piece, the next one when all before it is read: to
 * other nodes; to several ranks from what is no file; and from a terminal, which a process that is
 * not in the foreground may not read. What a rank of another node left of a file is put back.
 *
 * It says "ready" when ranks may come, and ends on SIGTERM, when its parent does, and when nothing
 * is left to be done. Exit status: 0; 1 if it cannot serve; 2 for bad usage.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "stdin.h"

enum { FAILED = 1, USAGE = 2, BACKGROUND_MS = 200, LAST_WORDS_S = 2 };

enum stage { GREETING, IDLE, WANTS, ENDED };

struct channel {
    int fd;
    bool far; /* a connection; else a pipe's end */
    enum stage stage;
    unsigned char heard[HALF];
    size_t got;
    uint32_t wanted;
    off_t sent, read; /* bytes, from where the file was; `read` before the last question */
};

static struct {
    bool all, file, terminal;
    long ranks, joined, finished; /* that are to come, that came, that need nothing more */
    off_t start;
    struct place place;
    struct channel *channels;
    size_t count, room;
    off_t consumed; /* of a file, by the one rank of another node; -1: by none */
} server = {.place = {.near = -1, .far = -1}, .consumed = -1};

static volatile sig_atomic_t asked_to_end;

static void on_end(int number)
{
    (void)number;
    asked_to_end = 1;
}

/* ---- ranks that come ---- */

static void add_channel(int fd, bool far)
{
    if (server.count == server.room) {
        server.room = 2 * server.room + 8;
        server.channels = realloc(server.channels, server.room * sizeof *server.channels);
        if (!server.channels)
            fail("out of memory");
    }
    server.channels[server.count++] =
        (struct channel){.fd = fd, .far = far, .stage = far ? GREETING : IDLE};
}

static void hand_over(int connection, int fd)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS}};
    struct iovec data = {"f", 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
                             .msg_controllen = sizeof control};
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    sendmsg(connection, &message, MSG_NOSIGNAL); /* a rank that went away is missed by nobody */
}

/* A pipe with room for one piece, fed from here. */
static int open_pipe(void)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) || fcntl(ends[1], F_SETFL, O_NONBLOCK))
        fail("no pipe for standard input");
    fcntl(ends[1], F_SETPIPE_SZ, PIECE);
    add_channel(ends[1], false);
    return ends[0];
}

/* The file opened once more, at its old offset, by each of several ranks. -1: it may not be. */
static int opened_anew(void)
{
    int fd = open("/proc/self/fd/0", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && lseek(fd, server.start, SEEK_SET) == server.start)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Whether one more rank may come. */
static bool join(void)
{
    return server.joined < server.ranks && ++server.joined;
}

static void accept_near(void)
{
    struct ucred peer = {.uid = (uid_t)-1};
    int connection = accept4(server.place.near, NULL, NULL, SOCK_CLOEXEC);
    if (connection < 0)
        return;
    if (!getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &(socklen_t){sizeof peer}) &&
        peer.uid == geteuid() && join()) {
        int fd = server.terminal ? -1 : !server.all ? STDIN_FILENO : server.file ? opened_anew() : -1;
        server.finished += fd >= 0;
        if (fd < 0)
            fd = open_pipe();
        hand_over(connection, fd);
        if (fd != STDIN_FILENO)
            close(fd);
    }
    close(connection);
}

static void accept_far(void)
{
    int connection = accept4(server.place.far, NULL, NULL, SOCK_CLOEXEC);
    if (connection < 0)
        return;
    struct timeval patience = {.tv_sec = 60};
    setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    setsockopt(connection, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (send_all(connection, server.place.greeting, HALF, 0))
        add_channel(connection, true);
    else
        close(connection);
}

/* ---- what they ask for ---- */

static void end_channel(struct channel *one)
{
    server.finished += one->stage != GREETING;
    close(one->fd);
    one->stage = ENDED;
}

/* Take what a rank of another node says: its reply, then questions. */
static void hear(struct channel *one)
{
    uint32_t question[2];
    size_t due = one->stage == GREETING ? HALF : sizeof question;
    ssize_t got = recv(one->fd, one->heard + one->got, due - one->got, 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got <= 0) {
        end_channel(one);
        return;
    }
    one->got += (size_t)got;
    if (one->got < due)
        return;
    one->got = 0;
    if (one->stage == GREETING) {
        if (!memcmp(one->heard, server.place.reply, HALF) && join())
            one->stage = IDLE;
        else
            end_channel(one);
        return;
    }
    memcpy(question, one->heard, sizeof question);
    if (ntohl(question[0]) == GONE) {
        bool none = ntohl(question[1]) == ALL_OF_IT;
        server.consumed = none ? one->read : one->sent - (off_t)ntohl(question[1]);
        end_channel(one);
    } else {
        one->read = one->sent;
        one->wanted = ntohl(question[0]) < BLOCK ? ntohl(question[0]) : BLOCK;
        one->stage = WANTS;
    }
}

/* Send a piece, of 0 bytes at the end. */
static void deliver(struct channel *one, const char *bytes, uint32_t count)
{
    uint32_t number = htonl(count);
    if (one->far) {
        if (!send_all(one->fd, &number, sizeof number, count ? MSG_MORE : 0) ||
            !send_all(one->fd, bytes, count, 0))
            end_channel(one);
    } else if (!count || write(one->fd, bytes, count) != (ssize_t)count) {
        end_channel(one); /* there is room, so only a reader that is gone keeps it from fitting */
    }
    one->sent += count;
    if (one->stage == WANTS)
        one->stage = IDLE;
}

static void read_file(struct channel *one)
{
    static char block[BLOCK];
    ssize_t got = pread(STDIN_FILENO, block, one->far ? one->wanted : PIECE, server.start + one->sent);
    if (got < 0 && errno != EINTR)
        fail("standard input");
    if (got >= 0)
        deliver(one, block, (uint32_t)got);
}

/* How much may be taken at once of what cannot be put back: what a pipe holds; more, where no pipe
 * of ours is between and the ranks have read that much before. */
static size_t room(void)
{
    for (size_t i = 0; i < server.count; i++)
        if (server.channels[i].stage != ENDED &&
            (!server.channels[i].far || server.channels[i].sent < PORTION))
            return PIECE;
    return PORTION;
}

/* One piece for all. A process in the background gets EIO from its terminal, with the signal that
 * would stop it ignored. */
static void read_stream(void)
{
    static char piece[PORTION];
    ssize_t got = read(STDIN_FILENO, piece, room());
    if (got < 0 && (errno == EINTR || errno == EAGAIN || (errno == EIO && tcgetpgrp(0) >= 0)))
        return;
    if (got < 0 && errno != EIO)
        fail("standard input");
    for (size_t i = 0; i < server.count; i++)
        if (server.channels[i].stage == WANTS)
            deliver(&server.channels[i], piece, got < 0 ? 0 : (uint32_t)got);
}

/* Whether something is to be read from what is no file: all that are due are there and ready. */
static bool wanted(void)
{
    long ready = 0, open = 0;
    for (size_t i = 0; i < server.count; i++) {
        ready += server.channels[i].stage == WANTS;
        open += server.channels[i].stage == WANTS || server.channels[i].stage == IDLE;
    }
    return !server.file && ready && ready == open && server.joined == server.ranks;
}

/* ---- until nothing is left ---- */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static bool in_background(void)
{
    pid_t group = server.terminal ? tcgetpgrp(STDIN_FILENO) : -1;
    return group >= 0 && group != getpgrp();
}

/* Whether a rank of another node still has to say what it left of a file. */
static bool awaits_last_word(void)
{
    for (size_t i = 0; i < server.count; i++)
        if (server.channels[i].far && server.channels[i].stage != ENDED)
            return server.file && !server.all;
    return false;
}

static void look(struct pollfd *polled, const sigset_t *open)
{
    size_t count = server.count, last = count + 2;
    bool reading = wanted(), background = reading && in_background();
    polled[count] = (struct pollfd){server.place.near, POLLIN, 0};
    polled[count + 1] = (struct pollfd){server.place.far, POLLIN, 0};
    polled[last] = (struct pollfd){reading && !background ? STDIN_FILENO : -1, POLLIN, 0};
    for (size_t i = 0; i < count; i++) {
        const struct channel *one = &server.channels[i];
        short events = one->far ? POLLIN : one->stage == IDLE ? POLLOUT : 0;
        polled[i] = (struct pollfd){one->stage == ENDED ? -1 : one->fd, events, 0};
    }
    struct timespec soon = {0, BACKGROUND_MS * 1000000L};
    if (ppoll(polled, last + 1, background || asked_to_end ? &soon : NULL, open) <= 0)
        return;
    for (size_t i = 0; i < count; i++) {
        struct channel *one = &server.channels[i];
        if (polled[i].revents && one->far)
            hear(one);
        else if (polled[i].revents & POLLERR)
            end_channel(one);
        else if (polled[i].revents & POLLOUT)
            one->stage = WANTS;
        if (server.file && one->stage == WANTS)
            read_file(one);
    }
    if (polled[last].revents && wanted())
        read_stream();
    if (polled[count].revents)
        accept_near();
    if (polled[count + 1].revents)
        accept_far();
}

static void serve(const sigset_t *open)
{
    struct pollfd *polled = NULL;
    double deadline = 0;
    while (server.finished < server.ranks) {
        if (asked_to_end && !deadline)
            deadline = now() + LAST_WORDS_S;
        if (asked_to_end && (!awaits_last_word() || now() > deadline))
            break;
        polled = realloc(polled, (server.count + 3) * sizeof *polled);
        if (!polled)
            fail("out of memory");
        look(polled, open);
    }
    if (server.file && !server.all && server.consumed >= 0)
        lseek(STDIN_FILENO, server.start + server.consumed, SEEK_SET);
    free(polled);
}

/* ---- usage ---- */

static void set_signals(sigset_t *open)
{
    static const int ignored[] = {SIGINT, SIGQUIT, SIGHUP, SIGPIPE, SIGTTIN, SIGTTOU,
                                  SIGUSR1, SIGUSR2, SIGALRM};
    struct sigaction action = {.sa_handler = on_end};
    sigset_t ends;
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, open);
    sigdelset(open, SIGTERM);
    sigaction(SIGTERM, &action, NULL);
}

int main(int argc, char **argv)
{
    char *end = NULL;
    pid_t parent = getppid();
    server.ranks = argc == 5 ? strtol(argv[3], &end, 10) : 0;
    server.all = argc == 5 && !strcmp(argv[2], "all");
    bool far = argc == 5 && !strcmp(argv[4], "far");
    if (argc != 5 || *end || server.ranks < 1 || (!server.all && strcmp(argv[2], "0")) ||
        (!far && strcmp(argv[4], "near"))) {
        fputs("usage: mpigraft-stdin FOLDER 0|all RANKS near|far\n", stderr);
        return USAGE;
    }
    server.ranks = server.all ? server.ranks : 1;
    sigset_t open;
    set_signals(&open);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    struct rlimit files;
    if (!getrlimit(RLIMIT_NOFILE, &files)) { /* a pipe for each of many ranks */
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    struct stat seen;
    int flags = fcntl(STDIN_FILENO, F_GETFL);
    bool readable = flags >= 0 && (flags & O_ACCMODE) != O_WRONLY && !fstat(STDIN_FILENO, &seen);
    server.start = readable && S_ISREG(seen.st_mode) ? lseek(STDIN_FILENO, 0, SEEK_CUR) : -1;
    server.file = server.start >= 0;
    server.terminal = readable && isatty(STDIN_FILENO);
    if (readable) /* nohup leaves a descriptor that cannot be read: then there is no input */
        announce(&server.place, argv[1], far);
    if (write(STDOUT_FILENO, "ready\n", 6) != 6 || close(STDOUT_FILENO))
        return FAILED;
    if (readable && getppid() == parent)
        serve(&open);
    return 0;
}
