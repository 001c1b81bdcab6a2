/* The MPI behind what is preloaded, asked without its header: handles of three ABIs. */
#ifndef MPIGRAFT_WITNESS_HANDLES_H
#define MPIGRAFT_WITNESS_HANDLES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../preload/next_mpi.h"

static function real_or_end(const char *name)
{
    function result = real(name);
    if (result)
        return result;
    fprintf(stderr, "mpigraft-witness: the program calls %s, but no MPI library has it\n", name);
    _exit(127);
}

/* A handle is an int in MPICH's ABI and a pointer in Open MPI's and in the standard one. Each
 * is passed as what it is: the two differ in the registers' upper halves. */
enum abi { INTS, POINTERS };

struct mpi {
    enum abi abi;
    void *world, *none; /* communicators: MPI_COMM_WORLD, MPI_COMM_NULL */
    void *no_info;      /* MPI_INFO_NULL */
};

enum {
    MPICH_COMM_WORLD = 0x44000000,
    MPICH_COMM_NULL = 0x04000000,
    MPICH_INFO_NULL = 0x1c000000,
    STANDARD_COMM_WORLD = 0x101,
    STANDARD_COMM_NULL = 0x100,
    STANDARD_INFO_NULL = 0x130,
};

static void *handle_of(unsigned number)
{
    return (void *)(uintptr_t)number;
}

static struct mpi which_mpi(void)
{
    void *world = open_mpi_object("ompi_mpi_comm_world");
    if (world)
        return (struct mpi){POINTERS, world, open_mpi_object("ompi_mpi_comm_null"),
                            open_mpi_object("ompi_mpi_info_null")};
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
        return (struct mpi){POINTERS, handle_of(STANDARD_COMM_WORLD),
                            handle_of(STANDARD_COMM_NULL), handle_of(STANDARD_INFO_NULL)};
    return (struct mpi){INTS, handle_of(MPICH_COMM_WORLD), handle_of(MPICH_COMM_NULL),
                        handle_of(MPICH_INFO_NULL)};
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

/* The value of `key` in an MPI_Info, of at most `length` characters; false: it has none. */
static bool ask_info(struct mpi mpi, void *info, const char *key, char *value, int length)
{
    function ask = real("PMPI_Info_get");
    int there = 0, code = 1;
    if (!ask || (mpi.abi == POINTERS ? info == mpi.no_info
                                     : (int)(uintptr_t)info == (int)(uintptr_t)mpi.no_info))
        return false;
    if (mpi.abi == POINTERS)
        code = ((int (*)(void *, const char *, int, char *, int *))ask)(info, key, length, value,
                                                                        &there);
    else
        code = ((int (*)(int, const char *, int, char *, int *))ask)((int)(uintptr_t)info, key,
                                                                     length, value, &there);
    return !code && there;
}

#endif
