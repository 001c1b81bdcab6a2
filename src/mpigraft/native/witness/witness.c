/* libmpigraft-witness.so: preloaded into every rank, writes one record of what really runs.
 *
 * It takes the ways into MPI (C, sessions, Fortran), also those that are looked up in a library's
 * handle (next_mpi.h). Once per process and only with MPIGRAFT_WITNESS=FOLDER it notes there which
 * MPI libraries are mapped, calls the real one, and then adds a line to the node's file (rank_record.h).
 * Nothing after that passes through it. It knows no MPI header and needs no MPI library: handles
 * of the three ABIs are distinguished by the library that the real function came from. It never
 * fails a program: what cannot be written is said on stderr and the program goes on.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "other_mpi.h"
#include "rank_record.h"

#define EXPORT __attribute__((visibility("default")))

/* ---- a rank's place ---- */

/* Whether MPI_Comm_spawn started this process: it has a communicator with who did. */
static bool is_spawned(struct mpi mpi)
{
    function ask = real("PMPI_Comm_get_parent");
    void *parent = mpi.none;
    int number = (int)(uintptr_t)mpi.none;
    if (!ask)
        return false;
    if (mpi.abi == POINTERS)
        return !((int (*)(void **))ask)(&parent) && parent != mpi.none;
    return !((int (*)(int *))ask)(&number) && number != (int)(uintptr_t)mpi.none;
}

static struct place place_in_world(struct mpi mpi)
{
    return (struct place){ask_int("PMPI_Comm_rank", mpi, mpi.world),
                          ask_int("PMPI_Comm_size", mpi, mpi.world), is_spawned(mpi)};
}

/* A session has no world communicator; its set "mpi://WORLD" has the same ranks. */
static struct place place_in_session(struct mpi mpi, void *session)
{
    struct place nowhere = {-1, -1, false};
    function make = real("PMPI_Group_from_session_pset"), drop = real("PMPI_Group_free");
    if (!make || !drop)
        return nowhere;
    void *pointer = NULL;
    int number = 0, code;
    if (mpi.abi == POINTERS)
        code = ((int (*)(void *, const char *, void **))make)(*(void **)session, "mpi://WORLD",
                                                              &pointer);
    else
        code = ((int (*)(int, const char *, int *))make)(*(int *)session, "mpi://WORLD", &number);
    if (code)
        return nowhere;
    void *group = mpi.abi == POINTERS ? pointer : handle_of((unsigned)number);
    struct place place = {ask_int("PMPI_Group_rank", mpi, group),
                          ask_int("PMPI_Group_size", mpi, group), getenv("PMI_SPAWNED") != NULL};
    ((int (*)(void *))drop)(mpi.abi == POINTERS ? (void *)&pointer : (void *)&number);
    return place;
}

/* ---- the record ---- */

static void tell(const char *folder, struct place place)
{
    enum { ROOM = 1 << 16 }; /* MPI_MAX_LIBRARY_VERSION_STRING is 256 to 8192 */
    char *version = calloc(1, ROOM);
    function ask = real("PMPI_Get_library_version");
    int length = 0;
    if (version && ask)
        ((int (*)(char *, int *))ask)(version, &length);
    testify(folder, place, version ? version : "");
    free(version);
}

/* Before the real entry, which may never come back: what is mapped is noted. */
static void entering(void)
{
    static atomic_flag done = ATOMIC_FLAG_INIT;
    const char *folder = getenv("MPIGRAFT_WITNESS");
    if (!folder || !*folder || atomic_flag_test_and_set(&done))
        return;
    int before = errno;
    own_connections();
    announce(folder);
    refuse_opened_mpi();
    errno = before;
}

/* After the real entry. `session` is the new session's handle, or NULL. */
static void entered(int code, void *session)
{
    static atomic_flag done = ATOMIC_FLAG_INIT;
    const char *folder = getenv("MPIGRAFT_WITNESS");
    if (code || !folder || !*folder || atomic_flag_test_and_set(&done))
        return;
    int before = errno;
    struct mpi mpi = which_mpi();
    tell(folder, session ? place_in_session(mpi, session) : place_in_world(mpi));
    errno = before;
}

/* ---- the ways in ---- */

EXPORT int MPI_Init(int *argc, char ***argv)
{
    function init = real_or_end("MPI_Init");
    entering();
    int code = ((int (*)(int *, char ***))init)(argc, argv);
    entered(code, NULL);
    return code;
}

EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    function init = real_or_end("MPI_Init_thread");
    entering();
    int code = ((int (*)(int *, char ***, int, int *))init)(argc, argv, required, provided);
    entered(code, NULL);
    return code;
}

/* info and errhandler are ints or pointers: both pass through a register whole. */
EXPORT int MPI_Session_init(void *info, void *errhandler, void *session)
{
    function init = real_or_end("MPI_Session_init");
    entering();
    int code = ((int (*)(void *, void *, void *))init)(info, errhandler, session);
    entered(code, session);
    return code;
}

/* Fortran enters by symbols of its own, mangled as its compiler pleases; some libraries go on
 * to PMPI_Init, which is not seen above. The error code is optional in mpi_f08. */
#define FORTRAN_INIT(name)                                              \
    EXPORT void name(int *code);                                        \
    EXPORT void name(int *code)                                         \
    {                                                                   \
        function init = real_or_end(#name);                             \
        entering();                                                     \
        ((void (*)(int *))init)(code);                                  \
        entered(code ? *code : 0, NULL);                                \
    }

#define FORTRAN_INIT_THREAD(name)                                            \
    EXPORT void name(int *required, int *provided, int *code);               \
    EXPORT void name(int *required, int *provided, int *code)                \
    {                                                                        \
        function init = real_or_end(#name);                                  \
        entering();                                                          \
        ((void (*)(int *, int *, int *))init)(required, provided, code);     \
        entered(code ? *code : 0, NULL);                                     \
    }

FORTRAN_INIT(mpi_init)
FORTRAN_INIT(mpi_init_)
FORTRAN_INIT(mpi_init__)
FORTRAN_INIT(MPI_INIT)
FORTRAN_INIT(mpi_init_f08_)
FORTRAN_INIT_THREAD(mpi_init_thread)
FORTRAN_INIT_THREAD(mpi_init_thread_)
FORTRAN_INIT_THREAD(mpi_init_thread__)
FORTRAN_INIT_THREAD(MPI_INIT_THREAD)
FORTRAN_INIT_THREAD(mpi_init_thread_f08_)

/* ---- what ranks start ---- */

#define SPAWN(name)                                                                              \
    EXPORT int name(const char *command, char **arguments, int most, void *info, int root,       \
                    void *comm, void *between, int *codes);                                      \
    EXPORT int name(const char *command, char **arguments, int most, void *info, int root,       \
                    void *comm, void *between, int *codes)                                       \
    {                                                                                            \
        return spawn_by(real_or_end(#name), command, arguments, most, info, root, comm, between, \
                        codes);                                                                  \
    }                                                                                            \
    EXPORT int name##_multiple(int count, char **commands, char ***arguments, const int *most,   \
                               void *infos, int root, void *comm, void *between, int *codes);    \
    EXPORT int name##_multiple(int count, char **commands, char ***arguments, const int *most,   \
                               void *infos, int root, void *comm, void *between, int *codes)     \
    {                                                                                            \
        return spawn_many_by(real_or_end(#name "_multiple"), count, commands, arguments, most,   \
                             infos, root, comm, between, codes);                                 \
    }

SPAWN(MPI_Comm_spawn)
SPAWN(PMPI_Comm_spawn)

/* ---- the ways in by a library's handle ---- */

/* Each of a few libraries gets functions of its own, which know its entry. */
enum { LIBRARIES = 4 };

static void *_Atomic entries[5][LIBRARIES]; /* by the rows of `ways` below */

/* The entry in the handle's library; from now on MPI is asked there. */
static function opened(int way, int slot)
{
    void *address = atomic_load(&entries[way][slot]), *none = NULL;
    Dl_info where;
    if (dladdr(address, &where) && where.dli_fname) {
        void *library = dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD); /* kept open */
        if (library)
            atomic_compare_exchange_strong(&origin, &none, library);
    }
    function result;
    memcpy(&result, &address, sizeof result);
    entering();
    return result;
}

#define OPENED(slot)                                                                      \
    static int opened_init_##slot(int *argc, char ***argv)                                \
    {                                                                                     \
        int code = ((int (*)(int *, char ***))opened(0, slot))(argc, argv);               \
        entered(code, NULL);                                                              \
        return code;                                                                      \
    }                                                                                     \
    static int opened_thread_##slot(int *argc, char ***argv, int required, int *provided) \
    {                                                                                     \
        int code = ((int (*)(int *, char ***, int, int *))opened(1, slot))(               \
            argc, argv, required, provided);                                              \
        entered(code, NULL);                                                              \
        return code;                                                                      \
    }                                                                                     \
    static int opened_session_##slot(void *info, void *errhandler, void *session)         \
    {                                                                                     \
        int code = ((int (*)(void *, void *, void *))opened(2, slot))(                    \
            info, errhandler, session);                                                   \
        entered(code, session);                                                           \
        return code;                                                                      \
    }                                                                                     \
    static int opened_spawn_##slot(const char *command, char **arguments, int most,       \
                                   void *info, int root, void *comm, void *between,       \
                                   int *codes)                                            \
    {                                                                                     \
        return spawn_by(opened(3, slot), command, arguments, most, info, root, comm,      \
                        between, codes);                                                  \
    }                                                                                     \
    static int opened_multiple_##slot(int count, char **commands, char ***arguments,      \
                                      const int *most, void *infos, int root, void *comm, \
                                      void *between, int *codes)                          \
    {                                                                                     \
        return spawn_many_by(opened(4, slot), count, commands, arguments, most, infos,    \
                             root, comm, between, codes);                                 \
    }

OPENED(0)
OPENED(1)
OPENED(2)
OPENED(3)

static const struct {
    const char *name;
    function own; /* what the loader binds */
    function taken[LIBRARIES];
} ways[] = {
    {"MPI_Init",
     (function)MPI_Init,
     {(function)opened_init_0, (function)opened_init_1, (function)opened_init_2,
      (function)opened_init_3}},
    {"MPI_Init_thread",
     (function)MPI_Init_thread,
     {(function)opened_thread_0, (function)opened_thread_1, (function)opened_thread_2,
      (function)opened_thread_3}},
    {"MPI_Session_init",
     (function)MPI_Session_init,
     {(function)opened_session_0, (function)opened_session_1, (function)opened_session_2,
      (function)opened_session_3}},
    {"MPI_Comm_spawn",
     (function)MPI_Comm_spawn,
     {(function)opened_spawn_0, (function)opened_spawn_1, (function)opened_spawn_2,
      (function)opened_spawn_3}},
    {"MPI_Comm_spawn_multiple",
     (function)MPI_Comm_spawn_multiple,
     {(function)opened_multiple_0, (function)opened_multiple_1, (function)opened_multiple_2,
      (function)opened_multiple_3}},
};

/* Ours for this entry of a handle; NULL where there is none, or it is one of ours. */
static void *slot_for(int way, void *found)
{
    void *own;
    memcpy(&own, &ways[way].own, sizeof own);
    if (!found || found == own)
        return NULL;
    for (int slot = 0; slot < LIBRARIES; slot++) {
        void *known = NULL, *result;
        if (!atomic_compare_exchange_strong(&entries[way][slot], &known, found) && known != found)
            continue;
        memcpy(&result, &ways[way].taken[slot], sizeof result);
        return result;
    }
    return NULL; /* more libraries than anyone has: not seen */
}

/* For dlsym (next_mpi.h): what the caller gets in place of an entry into MPI; NULL: what it asked
 * for. Called before and in anyone's constructors, so with nothing but the loader's help. */
PLAIN void *mpigraft_taken(void *handle, const char *name)
{
    lookup *next = next_dlsym();
    if (!name || name[0] != 'M' || name[1] != 'P' || name[2] != 'I' || name[3] != '_' ||
        handle == RTLD_NEXT)
        return NULL;
    int way = 0, count = sizeof ways / sizeof *ways;
    while (way < count && strcmp(name, ways[way].name))
        way++;
    void *address = way < count ? next(handle, name) : NULL;
    if (is_absent(name, address))
        return ABSENT;
    return handle == RTLD_DEFAULT ? NULL : slot_for(way, address);
}
