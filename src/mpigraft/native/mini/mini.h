/* What mini-apps share: ranks, the clock of their parts, input from a seed, memory of messages. */
#ifndef MPIGRAFT_MINI_H
#define MPIGRAFT_MINI_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "../common/check.h"
#include "../common/clock.h"
#include "../common/limits.h"
#include "../common/memory.h"
#include "options.h"

enum { MOST_PARTS = 8, HALO_TAG = 17 };

struct mini;

/* A mini-app is a row of a table. The loop, samples and output are shared. */
struct app {
    const char *name;
    const char *const *parts;             /* of an iteration's time; NULL ends them */
    const char *const *options;           /* that belong to it; NULL ends them */
    void *(*open)(struct mini *);         /* make the problem; DIE where it cannot be */
    long (*run)(struct mini *, void *);   /* one sample: returns its iterations */
    bool (*check)(struct mini *, void *); /* collective: whether its result is right */
    void (*close)(void *);
    bool forms;                           /* has --halo */
};

struct mini {
    const struct mini_options *options;
    const struct app *app;
    MPI_Comm comm;
    int rank, size;
    double part[MOST_PARTS]; /* seconds of this sample, on this rank */
    double mark;             /* when the last part ended */
    char label[320];         /* dirac,halo=packed: what its results are named by */
    const char *method;      /* how the problem was divided, for the name; NULL: nothing to say */
};

/* The time since the last part ended was spent in this one. */
static inline void lap(struct mini *mini, int part)
{
    double time = now();
    mini->part[part] += time - mini->mark;
    mini->mark = time;
}

/* ---- numbers ---- */

/* A number of 64 bits that looks random (splitmix64 by S. Vigna, public domain). */
static inline uint64_t scrambled(uint64_t x)
{
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

/* From -1 to 1; the same for the same key, whichever rank draws it. */
static inline double drawn(uint64_t key)
{
    return (double)(scrambled(key) >> 11) * 0x1p-52 - 1;
}

static inline uint64_t key_of(const struct mini *mini, uint64_t what, uint64_t which)
{
    return scrambled((uint64_t)mini->options->seed * 0x10001 + what) ^ (which << 8);
}

/* By Newton's method: our programs are linked without libm. */
static inline double square_root(double x)
{
    if (!(x > 0))
        return 0;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits >> 1) + UINT64_C(0x1FF7A3BEA91D9B1B); /* half of the exponent */
    double root;
    memcpy(&root, &bits, sizeof root);
    for (int i = 0; i < 6; i++)
        root = 0.5 * (root + x / root);
    return root;
}

static inline double distance(double a, double b)
{
    return a > b ? a - b : b - a;
}

/* ---- memory ---- */

/* End with words where the ranks of a node need more memory than it has. `bytes` of this rank. */
static void require_memory(const struct mini *mini, double bytes)
{
    MPI_Comm host;
    OK(MPI_Comm_split_type(mini->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    double all = 0, room = memory_for_buffers();
    OK(MPI_Allreduce(&bytes, &all, 1, MPI_DOUBLE, MPI_SUM, host));
    OK(MPI_Comm_free(&host));
    if (all > room)
        DIE("this problem needs %.3g MiB on a node, and %.3g MiB are free; use a smaller --size "
            "or --local", all / 0x1p20, room / 0x1p20);
}

#ifndef SPOILED
#define SPOILED 0 /* 1 in a build of the tests */
#endif

/* Values that messages are sent from or arrive in. On a GPU `mpi` is what MPI is given, and `host`
 * what the program computes with. */
struct wire {
    const struct memory *memory;
    double *host, *mpi;
    size_t count;
    bool spoiled; /* what arrives is wrong, and a check must see it */
};

static struct wire make_wire(const struct mini *mini, size_t count)
{
    struct wire wire = {.memory = &MEMORIES[mini->options->buffers], .count = count,
                        .spoiled = SPOILED && mini->comm == MPI_COMM_WORLD};
    wire.host = host_allocate(count * sizeof(double));
    wire.mpi = wire.memory->upload ? wire.memory->allocate(count * sizeof(double)) : wire.host;
    return wire;
}

static void free_wire(struct wire *wire)
{
    if (wire->mpi != wire->host)
        wire->memory->release(wire->mpi);
    free(wire->host);
}

/* Values from `first` on are about to be sent. */
static inline void send_from(const struct wire *wire, size_t first, size_t count)
{
    if (wire->mpi != wire->host && count)
        wire->memory->upload(wire->mpi + first, wire->host + first, count * sizeof(double));
}

/* Values from `first` on have arrived. */
static inline void arrived_at(const struct wire *wire, size_t first, size_t count)
{
    if (wire->mpi != wire->host && count)
        wire->memory->download(wire->host + first, wire->mpi + first, count * sizeof(double));
    if (wire->spoiled && count)
        wire->host[first + count / 2] += 0.001;
}

/* ---- ranks ---- */

/* Ranks that wait for one that computes alone leave their CPU to it. */
static void wait_idle(MPI_Comm comm)
{
    MPI_Request request;
    OK(MPI_Ibarrier(comm, &request));
    for (int done = 0; !done;) {
        OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        if (!done)
            nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
}

static bool all_agree(const struct mini *mini, bool right)
{
    int every = right;
    OK(MPI_Allreduce(MPI_IN_PLACE, &every, 1, MPI_INT, MPI_LAND, mini->comm));
    return every;
}

/* Say on stderr what is wrong, once for each rank. Returns false. */
static bool wrong(const struct mini *mini, const char *what, double got, double expected)
{
    fprintf(stderr, PROGRAM ": rank %d: wrong result: %s: %s: %.17g, not %.17g\n", mini->rank,
            mini->app->name, what, got, expected);
    return false;
}

#endif
