/* Functions that a program takes from a library's handle (dlopened_mpi.h). */
#ifndef MPIGRAFT_TRACE_TAKEN_H
#define MPIGRAFT_TRACE_TAKEN_H

#include "start.h"

#define CALL(name, parameters, arguments, before, moves, keep) \
    [F_##name] = __extension__(function)trace_##name,
#define LARGE(name, parameters, arguments, before, moves, keep) \
    [F_##name##_c] = __extension__(function)trace_##name##_c,
static const function wrappers[FUNCTIONS] = {
#include "../calls/calls.h"
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
 * function which nobody takes. What the MPI lacks is absent, though it is among our names. */
PLAIN void *mpigraft_taken(void *handle, const char *name)
{
    lookup *next = next_dlsym();
    bool profiled = name && name[0] == 'P';
    if (!name || strncmp(name + profiled, "MPI_", 4) || handle == RTLD_NEXT)
        return NULL;
    int number = 0;
    while (number < FUNCTIONS && strcmp(name + profiled + 4, names[number]))
        number++;
    if (number == FUNCTIONS)
        return NULL;
    void *address = next(handle, name), *own, *none = NULL;
    if (is_absent(name, address))
        return ABSENT;
    if (handle == RTLD_DEFAULT || profiled)
        return NULL;
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
