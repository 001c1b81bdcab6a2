/* Where buffers live, and how much memory a node has left for them. */
#ifndef MPIGRAFT_MEMORY_H
#define MPIGRAFT_MEMORY_H

#include "arguments.h"
#include "check.h"

enum buffers { BUFFERS_HOST, BUFFERS_CUDA, BUFFERS_ROCM };

struct memory {
    const char *name;
    void *(*allocate)(size_t bytes);
    void (*release)(void *);
    void (*upload)(void *device, const void *host, size_t bytes); /* returns when it is there */
    void (*download)(void *host, const void *device, size_t bytes);
};

extern const char *const BUFFERS[];
extern const struct memory MEMORIES[];

double memory_for_buffers(void);
void *host_allocate(size_t bytes);
void open_memory(int buffers);
void warn_of_unaware_mpi(int buffers);

#endif
