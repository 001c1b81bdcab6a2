/* Errors: every MPI call is checked on its own line and names file, line and the call. */
#ifndef MPIGRAFT_CHECK_H
#define MPIGRAFT_CHECK_H

#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifndef PROGRAM
#define PROGRAM "mpigraft-bench"
#endif

enum { EXIT_INVALID = 1, EXIT_USAGE = 2, EXIT_RUNTIME = 3 };

/* The first of a rank's lines that says who speaks; -1 before MPI_Init. */
static int speaker = -1;

#define OK(call) check_mpi((call), #call, __FILE__, __LINE__)
#define DIE(...) die(__FILE__, __LINE__, __VA_ARGS__)

__attribute__((noreturn, format(printf, 3, 4))) static void die(const char *file, int line,
                                                                const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, PROGRAM ": rank %d: %s (%s:%d)\n", speaker, text, file, line);
    fflush(NULL);
    if (speaker >= 0) {
        /* MPICH's launcher drops what it has not read of a rank when another one aborts. */
        nanosleep(&(struct timespec){0, 200 * 1000 * 1000}, NULL);
        MPI_Abort(MPI_COMM_WORLD, EXIT_RUNTIME);
    }
    exit(EXIT_RUNTIME);
}

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
