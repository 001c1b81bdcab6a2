/* mpigraft-guard [--limit S] [--grace S] [--parent PID] [--stdin FILE] -- PROGRAM...: runs a
 * program and leaves nothing behind.
 *
 * Whatever the program starts stays below us, even after setsid and a double fork, because we
 * are a subreaper. All of it is ended: when the time limit passes, on SIGTERM, SIGINT, SIGHUP or
 * SIGQUIT, when our parent dies, and when the program itself has ended. The program gets that
 * signal, alone, as from a shell: a launcher passes it on as it does by hand, and a rank that got
 * it from both might take the second for a demand to end at once. What the program leaves gets
 * SIGTERM, and what is there after the grace SIGKILL; a helper of srun, which then ends the
 * ranks on other nodes, is killed last. SIGUSR1, SIGUSR2, SIGTSTP and SIGCONT
 * are passed on to the program. What a launch left in /dev/shm and TMPDIR that ended with a
 * failure, or whose guard was killed with it, is removed (sweep.c). Exit status: the program's;
 * 128 + n if signal n ended it or was passed on; 124 past the limit; 126 or 127 if it cannot be
 * started; 2 for bad usage.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sweep.h"

enum { USAGE = 2, LIMIT_PASSED = 124, NOT_EXECUTABLE = 126, NOT_FOUND = 127 };

#define TICK_S 0.2        /* how often the parent is looked at */
#define HELPER_S 5.0      /* for the helper of an srun that was killed */
#define UNKILLABLE_S 10.0 /* processes stuck in the kernel are given up after that */

struct guarded {
    pid_t child, parent;
    int status;  /* wait status of the child */
    bool ended;  /* the child has */
    bool halted; /* the terminal stopped all of its foreground group, the child too */
    double limit, grace;
    const char *input; /* what the child reads instead of our own standard input */
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- descendants ---- */

struct process {
    pid_t pid, parent;
    bool ours, stopped, srun;
};

/* Read a process's parent and state from the text after its name, which may hold anything. */
static void describe(const char *pid, struct process *process)
{
    char path[300], text[512];
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    *process = (struct process){.pid = atoi(pid), .parent = -1};
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = 0;
    const char *after = strrchr(text, ')');
    char state;
    int parent;
    if (!after || sscanf(after + 1, " %c %d", &state, &parent) != 2)
        return;
    process->parent = parent;
    process->stopped = state == 'T';
    const char *name = strchr(text, '(');
    process->srun = name && name + 5 == after && !strncmp(name, "(srun", 5);
}

static size_t list_processes(struct process **list)
{
    size_t count = 0, room = 0;
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    while (proc && (entry = readdir(proc))) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        if (count == room) {
            room = 2 * room + 256;
            struct process *more = realloc(*list, room * sizeof **list);
            if (!more)
                break;
            *list = more;
        }
        describe(entry->d_name, &(*list)[count++]);
    }
    if (proc)
        closedir(proc);
    return count;
}

/* List all processes, those below us marked as ours. */
static size_t list_descendants(struct process **list)
{
    size_t count = list_processes(list);
    struct process *all = *list;
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < count; i++) {
            bool below = all[i].parent == getpid();
            for (size_t k = 0; k < count && !below; k++)
                below = all[k].ours && all[k].pid == all[i].parent;
            more |= below && !all[i].ours;
            all[i].ours |= below;
        }
    }
    return count;
}

/* Send `number` to everything below us, or to what of it is stopped; returns to how many. */
static int signal_descendants(int number, bool stopped)
{
    struct process *list = NULL;
    size_t count = list_descendants(&list);
    int sent = 0;
    for (size_t i = 0; i < count; i++)
        sent += list[i].ours && (list[i].stopped || !stopped) && !kill(list[i].pid, number);
    free(list);
    return sent;
}

/* Send SIGKILL to everything below us but helpers of srun, or but every srun; returns to how many.
 * Such a helper is a fork of srun that waits for its end: when srun is killed, it has Slurm end
 * the step on all nodes. Killed along with srun, ranks that heed no signal would compute on. */
static int kill_sparing(bool every_srun)
{
    struct process *list = NULL;
    size_t count = list_descendants(&list);
    int sent = 0;
    for (size_t i = 0; i < count; i++) {
        bool spared = list[i].srun && every_srun;
        for (size_t k = 0; k < count && list[i].srun && !spared; k++)
            spared = list[k].srun && list[k].pid == list[i].parent;
        sent += list[i].ours && !spared && !kill(list[i].pid, SIGKILL);
    }
    free(list);
    return sent;
}

/* Take in the dead. Returns whether anything below us is left: only children count, since what
 * loses its parent becomes ours. */
static bool reap(struct guarded *g)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == g->child) {
            g->ended = true;
            g->status = status;
        }
    return pid == 0;
}

static void nap(double seconds)
{
    nanosleep(&(struct timespec){(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))},
              NULL);
}

/* To all that the program left: SIGTERM, after which what is stopped is continued, since it could
 * not act on it. */
static void ask_descendants(void)
{
    signal_descendants(SIGTERM, false);
    signal_descendants(SIGCONT, true);
}

/* `first` to the program, SIGTERM to what it leaves, the grace, SIGKILL until nothing is left. */
static void end_all(struct guarded *g, int first)
{
    if (!reap(g))
        return;
    bool strays = g->ended; /* only they are left, and have their signal */
    if (strays) {
        ask_descendants();
    } else {
        if (first)
            kill(g->child, first);
        signal_descendants(SIGCONT, true);
    }
    for (double deadline = now() + g->grace; now() < deadline;) {
        if (!reap(g))
            return;
        if (g->ended && !strays) {
            strays = true;
            ask_descendants();
        }
        nap(0.005);
    }
    int killed = kill_sparing(false);
    fprintf(stderr, "mpigraft-guard: killed %d processes that outlived %g s of grace\n", killed,
            g->grace);
    for (double began = now(); now() < began + UNKILLABLE_S; nap(0.005)) {
        if (!reap(g))
            return;
        if (now() < began + HELPER_S) /* some were born meanwhile */
            kill_sparing(true);
        else
            signal_descendants(SIGKILL, false);
    }
    fprintf(stderr, "mpigraft-guard: processes that cannot be killed are left behind\n");
}

/* ---- the child ---- */

static void start(struct guarded *g, char **argv, const sigset_t *before)
{
    pid_t guard = getpid();
    g->child = fork();
    if (g->child < 0) {
        fprintf(stderr, "mpigraft-guard: cannot fork: %s\n", strerror(errno));
        exit(NOT_EXECUTABLE);
    }
    if (g->child)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* even if the guard itself is killed */
    if (getppid() != guard)
        _exit(NOT_EXECUTABLE);
    if (!isatty(STDIN_FILENO))
        setpgid(0, 0); /* a launcher that signals its own group does not hit the guard */
    int input = g->input ? open(g->input, O_RDONLY) : STDIN_FILENO;
    if (input < 0 || (input != STDIN_FILENO && (dup2(input, STDIN_FILENO) < 0 || close(input)))) {
        fprintf(stderr, "mpigraft-guard: %s: %s\n", g->input, strerror(errno));
        _exit(NOT_EXECUTABLE);
    }
    sigprocmask(SIG_SETMASK, before, NULL);
    execvp(argv[0], argv);
    int code = errno == ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
    fprintf(stderr, "mpigraft-guard: %s: %s\n", argv[0], strerror(errno));
    _exit(code);
}

static int exit_code(const struct guarded *g)
{
    return WIFSIGNALED(g->status) ? 128 + WTERMSIG(g->status) : WEXITSTATUS(g->status);
}

/* Whether the child got this signal as we did: the terminal sends it to a whole process group. */
static bool child_got(const struct guarded *g, const siginfo_t *info)
{
    return info->si_code == SI_KERNEL && getpgid(g->child) == getpgrp();
}

/* Pass on what does not end the job. A shell continues the group that the terminal stopped, so
 * the child has got that SIGCONT too. */
static void pass(struct guarded *g, const siginfo_t *info)
{
    bool known = child_got(g, info);
    if (info->si_signo == SIGCONT) {
        known |= g->halted;
        g->halted = false;
    } else if (info->si_signo == SIGTSTP) {
        g->halted = known;
    }
    if (!known)
        kill(g->child, info->si_signo);
}

/* Wait for the child, a signal, the limit or the parent's death; returns the exit status. */
static int watch(struct guarded *g, const sigset_t *watched, int parent_died)
{
    double deadline = now() + g->limit;
    for (;;) {
        renew_launch();
        reap(g);
        if (g->ended)
            return end_all(g, SIGTERM), exit_code(g);
        double left = deadline - now();
        if (left <= 0) {
            fprintf(stderr, "mpigraft-guard: the limit of %g s has passed\n", g->limit);
            return end_all(g, SIGTERM), LIMIT_PASSED;
        }
        left = left < TICK_S ? left : TICK_S;
        siginfo_t info;
        int number = sigtimedwait(watched, &info, &(struct timespec){.tv_nsec = (long)(1e9 * left)});
        /* The kernel sends its sign also when a thread of the parent that started us ends, so
         * the parent is asked for; and asked again on every tick, as the sign comes once. */
        if (getppid() != g->parent)
            return end_all(g, SIGTERM), 128 + SIGTERM;
        if (number == SIGUSR1 || number == SIGUSR2 || number == SIGTSTP || number == SIGCONT)
            pass(g, &info);
        else if (number > 0 && number != SIGCHLD && number != parent_died)
            return end_all(g, child_got(g, &info) ? 0 : number),
                   g->ended && !WIFSIGNALED(g->status) && exit_code(g) ? exit_code(g)
                                                                       : 128 + number;
    }
}

/* ---- usage ---- */

static double seconds(const char *name, const char *text)
{
    char *end = NULL;
    double value = text ? strtod(text, &end) : -1;
    if (!text || end == text || *end || !(value >= 0) || value > 1e9) {
        fprintf(stderr, "mpigraft-guard: %s %s: want seconds, 0 to 1e9\n", name, text ? text : "");
        exit(USAGE);
    }
    return value;
}

static pid_t process_id(const char *name, const char *text)
{
    char *end = NULL;
    long value = text ? strtol(text, &end, 10) : -1;
    if (!text || end == text || *end || value < 1 || value > INT_MAX) {
        fprintf(stderr, "mpigraft-guard: %s %s: want a process\n", name, text ? text : "");
        exit(USAGE);
    }
    return (pid_t)value;
}

int main(int argc, char **argv)
{
    struct guarded g = {.limit = 1e9, .grace = 2, .parent = getppid()};
    int i = 1;
    for (; i < argc && strcmp(argv[i], "--"); i += 2) {
        if (!strcmp(argv[i], "--limit"))
            g.limit = seconds(argv[i], argv[i + 1]);
        else if (!strcmp(argv[i], "--grace"))
            g.grace = seconds(argv[i], argv[i + 1]);
        else if (!strcmp(argv[i], "--stdin"))
            g.input = argv[i + 1];
        else if (!strcmp(argv[i], "--parent"))
            g.parent = process_id(argv[i], argv[i + 1]);
        else
            break;
    }
    if (i + 1 >= argc || strcmp(argv[i], "--")) {
        fputs("usage: mpigraft-guard [--limit SECONDS] [--grace SECONDS] [--parent PID]"
              " [--stdin FILE] -- PROGRAM [ARGUMENT...]\n",
              stderr);
        return USAGE;
    }
    int parent_died = SIGRTMIN;
    const int numbers[] = {SIGCHLD, SIGTERM, SIGINT,  SIGHUP,  SIGQUIT,
                           SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, parent_died};
    sigset_t watched, before;
    sigemptyset(&watched);
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        sigaddset(&watched, numbers[k]);
    sigprocmask(SIG_BLOCK, &watched, &before);
    signal(SIGCHLD, SIG_DFL); /* ignored by the parent, the child's status would be lost */
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, parent_died);
    if (getppid() != g.parent) { /* it died before we asked for a signal of it */
        fprintf(stderr, "mpigraft-guard: %d is not our parent\n", (int)g.parent);
        return 128 + SIGTERM;
    }
    start(&g, argv + i + 1, &before);
    begin_launch(g.child);
    int code = watch(&g, &watched, parent_died);
    end_launch(code != 0);
    return code;
}
