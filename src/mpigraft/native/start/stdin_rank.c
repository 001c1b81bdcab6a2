/* The rank's side of stdin.h: descriptor 0 becomes what mpigraft-stdin hands over. */
#include <arpa/inet.h>
#include <dirent.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "stdin.h"

#define CONNECT_MS 5000  /* an address that nothing answers at: the next one is tried */
#define GREETING_MS 60000

/* Whether all of it was read. */
static bool receive_all(int fd, void *bytes, size_t count)
{
    for (char *at = bytes; count;) {
        ssize_t done = recv(fd, at, count, 0);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        at += done;
        count -= (size_t)done;
    }
    return true;
}

static void become_stdin(int fd)
{
    if (fd < 0 || (fd != STDIN_FILENO && (dup2(fd, STDIN_FILENO) < 0 || close(fd))))
        refuse(2, "standard input cannot be replaced: %s", strerror(errno));
}

void nothing_to_read(void)
{
    close(STDIN_FILENO);
    become_stdin(open("/dev/null", O_RDONLY));
}

/* ---- on this node ---- */

/* A descriptor from the server of that name; -1: nothing listens there. */
static int handed_over(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || length + 1 > sizeof address.sun_path)
        refuse(2, "no socket for standard input: %s", strerror(errno));
    memcpy(address.sun_path + 1, name, length);
    if (connect(fd, (void *)&address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length))) {
        close(fd);
        return -1;
    }
    struct ucred peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &(socklen_t){sizeof peer}) ||
        peer.uid != geteuid())
        refuse(2, "somebody else answers for standard input, user %d", (int)peer.uid);
    char byte;
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t got;
    while ((got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        ;
    struct cmsghdr *header = got == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    if (!header || header->cmsg_type != SCM_RIGHTS)
        refuse(2, "standard input was not handed over: %s", got < 0 ? strerror(errno) : "no file");
    int handed;
    memcpy(&handed, CMSG_DATA(header), sizeof handed);
    close(fd);
    return handed;
}

/* ---- from another node ---- */

/* A connection to a server that knows the greeting, and gets the reply; -1: it is not there. */
static int connected(const char *host, const char *port, const char *greeting, const char *reply)
{
    struct addrinfo *found, hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    if (getaddrinfo(host, port, &hints, &found))
        return -1;
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool begun = fd >= 0 && (!connect(fd, found->ai_addr, found->ai_addrlen) || errno == EINPROGRESS);
    freeaddrinfo(found);
    struct pollfd one = {fd, POLLOUT, 0};
    int error = begun && poll(&one, 1, CONNECT_MS) == 1 ? 0 : ETIMEDOUT;
    char said[HALF];
    if (!error && !getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){sizeof error}) && !error &&
        !fcntl(fd, F_SETFL, 0)) {
        one.events = POLLIN;
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        if (poll(&one, 1, GREETING_MS) == 1 && receive_all(fd, said, HALF) &&
            !memcmp(said, greeting, HALF) && send_all(fd, reply, HALF, 0))
            return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Close every descriptor but two: a launcher waits for the end of a rank's output. */
static void close_others(int one, int other)
{
    DIR *list = opendir("/proc/self/fd");
    for (struct dirent *entry; list && (entry = readdir(list));) {
        int fd = atoi(entry->d_name);
        if (fd != one && fd != other && fd != dirfd(list))
            close(fd);
    }
    for (int fd = 0; !list && fd < 1024; fd++)
        if (fd != one && fd != other)
            close(fd);
    if (list)
        closedir(list);
}

/* Write a block into the pipe and wait until all of it is read. False: the program has closed its
 * end, and `unread` is what it left. */
static bool fill(int pipe, const char *block, uint32_t count, uint32_t *unread)
{
    for (uint32_t at = 0;;) {
        struct pollfd one = {pipe, POLLOUT, 0};
        poll(&one, 1, -1);
        int waiting = 0;
        if (one.revents & POLLERR) {
            ioctl(pipe, FIONREAD, &waiting);
            *unread = (uint32_t)waiting + count - at;
            return false;
        }
        if (!(one.revents & POLLOUT))
            continue;
        if (at == count) /* the pipe holds one piece at most, so it is empty */
            return true;
        ssize_t done = write(pipe, block + at, count - at < PIECE ? count - at : PIECE);
        at += done > 0 ? (uint32_t)done : 0;
    }
}

/* Wait for the server; false: the program closes its end before. */
static bool answered(int server, int pipe)
{
    struct pollfd both[2] = {{server, POLLIN, 0}, {pipe, 0, 0}};
    while (poll(both, 2, -1) < 0)
        ;
    return !both[1].revents;
}

/* Pass on what the server sends, block by block, each one asked for when the program has read all
 * before it; then end. */
__attribute__((noreturn)) static void feed(int server, int pipe)
{
    static char block[BLOCK];
    uint32_t question[2] = {htonl(BLOCK), 0}, count, unread = 0;
    while (send_all(server, question, sizeof question, 0)) {
        if (!answered(server, pipe)) {
            unread = ALL_OF_IT;
            break;
        }
        if (!receive_all(server, &count, sizeof count) || !(count = ntohl(count)) ||
            count > BLOCK || !receive_all(server, block, count) ||
            !fill(pipe, block, count, &unread))
            break;
    }
    uint32_t last[2] = {htonl(GONE), htonl(unread)};
    send_all(server, last, sizeof last, 0);
    _exit(0);
}

/* Descriptor 0 becomes a pipe; a process of its own feeds it. That one is nobody's child, since a
 * program may wait for all of its own. */
static void start_feeding(int server)
{
    int ends[2];
    if (pipe(ends))
        refuse(2, "no pipe for standard input: %s", strerror(errno));
    fcntl(ends[1], F_SETPIPE_SZ, PIECE);
    pid_t child = fork();
    if (child < 0)
        refuse(2, "standard input cannot be fed: %s", strerror(errno));
    if (!child) {
        sigset_t all;
        sigfillset(&all); /* they are meant for the program: a checkpoint, a time limit */
        sigprocmask(SIG_BLOCK, &all, NULL);
        if (fork())
            _exit(0);
        close_others(server, ends[1]);
        fcntl(ends[1], F_SETFL, O_NONBLOCK);
        if (chdir("/"))
            _exit(2);
        feed(server, ends[1]);
    }
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    close(server);
    close(ends[1]);
    become_stdin(ends[0]);
}

/* ---- either ---- */

static char *slurped(const char *folder)
{
    static char text[1 << 16];
    int place = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (place < 0)
        refuse(2, "%s: %s: what standard input is would be said there", folder, strerror(errno));
    int file = openat(place, STDIN_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0 && errno != ENOENT)
        refuse(2, "%s/" STDIN_FILE ": %s", folder, strerror(errno));
    size_t length = 0;
    for (ssize_t got = 1; file >= 0 && got > 0 && length < sizeof text - 1; length += (size_t)got)
        if ((got = read(file, text + length, sizeof text - 1 - length)) < 0)
            refuse(2, "%s/" STDIN_FILE ": %s", folder, strerror(errno));
    if (file >= 0)
        close(file);
    close(place);
    return text;
}

/* Make descriptor 0 what the job's standard input is; nothing where it has none. */
void take_stdin(const char *folder)
{
    char *text = slurped(folder), *rest = NULL, greeting[HALF + 1] = "", reply[HALF + 1] = "";
    if (!*text) {
        nothing_to_read();
        return;
    }
    char tried[256] = "";
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char name[108], port[8];
        int fd = -1;
        if (sscanf(line, "unix %107s", name) == 1)
            fd = handed_over(name);
        else if (sscanf(line, "token %16s %16s", greeting, reply) == 2)
            continue;
        else if (sscanf(line, "tcp %107s %7s", name, port) == 2) {
            int server = connected(name, port, greeting, reply);
            if (server >= 0) {
                start_feeding(server);
                return;
            }
            snprintf(tried + strlen(tried), sizeof tried - strlen(tried), " %s", name);
        }
        if (fd >= 0) {
            become_stdin(fd);
            return;
        }
    }
    refuse(2, "standard input is on a node that this one does not reach: no answer at%s; "
              "`mpigraft run --stdin none` starts the job without it", *tried ? tried : " all");
}
