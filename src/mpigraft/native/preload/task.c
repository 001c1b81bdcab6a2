/* Which process of a launch this is: the task that the launcher started, or another one below it.
 *
 * The first process of a task that loads this library keeps in MPIGRAFT_TASK who it is and how the
 * launcher has connected it; all processes below inherit that. A process that enters MPI writes
 * what differs, and core/worlds.py tells by it which processes are ranks of the launch:
 *     "start":T                what tells it from other processes of its number
 *     "task":{                 not there for the task's own process, connected by the launcher
 *       "process":"PID.T",     the task's own process
 *       "connected":BOOL,      it has the connection of the launcher, and no other one
 *       "job":"DIGEST",        of the job whose connection it has; "-" unnamed, "" none
 *       "spawned":BOOL,        MPI_Comm_spawn started it
 *       "above":["PID.T",...]} its ancestors, up to the task's own process
 */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "task.h"

/* How a node is named in the files that its ranks write. */

/* What tells texts and processes apart in the witness's files. */

/* FNV-1a, 64 bits: tells a handful of texts apart, and is no secret. */
unsigned long long digest_of(const char *bytes, size_t length)
{
    unsigned long long digest = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++)
        digest = (digest ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    return digest;
}

/* The same in both lines of a process, and another one in each: containers may give two processes
 * of a node one number. */
unsigned long long process_id(void)
{
    static unsigned long long id;
    if (!id) {
        struct timespec now = {0, 0};
        clock_gettime(CLOCK_MONOTONIC, &now);
        long long parts[] = {getpid(), now.tv_sec, now.tv_nsec, (long long)(intptr_t)&now};
        id = digest_of((const char *)parts, sizeof parts) | 1;
    }
    return id;
}

void read_line(const char *path, char *text, size_t room)
{
    text[0] = 0;
    FILE *file = fopen(path, "re");
    if (file && !fgets(text, (int)room, file))
        text[0] = 0;
    if (file)
        fclose(file);
    text[strcspn(text, "\n")] = 0;
}

/* A file name for this node. Two nodes may have one host name; the kernel that runs and the
 * network that is seen tell them apart, as they do nodes that are namespaces of one kernel. */
void name_node(const char *host, const char *boot, char *name, size_t room)
{
    char all[512], safe[72] = "";
    struct stat network = {0};
    if (stat("/proc/self/ns/net", &network))
        network.st_ino = 0;
    int length = snprintf(all, sizeof all, "%s %s %llu", host, boot,
                          (unsigned long long)network.st_ino);
    for (size_t i = 0; host[i] && i < sizeof safe - 1; i++)
        safe[i] = isalnum((unsigned char)host[i]) || strchr("-_.", host[i]) ? host[i] : '_';
    snprintf(name, room, "%s-%016llx", safe, digest_of(all, (size_t)length));
}

#define TASK "MPIGRAFT_TASK"

/* How launchers tell a process its job and its number in it, the most certain first. PMI_FD is a
 * number that may name another file: what it is connected to counts. */
static const char *const connection_names[][NAMES_OF_CONNECTION] = {CONNECTION_VARIABLES};

static void digest_text(char *digest, const char *text)
{
    snprintf(digest, DIGEST_ROOM, "%08llx", digest_of(text, strlen(text)) & 0xffffffffu);
}

static void digest_connection(char *digest, const char *const *names)
{
    char text[1024] = "", file[64];
    size_t length = 0;
    strcpy(digest, "-");
    for (int i = 0; i < NAMES_OF_CONNECTION && names[i]; i++) {
        const char *value = getenv(names[i]);
        if (!value)
            continue;
        char target[128] = "";
        if (!strcmp(names[i], "PMI_FD")) {
            snprintf(file, sizeof file, "/proc/self/fd/%.20s", value);
            ssize_t read = readlink(file, target, sizeof target - 1);
            target[read > 0 ? read : 0] = 0;
            value = target;
        }
        int more = snprintf(text + length, sizeof text - length, "%s=%.200s;", names[i], value);
        length += more > 0 ? (size_t)more : 0;
    }
    if (length)
        digest_text(digest, text);
}

static struct connections find_connections(void)
{
    struct connections found;
    for (int i = 0; i < CONNECTIONS; i++)
        digest_connection(found.digests[i], connection_names[i]);
    return found;
}

/* As they are before MPI is entered, which may change the environment. */
const struct connections *own_connections(void)
{
    static struct connections own;
    if (!own.digests[0][0])
        own = find_connections();
    return &own;
}

/* ---- processes ---- */

struct kernel_process {
    long pid, parent;
    unsigned long long start; /* clock ticks since the kernel's boot */
};

/* Of `name`, a number or "self", as /proc counts: proc(5). */
static bool read_process(const char *name, struct kernel_process *process)
{
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%.20s/stat", name);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool whole = fgets(line, sizeof line, file);
    fclose(file);
    const char *rest = whole ? strrchr(line, ')') : NULL; /* a program's name may have blanks */
    return rest && sscanf(line, "%ld", &process->pid) == 1 &&
           sscanf(rest + 1, " %*c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                            "%*d %*d %llu",
                  &process->parent, &process->start) == 2;
}

static void name_process(char *name, size_t room, const struct kernel_process *process)
{
    snprintf(name, room, "%ld.%llu", process->pid, process->start);
}

/* ---- the task ---- */

struct task {
    char process[48];
    struct connections connections;
};

/* Of the launch whose records go to this folder: a job in a job has a folder of its own. */
static bool digest_folder(char *digest)
{
    const char *folder = getenv("MPIGRAFT_WITNESS");
    folder = folder && *folder ? folder : getenv("MPIGRAFT_TRACE");
    if (folder && *folder)
        digest_text(digest, folder);
    return folder && *folder;
}

static bool read_task(struct task *task)
{
    char launch[DIGEST_ROOM], folder[DIGEST_ROOM];
    const char *text = getenv(TASK);
    int at = 0;
    if (!text || !digest_folder(folder) ||
        sscanf(text, "%8s %47s%n", launch, task->process, &at) != 2 || strcmp(launch, folder))
        return false;
    for (int i = 0; i < CONNECTIONS; i++) {
        int more = 0;
        if (sscanf(text + at, " %8s%n", task->connections.digests[i], &more) != 1)
            return false;
        at += more;
    }
    return true;
}

__attribute__((constructor)) static void keep_task(void)
{
    char text[256], folder[DIGEST_ROOM], process[48];
    struct kernel_process self;
    struct task task;
    if (!digest_folder(folder) || read_task(&task) || !read_process("self", &self))
        return;
    struct connections own = find_connections();
    name_process(process, sizeof process, &self);
    int length = snprintf(text, sizeof text, "%s %s", folder, process);
    for (int i = 0; i < CONNECTIONS; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, " %s", own.digests[i]);
    setenv(TASK, text, 1);
}

/* Whether the launcher connected this process: the task's surest connection is there, and nobody
 * has added or replaced one. */
static bool is_connected(const struct task *task)
{
    const struct connections *own = own_connections();
    bool sure = false;
    for (int i = 0; i < CONNECTIONS; i++) {
        const char *given = task->connections.digests[i], *now = own->digests[i];
        bool same = !strcmp(now, given);
        if (!same && (strcmp(now, "-") || !sure))
            return false;
        sure = sure || strcmp(given, "-");
    }
    return true;
}

/* Whether the launcher started this very process. */
bool is_own_task(void)
{
    struct kernel_process self;
    struct task task;
    char name[48];
    if (!read_process("self", &self) || !read_task(&task) || !is_connected(&task))
        return false;
    name_process(name, sizeof name, &self);
    return !strcmp(name, task.process);
}

/* A digest of the job that connected this process, where its launcher names it; "-" where it does
 * not, as Hydra with a descriptor; "" without a connection that is not the task's. */
static void digest_job(char *digest, const struct task *task, bool spawned)
{
    const struct connections *own = own_connections();
    digest[0] = 0;
    for (int i = 0; i < CONNECTIONS && !digest[0]; i++) {
        if (!strcmp(own->digests[i], "-") ||
            (!spawned && !strcmp(own->digests[i], task->connections.digests[i])))
            continue;
        const char *name = connection_names[i][0];
        const char *job = getenv(strcmp(name, "PMI_FD") ? name : "PMI_PORT");
        strcpy(digest, "-");
        if (job)
            digest_text(digest, job);
    }
}

static void write_above(FILE *out, struct kernel_process process, const char *end)
{
    char name[48];
    fputs(",\"above\":[", out);
    name_process(name, sizeof name, &process);
    for (int i = 0; i < MOST_ABOVE && process.parent > 0 && strcmp(name, end); i++) {
        snprintf(name, sizeof name, "%ld", process.parent);
        if (!read_process(name, &process))
            break;
        name_process(name, sizeof name, &process);
        fprintf(out, "%s\"%s\"", i ? "," : "", name);
    }
    putc(']', out);
}

/* The members "start" and "task" of a process's line. */
void write_task(FILE *out, bool spawned)
{
    struct kernel_process self;
    struct task task;
    char name[48], job[DIGEST_ROOM];
    if (!read_process("self", &self))
        return;
    fprintf(out, ",\"start\":%llu", self.start);
    if (!read_task(&task))
        return;
    name_process(name, sizeof name, &self);
    bool connected = is_connected(&task);
    if (connected && !spawned && !strcmp(name, task.process))
        return;
    digest_job(job, &task, spawned);
    fprintf(out, ",\"task\":{\"process\":\"%s\",\"connected\":%s,\"job\":\"%s\",\"spawned\":%s",
            task.process, connected ? "true" : "false", job, spawned ? "true" : "false");
    write_above(out, self, task.process);
    putc('}', out);
}
