/* The values that one benchmark at one size works with. */
#ifndef MPIGRAFT_RUN_H
#define MPIGRAFT_RUN_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "options.h"

/* One message in a buffer: what it is, and where its bytes are. */
struct slot {
    size_t offset; /* in the application's buffer */
    size_t wire;   /* in what MPI is given */
    size_t bytes;  /* of payload */
    unsigned key;  /* names the sender and the receiver: no two messages look alike */
};

/* A buffer of messages. */
struct area {
    int slots, room; /* that are taken, and that were planned */
    struct slot *slot;
    size_t bytes;      /* of `data`, gaps of a datatype and the guard at the end included */
    size_t wire_bytes; /* of `wire` */
    char *data;        /* what the application reads and writes */
    char *wire;        /* what MPI is given: `data`, or packed by hand from it */
    char *host;        /* where content is made and looked at: `data`, unless that is on a GPU */
    void *owned[3];    /* to release, not counting memory of a window */
};

/* Where the messages of an area lie, by rank, as collectives with counts and displacements take
 * it: in units of the datatype. */
struct distribution {
    int *counts, *places;
    MPI_Count *large_counts;
    MPI_Aint *large_places;
    MPI_Datatype *types; /* the same for each: alltoallw takes them */
};

/* How a message of `bytes` is described to MPI. */
struct message {
    enum datatype datatype;
    size_t bytes, extent; /* payload; distance from one message to the next */
    MPI_Datatype type;
    MPI_Count count;
};

enum ranks {
    PAIR,     /* the first rank, and the first of the second half, counted host by host */
    PAIRS,    /* rank i and rank i + n/2, so counted */
    HOSTS,    /* the first rank of each host, every two of them */
    EVERYONE, /* a collective call */
    STARTUP,  /* what the start cost: one number per rank, no messages */
};

enum metric {
    LATENCY, BANDWIDTH, BANDWIDTH_AND_RATE, INIT_TIME, LAUNCH_TIME, MEMORY,
    OVERLAP, /* of a call with computation beside it */
};

enum {
    SIZELESS = 1,         /* no message: one result, at size 0 */
    HALVES = 2,           /* an iteration is a round trip: the time of one way is half of it */
    WINDOWED = 4,         /* an iteration is a window of messages */
    BOTH_WAYS = 8,        /* and as many in return */
    REDUCES = 16,         /* content is numbers to be summed, not bytes to be moved */
    ROTATES = 32,         /* a root receives: rank r is root of iterations r, r + n, ... */
    ROTATES_IN_PLACE = 64, /* a root sends from the buffer in which the others receive */
    COUNTED = 128,        /* obeys --counts */
    PUTS = 256,           /* one-sided, the follower exposes what it receives */
    GETS = 512,           /* one-sided, the follower exposes what it sends */
    OVERLAPS = 1 << 10,   /* is started and waited for; measured with computation between, too */
    PERSISTENT = 1 << 11, /* is made ready once, then started again and again */
    ACCUMULATES = 1 << 12, /* one-sided: what is sent is added to what the follower exposes */
    FETCHES = 1 << 13,    /* and its content before that comes back */
    SWAPS = 1 << 14,      /* one-sided: the follower's number is exchanged where it is as expected */
    ONE_NUMBER = 1 << 15, /* of 64 bits: one size */
    NEIGHBORS = 1 << 16,  /* on a communicator with a topology */
    THREADED = 1 << 17,   /* several threads of a rank call MPI at the same time */
    PARTITIONED = 1 << 18, /* a message leaves in partitions */
    BYTE_PLACES = 1 << 19, /* displacements in bytes, for any datatype */
    /* What is sent may be where the result arrives (--in-place yes): */
    IN_PLACE_SUM = 1 << 20,   /* of every rank, in the whole of the buffer */
    IN_PLACE_OWN = 1 << 21,   /* of every rank, in its own part */
    IN_PLACE_SWAP = 1 << 22,  /* all parts, which are exchanged */
    IN_PLACE_ROOT = 1 << 23,  /* the root's own part, which stays in the buffer that is sent */
    IN_PLACE = IN_PLACE_SUM | IN_PLACE_OWN | IN_PLACE_SWAP | IN_PLACE_ROOT,
};

/* Calls that take a count, with a variant for large counts. */
enum call {
    NO_CALL, SEND, RECV, ISEND, IRECV, BCAST, ALLREDUCE, REDUCE, GATHER, GATHERV, SCATTER,
    SCATTERV, ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, PUT, GET,
    INTS_ALONE, /* no function at all: the benchmark has counts of ints only */
};
enum { MOST_CALLS = 2 }; /* in one benchmark */

/* Functions that MPI-4 added: this MPI may lack them. */
enum added {
    IN_EVERY_MPI, BARRIER_INIT, BCAST_INIT, ALLREDUCE_INIT, REDUCE_INIT, REDUCE_SCATTER_INIT,
    REDUCE_SCATTER_BLOCK_INIT, GATHER_INIT, GATHERV_INIT, SCATTER_INIT, SCATTERV_INIT,
    ALLGATHER_INIT, ALLGATHERV_INIT, ALLTOALL_INIT, ALLTOALLV_INIT, ALLTOALLW_INIT, PSEND_INIT,
    PRECV_INIT, PREADY, ADDED_CALLS,
};

enum { TAG = 1, ACKNOWLEDGE = 2 };

enum {
    MOST_ROOTS = 16,     /* of a persistent collective: each has a request of its own */
    NUMBERS_SWAPPED = 2, /* each expects the other */
    MOST_NEIGHBORS = 32, /* of a rank: one for each bit of its number */
};

struct run;
typedef void setup_of_messages(struct run *);

/* A benchmark is a row of a table. Loop, content, validation and output are shared. */
struct benchmark {
    const char *name, *title; /* ours, and the one of the OSU benchmark of the same kind */
    enum ranks ranks;
    enum metric metric;
    unsigned traits;
    setup_of_messages *setup;              /* which messages leave and arrive here */
    void (*iterate)(struct run *, long i); /* iteration `i` of a batch */
    enum call calls[MOST_CALLS];           /* by which messages travel */
    void (*open)(struct run *);            /* once buffers are there: requests, communicators */
    enum added added;                      /* the function that MPI has to have */
};

extern const struct benchmark BENCHMARKS[];
extern const int BENCHMARK_COUNT;

struct run {
    const struct options *options;
    const struct benchmark *benchmark;
    const char *label; /* name and options of the benchmark, as results have it */
    MPI_Comm comm; /* of the ranks that take part */
    int rank, size, peer;
    bool leads; /* first of its pair */
    struct message message;
    struct area send, recv;
    int window;
    bool large; /* a count or a displacement is beyond MPI's ints */
    MPI_Request *requests; /* 2 x window, and MOST_ROOTS or more */
    int persistent;        /* these are made ready once for all */
    MPI_Win win;
    MPI_Group other;       /* the peer, for post and start */
    MPI_Comm neighbors;    /* with a topology */
    long work;             /* steps of computation while a call is under way */
    int partitions;        /* of a message */
    long accumulated;      /* times that what is sent was added where this rank looks */
    struct distribution outgoing, incoming;
    unsigned round; /* changes the content, so that old data is never taken for new */
    bool valid;
};

/* Whether it is timed and averaged as the OSU benchmark of its kind is. */
static inline bool like_osu(const struct run *run)
{
    return run->options->like == LIKE_OSU && run->benchmark->title;
}

static inline bool has(const struct run *run, unsigned trait)
{
    return (run->benchmark->traits & trait) != 0;
}

/* Ranks that are roots in turn: of persistent ones no more than have a request. */
static inline int roots_of(const struct run *run)
{
    int most = has(run, PERSISTENT) && run->size > MOST_ROOTS ? MOST_ROOTS : run->size;
    return like_osu(run) ? 1 : most;
}

static inline bool in_place(const struct run *run)
{
    return run->options->in_place == IN_PLACE_YES && has(run, IN_PLACE);
}

static inline char *sent(const struct run *run, int slot)
{
    return run->send.wire + run->send.slot[slot].wire;
}

static inline char *received(const struct run *run, int slot)
{
    return run->recv.wire + run->recv.slot[slot].wire;
}

#endif
