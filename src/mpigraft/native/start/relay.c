/* mpigraft-relay -- ENGINE... mpigraft-relay --inside -- PROGRAM...: signals past an engine that
 * stays between a launcher and its rank.
 *
 * A launcher signals its child, or the process group that its child leads. Some engines are not
 * replaced by the program that they start: bubblewrap's process dies of what it gets, Apptainer's
 * passes it on, so that a rank that got the group's signal gets it twice. The relay becomes the
 * launcher's child, starts the engine in a process group of its own, and inside of the container
 * the second relay brings the program back into the launcher's group and becomes it. What is sent
 * to the group, SIGKILL too, reaches the program and all that it started as it would without an
 * engine. What is sent to the launcher's child alone the relay passes on to the program alone.
 *
 * Which of the two it was a witness tells: a second process of the group that does nothing else. Passing everything on to the whole group was rejected: Slurm's
 * proctrack/cgroup signals the child alone, and a script's children may not expect it.
 *
 * Exit status: the engine's; the relay ends by the signal that ended the engine; 126 or 127 if it
 * cannot be started; 2 for bad usage.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { USAGE = 2, NOT_EXECUTABLE = 126, NOT_FOUND = 127, MOST = 64, MOST_FILES = 1024 };

#define RELAY "MPIGRAFT_RELAY" /* for the relay inside: the outer one and the launcher's group */
#define LAG_NS 5000000L        /* within which a signal has reached all of its group */
#define PATIENCE_S 10          /* of the relay inside; the outer one answers at once */

/* Those that a launcher or a scheduler sends. Others, and SIGCHLD, are left as they are: signals
 * of a process's own faults cannot be passed on, and engines wait for their children. */
static const int PASSED[] = {SIGHUP,  SIGINT,  SIGQUIT,  SIGTERM, SIGUSR1,   SIGUSR2, SIGTSTP,
                             SIGCONT, SIGALRM, SIGVTALRM, SIGPROF, SIGWINCH, SIGURG,  SIGXCPU,
                             SIGTTIN, SIGTTOU, SIGIO,     SIGPWR};

struct relay {
    pid_t engine, witness;
    pid_t program;    /* 0 until it has joined the group */
    int socket;       /* to the witness */
    bool early[MOST]; /* signals that came before the program was there */
};

static void refuse(const char *what)
{
    fprintf(stderr, "mpigraft-relay: %s: %s\n", what, strerror(errno));
    exit(NOT_EXECUTABLE);
}

static sigset_t passed_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof PASSED / sizeof *PASSED; i++)
        sigaddset(&set, PASSED[i]);
    return set;
}

static void become(char **argv)
{
    execvp(argv[0], argv);
    int code = errno == ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
    fprintf(stderr, "mpigraft-relay: %s: %s\n", argv[0], strerror(errno));
    _exit(code);
}

/* With which the relay inside tells of itself, and is answered. */
static int greeting(void)
{
    return SIGRTMIN;
}

/* ---- inside of the container ---- */

/* Join the launcher's group and wait until the outer relay has sent what came before that: what
 * came to both in between is one signal that waits, not two. */
static const char *join(const char *text, const sigset_t *greetings)
{
    int relay, group;
    char rest;
    if (!text || sscanf(text, "%d %d%c", &relay, &group, &rest) != 2 || relay <= 1 || group <= 1)
        return RELAY " does not say where the relay outside is";
    if (setpgid(0, group))
        return "the launcher's process group cannot be joined";
    if (kill(relay, greeting()))
        return "the relay outside cannot be reached";
    struct timespec patience = {.tv_sec = PATIENCE_S};
    while (sigtimedwait(greetings, NULL, &patience) < 0)
        if (errno != EINTR)
            return "the relay outside does not answer";
    return NULL;
}

/* A failure is no reason to end a job: the program runs, and misses signals. */
static int inside(char **argv)
{
    sigset_t set = passed_signals(), greetings;
    sigemptyset(&greetings);
    sigaddset(&greetings, greeting());
    sigaddset(&set, greeting());
    sigprocmask(SIG_BLOCK, &set, NULL);
    const char *trouble = join(getenv(RELAY), &greetings);
    if (trouble)
        fprintf(stderr, "mpigraft-relay: %s; signals of the launcher may not arrive\n", trouble);
    unsetenv(RELAY);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    become(argv);
    return NOT_EXECUTABLE;
}

/* ---- the witness ---- */

/* Answer which signals have come, until the relay is gone: then end the engine, which ends the
 * program. The kernel would do that if asked to by prctl, but not for Apptainer, which changes its
 * credentials. All of PASSED are blocked, so what the group got waits here to be asked for. */
static void witness(int relay, pid_t engine)
{
    unsigned char number;
    while (read(relay, &number, 1) == 1) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, number);
        unsigned char came = sigtimedwait(&set, NULL, &(struct timespec){0}) == number;
        if (write(relay, &came, 1) != 1)
            break;
    }
    kill(-engine, SIGKILL);
    kill(engine, SIGKILL); /* it may not lead its group yet */
    _exit(0);
}

static bool group_got(int witness, int number)
{
    unsigned char question = (unsigned char)number, came = 0;
    return write(witness, &question, 1) == 1 && read(witness, &came, 1) == 1 && came;
}

/* ---- the relay ---- */

static bool waits(int number)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    return sigtimedwait(&set, NULL, &(struct timespec){0}) == number;
}

/* A signal has come. It is passed on unless the group got it. */
static void pass(struct relay *r, int number)
{
    nanosleep(&(struct timespec){.tv_nsec = LAG_NS}, NULL);
    if (group_got(r->socket, number))
        waits(number); /* again to the group meanwhile: the witness has forgotten both */
    else
        kill(r->program, number);
}

/* The program is in the group: what came before gets to it, then it may begin. */
static void welcome(struct relay *r, pid_t program)
{
    r->program = program;
    for (size_t i = 0; i < sizeof PASSED / sizeof *PASSED; i++) {
        int number = PASSED[i];
        bool came = r->early[number];
        came |= waits(number);
        came |= group_got(r->socket, number);
        if (came)
            kill(program, number);
    }
    kill(program, greeting());
}

static int watch(struct relay *r, const sigset_t *watched)
{
    for (;;) {
        int status;
        pid_t ended;
        while ((ended = waitpid(-1, &status, WNOHANG)) > 0)
            if (ended == r->engine)
                return status;
        siginfo_t info;
        int number = sigwaitinfo(watched, &info);
        if (number < 0 || number == SIGCHLD)
            continue;
        if (number == greeting() && !r->program)
            welcome(r, info.si_pid);
        else if (number != greeting() && r->program)
            pass(r, number);
        else if (number != greeting())
            r->early[number] = true;
    }
}

static pid_t start_engine(char **argv)
{
    pid_t own = getpid(), pid = fork();
    if (pid < 0)
        refuse("fork");
    if (pid)
        return pid;
    char relay[64];
    snprintf(relay, sizeof relay, "%d %d", (int)own, (int)getpgrp());
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* even if the relay is killed */
    if (getppid() != own || setenv(RELAY, relay, 1) || setpgid(0, 0))
        _exit(NOT_EXECUTABLE);
    become(argv); /* with PASSED blocked: it does not die of them, and the relay inside unblocks */
    return 0;
}

static pid_t start_witness(struct relay *r)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        refuse("socketpair");
    pid_t pid = fork();
    if (pid < 0)
        refuse("fork");
    if (!pid) {
        int relay = dup2(ends[1], STDIN_FILENO); /* the rank's own streams are not for it */
        for (int file = 1; file < MOST_FILES; file++)
            close(file);
        witness(relay, r->engine);
    }
    close(ends[1]);
    r->socket = ends[0];
    return pid;
}

/* Close what the engine and the program have too: a reader would wait for the relay's end. What
 * leads to the launcher stays, until the launcher's child ends: hydra of MPICH 5.0.2 kills a child
 * whose connection ends before it, as that of a program without MPI_Finalize would. */
static void close_files(int socket)
{
    const char *text = getenv("PMI_FD");
    int launcher = text ? atoi(text) : -1;
    for (int file = 0; file < MOST_FILES; file++)
        if (file != STDERR_FILENO && file != socket && (file != launcher || file <= STDERR_FILENO))
            close(file);
}

static int outside(char **argv)
{
    struct relay r = {0};
    sigset_t set = passed_signals(), child;
    sigaddset(&set, greeting());
    signal(SIGCHLD, SIG_DFL); /* ignored by the parent, the engine's status would be lost */
    sigprocmask(SIG_BLOCK, &set, NULL);
    r.engine = start_engine(argv);
    r.witness = start_witness(&r);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    close_files(r.socket);
    int status = watch(&r, &set);
    kill(r.witness, SIGKILL);
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}); /* a core of the relay explains nothing */
    signal(WTERMSIG(status), SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(WTERMSIG(status));
    return 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    bool within = argc > 1 && !strcmp(argv[1], "--inside");
    char **words = argv + 1 + within;
    if (argc < 3 + within || strcmp(words[0], "--")) {
        fputs("usage: mpigraft-relay [--inside] -- PROGRAM [ARGUMENT...]\n", stderr);
        return USAGE;
    }
    return within ? inside(words + 1) : outside(words + 1);
}
