/* What a Fortran library queries for itself. To know how long an array of its caller is, it calls
 * three routines by the same names as a program would: Open MPI's mpi_alltoallw_ and
 * mpi_cart_coords_ call PMPI_Comm_size and PMPI_Cartdim_get, MPICH's the MPI_ names. Who calls
 * tells them apart: the function for MPI_COMM_SIZE itself passes its caller's query on. */
#ifndef MPIGRAFT_TRACE_BINDINGS_H
#define MPIGRAFT_TRACE_BINDINGS_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

enum { CALLERS = 256 }; /* a power of two */

/* Return addresses whose answer is known, shifted by one, and the answer in the bit that is free.
 * Each is of one routine. Any thread may write the same again. */
static uint64_t known_callers[CALLERS];

static bool is_fortran_library(const char *path)
{
    static const char *const names[] = {"libmpi_mpifh", "libmpi_usempi", "libmpifort", "libmpichf"};
    const char *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(base, names[i], strlen(names[i])))
            return true;
    return false;
}

/* Whether the code at `address` is of a Fortran library, and of another routine than `name`. */
__attribute__((noinline, cold)) static bool find_own_query(const void *address, const char *name)
{
    Dl_info info;
    return dladdr(address, &info) && info.dli_fname && is_fortran_library(info.dli_fname) &&
           info.dli_sname && !strcasestr(info.dli_sname, name);
}

static bool is_own_query(const void *address, const char *name)
{
    uint64_t key = (uint64_t)(uintptr_t)address << 1; /* addresses end below 2^57 */
    uint64_t *slot = &known_callers[((key >> 3) ^ (key >> 12)) % CALLERS];
    uint64_t seen = __atomic_load_n(slot, __ATOMIC_RELAXED);
    if (seen >> 1 == key >> 1)
        return seen & 1;
    bool own = find_own_query(address, name);
    __atomic_store_n(slot, key | own, __ATOMIC_RELAXED);
    return own;
}

/* Known when it is compiled: other routines pay nothing. */
#define IS_QUERY(routine) \
    ((routine) == R_Comm_size || (routine) == R_Cartdim_get || (routine) == R_Topo_test)
#define OWN_QUERY(routine, name) \
    (IS_QUERY(routine) && is_own_query(__builtin_return_address(0), name))

#endif
