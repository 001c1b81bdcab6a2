/* What a program of random calls counts of itself. A step of `state` is the same in all ranks. */
#ifndef TALLY_H
#define TALLY_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUTINES = 128, CLASSES = 66, MIXED = 65, MOST = 8, LARGEST = 1 << 15 };

static struct routine {
    const char *name;
    uint64_t calls, bytes, messages[CLASSES], sizes[CLASSES];
} routines[ROUTINES];
static int rank, ranks;
static uint64_t state; /* the same in all ranks */
static unsigned char out[MOST * LARGEST], in[MOST * LARGEST];

static uint64_t next(uint64_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
}

static int size_at_random(void)
{
    return next(4) ? (int)next((uint64_t)1 << next(12)) : 0;
}

static int class_of(uint64_t bytes)
{
    int class = 0;
    for (; bytes; bytes /= 2)
        class++;
    return class;
}

static struct routine *called(const char *name)
{
    struct routine *one = routines;
    while (one->name && strcmp(one->name, name))
        one++;
    one->name = name;
    one->calls++;
    return one;
}

static void moved_as(struct routine *routine, int class, uint64_t bytes)
{
    routine->bytes += bytes;
    routine->messages[class]++;
    routine->sizes[class] += bytes;
}

static void moved(const char *name, uint64_t bytes)
{
    moved_as(called(name), class_of(bytes), bytes);
}

/* A call of which this rank gives `given` of its `count` blocks. */
static void moved_blocks(const char *name, const int *blocks, int count, const int *given, int gives)
{
    struct routine *routine = called(name);
    int low = CLASSES, high = 0;
    for (int i = 0; i < count; i++)
        if (blocks[i]) {
            low = class_of((uint64_t)blocks[i]) < low ? class_of((uint64_t)blocks[i]) : low;
            high = class_of((uint64_t)blocks[i]) > high ? class_of((uint64_t)blocks[i]) : high;
        }
    for (int i = 0; i < gives; i++)
        moved_as(routine, given[i] && high - low > 1 ? MIXED : class_of((uint64_t)given[i]),
                 (uint64_t)given[i]);
}

static void start_count(int *argc, char ***argv)
{
    if (*argc != 4)
        exit(2);
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    called("Comm_rank");
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    called("Comm_size");
    state = strtoull((*argv)[1], NULL, 10);
}

/* The two halves of the world. */
static MPI_Comm connect_halves(int side)
{
    MPI_Comm half, between;
    MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
    called("Comm_split");
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, side ? 0 : (ranks + 1) / 2, 7, &between);
    called("Intercomm_create");
    return between;
}

static void write_counts(const char *path)
{
    char name[4096];
    snprintf(name, sizeof name, "%s.%d", path, rank);
    FILE *file = fopen(name, "w");
    for (struct routine *one = routines; file && one->name; one++) {
        fprintf(file, "%s %llu %llu", one->name, (unsigned long long)one->calls,
                (unsigned long long)one->bytes);
        for (int i = 0; i < CLASSES; i++)
            if (one->messages[i])
                fprintf(file, " %d:%llu:%llu", i, (unsigned long long)one->messages[i],
                        (unsigned long long)one->sizes[i]);
        putc('\n', file);
    }
    if (!file || fclose(file))
        exit(2);
}

#endif
