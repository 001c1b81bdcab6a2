/* The MPI behind what is preloaded: where the functions are that a program meant to call. */
#ifndef MPIGRAFT_PRELOAD_NEXT_MPI_H
#define MPIGRAFT_PRELOAD_NEXT_MPI_H

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "dlopened_mpi.h"

typedef void (*function)(void); /* of a type that the caller knows */

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
        search->found = next_dlsym()(library, search->name);
        dlclose(library);
    }
    return search->found != NULL;
}

/* The library whose handle the program took its entry from; it stays loaded. */
static void *_Atomic origin;

static void *real_address(const char *name)
{
    void *library = atomic_load(&origin);
    struct search search = {name, library ? next_dlsym()(library, name) : NULL};
    if (!search.found)
        search.found = next_dlsym()(RTLD_NEXT, name);
    if (!search.found)
        dl_iterate_phdr(look_into, &search);
    return search.found;
}

static function real(const char *name)
{
    void *address = real_address(name);
    function result;
    memcpy(&result, &address, sizeof result);
    return result;
}

/* Whether `found`, which dlsym has under this name, is of a library that is preloaded, and no MPI
 * has it. The last look-up fails, so that dlerror says why. */
PLAIN static inline bool is_absent(const char *name, const void *found)
{
    Dl_info where;
    const char *base = found && dladdr(found, &where) && where.dli_fname
                           ? strrchr(where.dli_fname, '/') : NULL;
    if (!base || strncmp(base, "/libmpigraft", 12) || real_address(name))
        return false;
    return !next_dlsym()(RTLD_NEXT, name);
}

/* An object of Open MPI's, such as the world's communicator; NULL: it is another MPI. */
static inline void *open_mpi_object(const char *name)
{
    void *library = atomic_load(&origin);
    struct search search = {name, next_dlsym()(library ? library : RTLD_DEFAULT, name)};
    if (!search.found && !library)
        dl_iterate_phdr(look_into, &search);
    return search.found;
}

#endif
