/* libmpigraft-witness.so: preloaded into every rank, writes one record of what really runs.
 *
 * It takes the ways into MPI (C, sessions, Fortran), calls the real one, and then, once per
 * process and only with MPIGRAFT_WITNESS=FOLDER, adds a line to the node's file there (record.h).
 * Nothing after that passes through it. It knows no MPI header and needs no MPI library: handles
 * of the three ABIs are told apart by the library that the real function came from. It never
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

#include "record.h"

#define EXPORT __attribute__((visibility("default")))

typedef void (*function)(void); /* of a type that the caller knows */

/* ---- the real functions ---- */

struct search {
    const char *name;
    void *found;
};

/* Python and other hosts of plug-ins load MPI where RTLD_NEXT does not look. */
static int look_into(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)size;
    struct search *search = argument;
    const char *base = strrchr(info->dlpi_name, '/');
    base = base ? base + 1 : info->dlpi_name;
    if (strncmp(base, "libmpi", 6) || !strncmp(base, "libmpigraft", 11))
        return 0;
    void *library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (library) {
        search->found = dlsym(library, search->name);
        dlclose(library);
    }
    return search->found != NULL;
}

static function real(const char *name)
{
    struct search search = {name, dlsym(RTLD_NEXT, name)};
    if (!search.found)
        dl_iterate_phdr(look_into, &search);
    function result;
    memcpy(&result, &search.found, sizeof result);
    return result;
}

static function real_or_end(const char *name)
{
    function result = real(name);
    if (result)
        return result;
    fprintf(stderr, "mpigraft-witness: the program calls %s, but no MPI library has it\n", name);
    _exit(127);
}

/* ---- what MPI says ---- */

/* A handle is an int in MPICH's ABI and a pointer in Open MPI's and in the standard one. Each
 * is passed as what it is: the two differ in the registers' upper halves. */
enum abi { INTS, POINTERS };

struct mpi {
    enum abi abi;
    void *world; /* POINTERS */
};

enum { MPICH_COMM_WORLD = 0x44000000, STANDARD_COMM_WORLD = 0x101 };

static struct mpi which_mpi(void)
{
    void *world = dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world");
    struct search search = {"ompi_mpi_comm_world", world};
    if (!search.found)
        dl_iterate_phdr(look_into, &search);
    if (search.found)
        return (struct mpi){POINTERS, search.found};
    function init = real("PMPI_Init");
    void *address;
    memcpy(&address, &init, sizeof address);
    Dl_info where;
    const char *base = NULL;
    if (address && dladdr(address, &where) && where.dli_fname) {
        base = strrchr(where.dli_fname, '/');
        base = base ? base + 1 : where.dli_fname;
    }
    if (base && !strncmp(base, "libmpi_abi", 10))
        return (struct mpi){POINTERS, (void *)(uintptr_t)STANDARD_COMM_WORLD};
    return (struct mpi){INTS, NULL};
}

static int ask_int(const char *name, struct mpi mpi, void *handle)
{
    function ask = real(name);
    int answer = -1;
    if (!ask)
        return answer;
    int code = mpi.abi == POINTERS
                   ? ((int (*)(void *, int *))ask)(handle, &answer)
                   : ((int (*)(int, int *))ask)((int)(uintptr_t)handle, &answer);
    return code ? -1 : answer;
}

static struct place place_in_world(struct mpi mpi)
{
    void *world = mpi.abi == POINTERS ? mpi.world : (void *)(uintptr_t)MPICH_COMM_WORLD;
    return (struct place){ask_int("PMPI_Comm_rank", mpi, world),
                          ask_int("PMPI_Comm_size", mpi, world)};
}

/* A session has no world communicator; its set "mpi://WORLD" has the same ranks. */
static struct place place_in_session(struct mpi mpi, void *session)
{
    struct place nowhere = {-1, -1};
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
    void *group = mpi.abi == POINTERS ? pointer : (void *)(uintptr_t)(unsigned)number;
    struct place place = {ask_int("PMPI_Group_rank", mpi, group),
                          ask_int("PMPI_Group_size", mpi, group)};
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
    int code = ((int (*)(int *, char ***))real_or_end("MPI_Init"))(argc, argv);
    entered(code, NULL);
    return code;
}

EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int code = ((int (*)(int *, char ***, int, int *))real_or_end("MPI_Init_thread"))(
        argc, argv, required, provided);
    entered(code, NULL);
    return code;
}

/* info and errhandler are ints or pointers: both pass through a register whole. */
EXPORT int MPI_Session_init(void *info, void *errhandler, void *session)
{
    int code = ((int (*)(void *, void *, void *))real_or_end("MPI_Session_init"))(
        info, errhandler, session);
    entered(code, session);
    return code;
}

/* Fortran enters by symbols of its own, mangled as its compiler pleases; some libraries go on
 * to PMPI_Init, which is not seen above. The error code is optional in mpi_f08. */
#define FORTRAN_INIT(name)                                              \
    EXPORT void name(int *code);                                        \
    EXPORT void name(int *code)                                         \
    {                                                                   \
        ((void (*)(int *))real_or_end(#name))(code);                    \
        entered(code ? *code : 0, NULL);                                \
    }

#define FORTRAN_INIT_THREAD(name)                                            \
    EXPORT void name(int *required, int *provided, int *code);               \
    EXPORT void name(int *required, int *provided, int *code)                \
    {                                                                        \
        ((void (*)(int *, int *, int *))real_or_end(#name))(required, provided, code); \
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
