/* Errors: every MPI call is checked on its own line and names file, line and the call. */
#include <stdarg.h>
#include <time.h>

#include "check.h"

/* The rank in its own lines; -1 before MPI_Init. */
int speaker = -1;

__attribute__((noreturn, format(printf, 3, 4))) void die(const char *file, int line,
                                                                const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s: rank %d: %s (%s:%d)\n", program_name, speaker, text, file, line);
    fflush(NULL);
    if (speaker >= 0) {
        /* MPICH's launcher drops what it has not read of a rank when another one aborts. */
        nanosleep(&(struct timespec){0, 200 * 1000 * 1000}, NULL);
        MPI_Abort(MPI_COMM_WORLD, EXIT_RUNTIME);
    }
    exit(EXIT_RUNTIME);
}
