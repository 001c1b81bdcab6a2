/* The ways into MPI and out of it, for trace.c. */
#ifndef MPIGRAFT_TRACE_START_H
#define MPIGRAFT_TRACE_START_H

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

/* After the real entry, once for a process: from now on calls are counted. */
static void start_counting(struct moment began, MPI_Session *session, int routine)
{
    static atomic_flag done = ATOMIC_FLAG_INIT;
    const char *folder = getenv("MPIGRAFT_TRACE");
    int rank = -1, size = 0, error;
    if (!folder || !*folder || atomic_flag_test_and_set(&done))
        return;
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
    head->state = RANK_RUNNING;
    process.counting = true;
    if (adopt())
        leave(&self, &self.rows[routine], began.ticks, MPI_SUCCESS);
    if (option("record") > 0)
        start_recording(slot.bytes >> 20, ticks());
}

/* Until MPI_Pcontrol says otherwise this thread's calls, and those of threads to come, pass by. A
 * record has all of a run. */
COLD static void pause_counting(void)
{
    if (process.paused || option("record") > 0)
        return;
    process.head->paused_since = ticks();
    process.paused = true;
    self.rows = NULL;
}

COLD static void resume_counting(void)
{
    if (!process.paused)
        return;
    process.head->paused += ticks() - process.head->paused_since;
    process.head->paused_since = 0;
    process.paused = false;
    COMM_GONE; /* what was freed meanwhile */
}

/* Before the real end, which other ranks may wait in for this one's files. */
static void end_counting(void)
{
    if (!process.counting)
        return;
    struct moment now = moment_now();
    process.head->ticks_per_s = tick_rate(process.began, now);
    if (process.sites)
        keep_map(process.head);
    end_recording(0, R_Finalize);
}

static void ended_counting(void)
{
    if (!process.counting)
        return;
    process.head->ended = ticks();
    process.head->state = RANK_FINALIZED;
    publish_slot();
}

/* ---- the ways in and out ---- */

EXPORT int trace_Init(int *argc, char ***argv) TAKEN("Init");
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
    TAKEN("Init_thread");
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
    TAKEN("Session_init");
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

EXPORT int trace_Session_finalize(MPI_Session *session) TAKEN("Session_finalize");
EXPORT int trace_Session_finalize(MPI_Session *session)
{
    resume_counting();
    bool outer = !self.depth && (self.rows || adopt());
    function next = next_function(!outer, F_Session_finalize);
    if (outer)
        end_counting();
    uint64_t began = outer ? enter(&self, R_Session_finalize) : 0;
    int code = ((int (*)(MPI_Session *))next)(session);
    if (outer) {
        leave(&self, &self.rows[R_Session_finalize], began, code);
        self.depth = 0;
        ended_counting();
    }
    return code;
}
ALSO(Session_finalize, "Session_finalize");

EXPORT int trace_Finalize(void) TAKEN("Finalize");
EXPORT int trace_Finalize(void)
{
    resume_counting();
    bool outer = !self.depth && (self.rows || adopt());
    function next = next_function(!outer, F_Finalize);
    if (outer)
        end_counting();
    uint64_t began = outer ? enter(&self, R_Finalize) : 0;
    int code = ((int (*)(void))next)();
    if (outer) {
        leave(&self, &self.rows[R_Finalize], began, code);
        self.depth = 0;
        ended_counting();
    }
    return code;
}
ALSO(Finalize, "Finalize");

/* As in the standard: 0 ends the counting, and a positive level begins it again. What follows the
 * level is for another tool, of which nobody knows the types. */
EXPORT int trace_Pcontrol(const int level, ...) TAKEN("Pcontrol");
EXPORT int trace_Pcontrol(const int level, ...)
{
    function next = next_function(self.depth > 0, F_Pcontrol);
    if (level > 0 && !self.depth)
        resume_counting();
    if (self.depth || (!self.rows && !adopt()))
        return ((int (*)(const int, ...))next)(level);
    uint64_t began = enter(&self, R_Pcontrol);
    int code = ((int (*)(const int, ...))next)(level);
    uint64_t took = leave(&self, &self.rows[R_Pcontrol], began, code);
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

/* ---- functions that are taken from a library's handle (opened.h) ---- */

#define CALL(name, parameters, arguments, before, moves, keep) \
    [F_##name] = __extension__(function)trace_##name,
#define LARGE(name, parameters, arguments, before, moves, keep) \
    [F_##name##_c] = __extension__(function)trace_##name##_c,
static const function wrappers[FUNCTIONS] = {
#include "calls.h"
    [F_Init] = (function)trace_Init,
    [F_Init_thread] = (function)trace_Init_thread,
    [F_Finalize] = (function)trace_Finalize,
    [F_Session_init] = (function)trace_Session_init,
    [F_Session_finalize] = (function)trace_Session_finalize,
    [F_Pcontrol] = (function)trace_Pcontrol,
};
#undef CALL
#undef LARGE

/* Ours for a function of the first MPI that a program opens; another one is not traced. What comes
 * next may be the witness's own for this library: it is called, and the library is that of a
 * function which nobody takes. */
PLAIN void *mpigraft_taken(void *handle, const char *name)
{
    lookup *next = next_dlsym();
    if (!name || name[0] != 'M' || name[1] != 'P' || name[2] != 'I' || name[3] != '_' ||
        handle == RTLD_DEFAULT || handle == RTLD_NEXT)
        return NULL;
    int number = 0;
    while (number < FUNCTIONS && strcmp(name + 4, names[number]))
        number++;
    void *address = number < FUNCTIONS ? next(handle, name) : NULL, *own, *none = NULL;
    void *plain = address ? next(handle, "PMPI_Comm_rank") : NULL;
    Dl_info where;
    if (!plain || !dladdr(plain, &where) || !where.dli_fname)
        return NULL;
    memcpy(&own, &wrappers[number], sizeof own);
    if (address == own)
        return NULL;
    void *library = dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD); /* kept open */
    if (!library)
        return NULL;
    if (!atomic_compare_exchange_strong(&origin, &none, library) && none != library)
        return dlclose(library), NULL;
    if (!functions[0][number])
        memcpy(&functions[0][number], &address, sizeof address);
    return own;
}

#endif
