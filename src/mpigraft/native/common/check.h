/* Errors: every MPI call is checked on its own line and names file, line and the call. */
#ifndef MPIGRAFT_CHECK_H
#define MPIGRAFT_CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { EXIT_INVALID = 1, EXIT_USAGE = 2, EXIT_RUNTIME = 3 };

#define OK(call) check_mpi((call), #call, __FILE__, __LINE__)
#define DIE(...) die(__FILE__, __LINE__, __VA_ARGS__)

/* The rank in its own lines; -1 before MPI_Init. */
extern int speaker;
extern const char program_name[];

__attribute__((noreturn, format(printf, 3, 4))) void die(const char *file, int line,
                                                         const char *format, ...);

static inline void check_mpi(int code, const char *call, const char *file, int line)
{
    if (__builtin_expect(code == MPI_SUCCESS, 1))
        return;
    char text[MPI_MAX_ERROR_STRING] = "no text for this error";
    int length;
    MPI_Error_string(code, text, &length);
    die(file, line, "%s: %s", call, text);
}

/* Memory or an end: nothing here can go on without it. */
static inline void *need(size_t count, size_t bytes)
{
    void *memory = calloc(count ? count : 1, bytes ? bytes : 1);
    if (!memory)
        DIE("out of memory: %zu x %zu bytes", count, bytes);
    return memory;
}

#endif
