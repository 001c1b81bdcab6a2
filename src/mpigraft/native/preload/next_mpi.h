/* The MPI behind what is preloaded: where the functions are that a program meant to call. */
#ifndef MPIGRAFT_PRELOAD_NEXT_MPI_H
#define MPIGRAFT_PRELOAD_NEXT_MPI_H

#include <stdbool.h>

/* MPI that a program takes from a library's handle: Python's ctypes, Julia's ccall, plug-ins.
 *
 * What is preloaded comes before libmpi for names that the loader binds; dlsym(handle, name)
 * goes past it. So dlsym itself is taken, and of a handle's entry into MPI gives one of the
 * functions below, which calls the one that the handle has. All else is handed on by a jump and
 * not by a call: glibc's dlsym tells who calls it by its return address, and RTLD_NEXT means
 * what comes after that caller. Handles of other values than the program's own (RTLD_DEFAULT,
 * RTLD_NEXT) are left alone: the first finds the preloaded entries anyhow, the second belongs to
 * another library that is preloaded. A name that is preloaded, and that the program's MPI lacks, is
 * absent: a program that asks first, as mpi4py, does without it.
 *
 * Not seen: a library that was opened with RTLD_DEEPBIND and has its own libc before this one.
 */

/* A sanitizer's own start looks symbols up, before instrumented code may run. */
#define PLAIN __attribute__((no_sanitize("address"), no_sanitize("undefined")))

typedef void *lookup(void *, const char *);

__attribute__((visibility("hidden"), used)) void *mpigraft_taken(void *handle, const char *name);

/* What mpigraft_taken gives where dlsym is to give NULL. */
#define ABSENT ((void *)-1)

lookup *next_dlsym(void);

typedef void (*function)(void); /* of a type that the caller knows */

/* The library whose handle the program took its entry from; it stays loaded. */
extern void *_Atomic origin;

void *real_address(const char *name);
function real(const char *name);
bool is_absent(const char *name, const void *found);
void *open_mpi_object(const char *name);

#endif
