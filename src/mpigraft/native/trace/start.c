/* The ways into MPI and out of it. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "count.h"
#include "enter.h"

enum { BUDGET_MIB = 64, LEAST_MIB = 1, MOST_MIB = 4096, COMMAND_BYTES = 4096 };

/* The value of `name=` among the words of MPIGRAFT_TRACE_OPTIONS; -1: it is not there. */
static long option(const char *name)
{
    const char *words = getenv("MPIGRAFT_TRACE_OPTIONS");
    size_t length = strlen(name);
    for (const char *at = words; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!strncmp(at, name, length) && (!at[length] || at[length] == ',' || at[length] == '='))
            return at[length] == '=' ? strtol(at + length + 1, NULL, 10) : 1;
    return -1;
}

/* Map this rank's slot; 0, or the error. */
static int open_slot(const char *folder)
{
    static const char magic[16] = TRACE_MAGIC;
    char *start = calloc(1, TRACE_START);
    long budget = option("budget");
    if (!start)
        return ENOMEM;
    struct trace_file head = {.version = TRACE_VERSION, .routines = ROUTINES};
    memcpy(head.magic, magic, sizeof magic);
    budget = budget < LEAST_MIB ? BUDGET_MIB : budget > MOST_MIB ? MOST_MIB : budget;
    head.slot_bytes = (uint64_t)budget << 20;
    memcpy(start, &head, sizeof head);
    for (size_t i = 0; i < ROUTINES; i++)
        snprintf(start + TRACE_NAMES + i * NAME_BYTES, NAME_BYTES, "%s", routines[i]);
    int error = take_slot(folder, start, TRACE_NAMES + ROUTINES * NAME_BYTES);
    free(start);
    return error;
}

/* The group of all ranks, from the world's communicator or from a session. */
static bool find_world(MPI_Session *session, int *rank, int *size)
{
    int code;
    if (session)
        code = PMPI(Group_from_session_pset, int (*)(MPI_Session, const char *, MPI_Group *))(
            *session, "mpi://WORLD", &process.world);
    else {
#ifdef OPEN_MPI
        MPI_Comm world = open_mpi_object("ompi_mpi_comm_world");
#else
        MPI_Comm world = MPI_COMM_WORLD;
#endif
        code = PMPI(Comm_group, ask_group *)(world, &process.world);
    }
    return !code && !PMPI(Group_rank, int (*)(MPI_Group, int *))(process.world, rank) &&
           !PMPI(Group_size, int (*)(MPI_Group, int *))(process.world, size);
}

static void keep_command(struct trace_rank *head)
{
    char *room = take_room(COMMAND_BYTES, 0);
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t length = file >= 0 && room ? read(file, room, COMMAND_BYTES) : -1;
    if (length > 0) {
        head->program = offset_of(room);
        head->program_bytes = (uint64_t)length;
    }
    if (file >= 0)
        close(file);
}

/* Which process of the launch this is: {"pid":N,"start":T,"task":{...}}. */
static void keep_task_of(struct trace_rank *head, bool spawned)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out)
        return;
    fprintf(out, "{\"pid\":%ld", (long)getpid());
    write_task(out, spawned);
    putc('}', out);
    char *room = fclose(out) ? NULL : take_room(length, 0);
    if (room) {
        memcpy(room, text, length);
        head->task = offset_of(room);
        head->task_bytes = length;
    }
    free(text);
}

/* Whether MPI_Comm_spawn started this process. A session knows no parent. */
static bool is_spawned(const MPI_Session *session)
{
    MPI_Comm parent;
    if (session)
        return getenv("PMI_SPAWNED") != NULL;
#ifdef OPEN_MPI
    MPI_Comm none = open_mpi_object("ompi_mpi_comm_null");
#else
    MPI_Comm none = MPI_COMM_NULL;
#endif
    return !PMPI(Comm_get_parent, int (*)(MPI_Comm *))(&parent) && parent != none;
}

static void end_run(enum rank_state state)
{
    process.counting = false;
    process.head->ended = ticks();
    process.head->state = state;
}

/* A rank that goes without MPI_Finalize ends here, even if its launcher waits. It may go from
 * a handler of a signal, which waits for no lock. */
static void left(void)
{
    if (!process.head || !process.counting || process.head->pid != (int32_t)getpid())
        return;
    process.head->ticks_per_s = tick_rate(process.began, moment_now());
    if (!pthread_mutex_trylock(&blocks)) {
        stop_threads();
        pthread_mutex_unlock(&blocks);
    }
    end_run(RANK_RUNNING);
    publish_slot();
}

/* One more call of `routine`, which was not counted when it began. */
static void count_entry(struct moment began, int routine)
{
    struct trace_routine *rows = rows_of(&self);
    if (!rows)
        return;
    self.thread->paused = process.left_out;
    leave(&self, &rows[routine], began.ticks, MPI_SUCCESS);
}

/* After the real entry: from the first one on calls are counted. */
static void start_counting(struct moment began, MPI_Session *session, int routine)
{
    static atomic_flag done = ATOMIC_FLAG_INIT;
    const char *folder = getenv("MPIGRAFT_TRACE");
    int rank = -1, size = 0, error;
    __atomic_add_fetch(&process.inside, 1, __ATOMIC_RELAXED);
    if (!folder || !*folder)
        return;
    if (atomic_flag_test_and_set(&done)) {
        if (process.head) {
            process.head->ended = 0;
            process.head->state = RANK_RUNNING;
            process.counting = true;
            count_entry(began, routine);
        }
        return;
    }
    if (!find_world(session, &rank, &size))
        return;
    if ((error = open_slot(folder))) {
        fprintf(stderr, "mpigraft-trace: %s: %s; rank %d is not counted, the program goes on\n",
                folder, strerror(error), rank);
        return;
    }
    struct moment now = moment_now();
    struct trace_rank *head = process.head = (struct trace_rank *)(void *)slot.base;
    head->rank = rank;
    head->size = size;
    head->pid = (int32_t)getpid();
    head->began = began.ticks;
    head->began_ns = (uint64_t)(nanoseconds(CLOCK_REALTIME) - (now.ns - began.ns));
    head->ticks_per_s = tick_rate(began, now);
    head->pair_ticks = pair_of_ticks();
    head->used = slot.used;
    PMPI(Query_thread, int (*)(int *))(&head->thread_level);
    process.began = began;
    process.waits = option("waits") > 0;
    if ((process.sites = option("sites") > 0))
        start_sites();
    keep_command(head);
    keep_task_of(head, is_spawned(session));
    pthread_key_create(&thread_key, thread_ended);
    at_quick_exit(left);
#ifdef OPEN_MPI
    process.no_message = KEY(open_mpi_object("ompi_message_no_proc"));
    process.no_op = KEY(open_mpi_object("ompi_mpi_op_no_op"));
#else
    process.no_message = KEY(MPI_MESSAGE_NO_PROC);
    process.no_op = KEY(MPI_NO_OP);
#endif
    head->state = RANK_RUNNING;
    process.counting = true;
    count_entry(began, routine);
    if (option("record") > 0)
        start_recording(slot.bytes >> 20, ticks());
}

/* Until MPI_Pcontrol says otherwise the calls of all threads pass by. A record has all of a run. */
COLD static void pause_counting(void)
{
    if (option("record") > 0)
        return;
    pthread_mutex_lock(&blocks);
    if (!process.paused) {
        process.head->paused_since = ticks();
        process.paused = true;
        stop_threads();
    }
    pthread_mutex_unlock(&blocks);
}

COLD static void resume_counting(void)
{
    pthread_mutex_lock(&blocks);
    if (process.paused) {
        process.left_out += ticks() - process.head->paused_since;
        process.head->paused = process.left_out;
        process.head->paused_since = 0;
        process.paused = false;
    }
    pthread_mutex_unlock(&blocks);
}

/* Before the real end, which other ranks may wait in for this one's files. */
static void end_counting(int routine)
{
    process.head->ticks_per_s = tick_rate(process.began, moment_now());
    if (process.sites)
        keep_map(process.head);
    if (routine == R_Finalize) /* a session may be before MPI_Init */
        end_recording(0, R_Finalize);
}

static void ended_counting(enum rank_state state)
{
    pthread_mutex_lock(&blocks);
    stop_threads();
    end_run(state);
    pthread_mutex_unlock(&blocks);
    publish_slot();
}

__attribute__((destructor)) static void exited(void)
{
    if (process.head && process.head->pid == (int32_t)getpid() && recorder.on &&
        process.head->state == RANK_FINALIZED)
        end_recording(0, R_Finalize);
    left();
}

/* Past all destructors. What libc calls in exit is its own. */
EXPORT void _exit(int code)
{
    left();
    for (;;)
        syscall(SYS_exit_group, code);
}
EXPORT void _Exit(int code) __attribute__((alias("_exit")));

/* ---- the ways in and out ---- */


EXPORT int trace_Init(int *argc, char ***argv)
{
    int inner = self.depth++;
    own_connections();
    struct moment began = moment_now();
    int code = ((int (*)(int *, char ***))next_function(inner > 0, F_Init))(argc, argv);
    self.depth = inner;
    if (!code && !inner)
        start_counting(began, NULL, R_Init);
    return code;
}
ALSO(Init, "Init");


EXPORT int trace_Init_thread(int *argc, char ***argv, int required, int *level)
{
    int inner = self.depth++;
    own_connections();
    struct moment began = moment_now();
    int code = ((int (*)(int *, char ***, int, int *))next_function(inner > 0, F_Init_thread))(
        argc, argv, required, level);
    self.depth = inner;
    if (!code && !inner)
        start_counting(began, NULL, R_Init_thread);
    return code;
}
ALSO(Init_thread, "Init_thread");


EXPORT int trace_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session *session)
{
    int inner = self.depth++;
    own_connections();
    struct moment began = moment_now();
    int code = ((int (*)(MPI_Info, MPI_Errhandler, MPI_Session *))next_function(
        inner > 0, F_Session_init))(info, handler, session);
    self.depth = inner;
    if (!code && !inner)
        start_counting(began, session, R_Session_init);
    return code;
}
ALSO(Session_init, "Session_init");

/* A way out of MPI. The last one of a process ends its run. */
struct way_out {
    struct trace_routine *rows; /* NULL: it is not counted */
    uint64_t began;
    bool last;
};

static struct way_out begin_way_out(int routine)
{
    struct way_out way = {.rows = NULL};
    if (self.depth)
        return way;
    way.last = __atomic_sub_fetch(&process.inside, 1, __ATOMIC_RELAXED) <= 0;
    if (way.last && process.head)
        resume_counting();
    if (!(way.rows = rows_of(&self)))
        return way;
    if (way.last)
        end_counting(routine);
    way.began = enter(&self, (uint64_t)routine);
    return way;
}

static void end_way_out(struct way_out way, int routine, int code)
{
    if (!way.rows)
        return;
    leave(&self, &way.rows[routine], way.began, code);
    self.depth = 0;
    if (way.last)
        ended_counting(RANK_FINALIZED);
}


EXPORT int trace_Session_finalize(MPI_Session *session)
{
    function next = next_function(self.depth > 0, F_Session_finalize);
    struct way_out way = begin_way_out(R_Session_finalize);
    int code = ((int (*)(MPI_Session *))next)(session);
    end_way_out(way, R_Session_finalize, code);
    return code;
}
ALSO(Session_finalize, "Session_finalize");


EXPORT int trace_Finalize(void)
{
    function next = next_function(self.depth > 0, F_Finalize);
    struct way_out way = begin_way_out(R_Finalize);
    int code = ((int (*)(void))next)();
    end_way_out(way, R_Finalize, code);
    return code;
}
ALSO(Finalize, "Finalize");

/* As in the standard: 0 ends the counting, and a positive level begins it again. What follows the
 * level is for another tool, whose types are unknown. */

EXPORT int trace_Pcontrol(const int level, ...)
{
    function next = next_function(self.depth > 0, F_Pcontrol);
    if (level > 0 && !self.depth && process.head)
        resume_counting();
    struct trace_routine *rows = self.depth ? NULL : rows_of(&self);
    if (!rows)
        return ((int (*)(const int, ...))next)(level);
    uint64_t began = enter(&self, R_Pcontrol);
    int code = ((int (*)(const int, ...))next)(level);
    uint64_t took = leave(&self, &rows[R_Pcontrol], began, code);
    if (recorder.on) {
        begin_event(R_Pcontrol);
        put_integer(level);
        end_event(took);
    }
    self.depth = 0;
    if (!level)
        pause_counting();
    return code;
}
ALSO(Pcontrol, "Pcontrol");

/* A replay makes calls that no program made: those between 1 and -1 are not counted. */
EXPORT void mpigraft_trace_own(int more);
EXPORT void mpigraft_trace_own(int more)
{
    self.depth += more;
}
