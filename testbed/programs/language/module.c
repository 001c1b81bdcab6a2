/* A module of Python that starts MPI when it is imported, as mpi4py.MPI does. Any Python's headers
 * would tie it to that Python, so the few words that it needs are declared here. */
#include "report.h"
#include <stdlib.h>

struct definition {
    long references;
    void *type, *init;
    long index;
    void *copy;
    const char *name, *text;
    long size;
    void *rest[6];
};
void *PyModule_Create2(struct definition *, int);
__attribute__((visibility("default"))) void *PyInit_world(void);

static void finalize(void) { MPI_Finalize(); }

void *PyInit_world(void)
{
    static struct definition own = {.references = 1, .name = "world", .size = -1};
    MPI_Init(0, 0);
    print_world();
    atexit(finalize);
    return PyModule_Create2(&own, 1013);
}
