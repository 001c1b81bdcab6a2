/* --probe: known traffic of each kind between known peers, and what the wires saw of it.
 *
 * A library that was told to use shared memory and sends a hundred megabytes through a network
 * interface is caught here, whatever it says of itself. Errors are returned, not fatal: a phase
 * that fails says so and the next one is tried.
 */
#ifndef MPIGRAFT_PROBE_H
#define MPIGRAFT_PROBE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "json.h"
#include "measure.h"
#include "memory.h"
#include "wires.h"

enum { NOBODY = -1 };

/* ---- who talks to whom ---- */

struct probe {
    MPI_Comm leaders; /* one rank of each node */
    int rank, size, nodes;
    int neighbour; /* on this node, or NOBODY */
    int stranger;  /* on another node, or NOBODY */
    int phases;
    const struct memory *memory;
    char *buffer;  /* 2 x LARGE, or 2 x size x MEDIUM for the collective */
    char *exposed; /* of a window over memory of a GPU, else NULL */
    MPI_Win win;
};

enum { SMALL = 8, MEDIUM = 1 << 16, LARGE = 1 << 20 };

struct seat {
    int node, place; /* number of the node, rank on it */
};

static int rank_at(const struct seat *seats, int size, struct seat wanted)
{
    for (int rank = 0; rank < size; rank++)
        if (seats[rank].node == wanted.node && seats[rank].place == wanted.place)
            return rank;
    return NOBODY;
}

/* Partners: places 2k and 2k + 1 of a node, and the same place on nodes 2k and 2k + 1. */
static struct probe seat_ranks(MPI_Comm node, const struct memory *memory)
{
    struct probe probe = {.nodes = 0};
    struct seat mine;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &probe.rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &probe.size));
    OK(MPI_Comm_rank(node, &mine.place));
    OK(MPI_Comm_split(MPI_COMM_WORLD, mine.place ? MPI_UNDEFINED : 0, probe.rank, &probe.leaders));
    if (probe.leaders != MPI_COMM_NULL) {
        OK(MPI_Comm_rank(probe.leaders, &mine.node));
        OK(MPI_Comm_size(probe.leaders, &probe.nodes));
    }
    OK(MPI_Bcast(&mine.node, 1, MPI_INT, 0, node));
    OK(MPI_Bcast(&probe.nodes, 1, MPI_INT, 0, node));
    struct seat *seats = need((size_t)probe.size, sizeof *seats);
    OK(MPI_Allgather(&mine, 2, MPI_INT, seats, 2, MPI_INT, MPI_COMM_WORLD));
    probe.neighbour = rank_at(seats, probe.size, (struct seat){mine.node, mine.place ^ 1});
    probe.stranger = rank_at(seats, probe.size, (struct seat){mine.node ^ 1, mine.place});
    free(seats);
    size_t blocks = (size_t)probe.size * MEDIUM;
    probe.memory = memory;
    probe.buffer = memory->allocate(2 * (blocks > LARGE ? blocks : LARGE));
    return probe;
}

/* ---- traffic; each returns an MPI error code and never ends the program ---- */

#define TRY(call)                                                       \
    do {                                                                \
        int code_ = (call);                                             \
        if (code_ != MPI_SUCCESS)                                       \
            return code_;                                               \
    } while (0)

static int talk(struct probe *probe, int partner, int bytes, int times)
{
    for (int i = 0; i < times && partner != NOBODY; i++)
        TRY(MPI_Sendrecv(probe->buffer, bytes, MPI_CHAR, partner, 0, probe->buffer + LARGE, bytes,
                         MPI_CHAR, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return MPI_SUCCESS;
}

static int expose_memory(struct probe *probe)
{
    char *base;
    if (probe->memory->upload) { /* MPI allocates no memory of GPUs */
        probe->exposed = probe->memory->allocate(2 * LARGE);
        TRY(MPI_Win_create(probe->exposed, 2 * LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                           &probe->win));
    } else {
        TRY(MPI_Win_allocate(2 * LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &probe->win));
    }
    return MPI_Win_set_errhandler(probe->win, MPI_ERRORS_RETURN);
}

static int access_window(struct probe *probe, int partner, int bytes, int times)
{
    MPI_Win win = probe->win;
    TRY(MPI_Win_lock_all(0, win));
    for (int i = 0; i < times && partner != NOBODY; i++) {
        if (i % 2)
            TRY(MPI_Get(probe->buffer, bytes, MPI_CHAR, partner, 0, bytes, MPI_CHAR, win));
        else
            TRY(MPI_Put(probe->buffer, bytes, MPI_CHAR, partner, LARGE, bytes, MPI_CHAR, win));
        TRY(MPI_Win_flush(partner, win));
    }
    return MPI_Win_unlock_all(win);
}

static int withdraw_memory(struct probe *probe)
{
    TRY(MPI_Win_free(&probe->win));
    if (probe->exposed)
        probe->memory->release(probe->exposed);
    return MPI_SUCCESS;
}

static int exchange(struct probe *probe, int partner, int bytes, int times)
{
    (void)partner;
    char *arriving = probe->buffer + (size_t)probe->size * MEDIUM;
    for (int i = 0; i < times; i++)
        TRY(MPI_Alltoall(probe->buffer, bytes, MPI_CHAR, arriving, bytes, MPI_CHAR,
                         MPI_COMM_WORLD));
    return MPI_SUCCESS;
}

static int add_up(struct probe *probe, int partner, int bytes, int times)
{
    (void)partner;
    char *sums = probe->buffer + (size_t)probe->size * MEDIUM;
    for (int i = 0; i < times; i++)
        TRY(MPI_Allreduce(probe->buffer, sums, bytes, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD));
    return MPI_SUCCESS;
}

static int tell_all(struct probe *probe, int partner, int bytes, int times)
{
    (void)partner;
    for (int i = 0; i < times; i++)
        TRY(MPI_Bcast(probe->buffer, bytes, MPI_CHAR, i % probe->size, MPI_COMM_WORLD));
    return MPI_SUCCESS;
}

/* ---- phases ---- */

/* Short and long messages, and each kind of collective, may go by lanes of their own: Intel MPI
 * told to use TCP adds up 8 bytes in shared memory. So each is counted by itself. */
struct part {
    const char *what;
    int (*traffic)(struct probe *, int partner, int bytes, int times);
    int bytes, times;
};

enum { MOST_PARTS = 5 };

struct kind {
    const char *name;
    int (*open)(struct probe *), (*close)(struct probe *); /* or NULL */
    struct part parts[MOST_PARTS]; /* ends with one without traffic, or full */
};

static const struct kind P2P = {
    "p2p",
    NULL,
    NULL,
    {{"8 B", talk, SMALL, 1000}, {"64 KiB", talk, MEDIUM, 64}, {"1 MiB", talk, LARGE, 16}},
};
static const struct kind ONE_SIDED = {
    "one-sided",
    expose_memory,
    withdraw_memory,
    {{"8 B", access_window, SMALL, 1000},
     {"64 KiB", access_window, MEDIUM, 64},
     {"1 MiB", access_window, LARGE, 16}},
};
static const struct kind COLLECTIVE = {
    "collective",
    NULL,
    NULL,
    {{"alltoall 8 B", exchange, SMALL, 500},
     {"alltoall 64 KiB", exchange, MEDIUM, 16},
     {"allreduce 8 B", add_up, SMALL, 500},
     {"allreduce 64 KiB", add_up, MEDIUM, 16},
     {"bcast 8 B", tell_all, SMALL, 1000}},
};

/* Bytes that all ranks together cannot but send in a part. */
static long long payload(const struct probe *probe, const struct part *part, int partner)
{
    long long each = (long long)part->bytes * part->times, mine = partner == NOBODY ? 0 : each;
    if (part->traffic == exchange)
        mine = each * (probe->size - 1);
    else if (part->traffic == add_up)
        mine = probe->size > 1 ? each : 0;
    else if (part->traffic == tell_all)
        mine = probe->rank == 0 ? each * (probe->size - 1) : 0;
    long long all = 0;
    OK(MPI_Allreduce(&mine, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD));
    return all;
}

/* The wires of all nodes added up by name, on rank 0; `own` matters on leaders only. */
static struct wires of_all_nodes(const struct probe *probe, const struct wires *own)
{
    struct wires total = {0};
    if (probe->leaders == MPI_COMM_NULL)
        return total;
    struct wires *all = need((size_t)probe->nodes, sizeof *all);
    OK(MPI_Gather(own, sizeof *own, MPI_BYTE, all, sizeof *own, MPI_BYTE, 0, probe->leaders));
    for (int node = 0; node < probe->nodes && probe->rank == 0; node++)
        for (int i = 0; i < all[node].count; i++) {
            int k = 0;
            while (k < total.count && strcmp(total.wire[k].name, all[node].wire[i].name))
                k++;
            if (k == total.count)
                add_wire(&total, all[node].wire[i].name, 0);
            if (k < total.count)
                total.wire[k].sent += all[node].wire[i].sent;
        }
    free(all);
    return total;
}

struct counted {
    const char *what;
    long long bytes;
    double seconds; /* while its wires were counted, on rank 0 */
    struct wires wires;
};

/* All parts of a phase as one: every part reads the same wires in the same order. */
static struct counted added_up(const struct counted *parts, int count)
{
    struct counted total = {.bytes = 0};
    for (int i = 0; i < count; i++) {
        total.bytes += parts[i].bytes;
        for (int k = 0; k < parts[i].wires.count; k++)
            if (k < total.wires.count)
                total.wires.wire[k].sent += parts[i].wires.wire[k].sent;
            else
                add_wire(&total.wires, parts[i].wires.wire[k].name, parts[i].wires.wire[k].sent);
    }
    return total;
}

static void print_phase(const char *kind, const char *peer, const struct counted *parts, int count,
                        const char *error)
{
    struct counted total = added_up(parts, count);
    printf("{\"mpigraft\":\"phase\",\"kind\":\"%s\",\"peer\":\"%s\",\"bytes\":%lld,", kind, peer,
           total.bytes);
    print_wires(&total.wires);
    fputs(",\"parts\":[", stdout);
    for (int i = 0; i < count; i++) {
        printf("%s{\"what\":\"%s\",\"bytes\":%lld,\"seconds\":%.6f,", i ? "," : "", parts[i].what,
               parts[i].bytes, parts[i].seconds);
        print_wires(&parts[i].wires);
        putchar('}');
    }
    printf("],\"ok\":%s", *error ? "false,\"error\":" : "true");
    if (*error)
        json_string(stdout, error);
    puts("}");
    fflush(stdout);
}

/* Whether any rank got an error; its text is then everybody's. */
static bool failed_anywhere(const struct probe *probe, int code, char *error)
{
    int length, failed = code != MPI_SUCCESS ? probe->rank : probe->size, first;
    if (code != MPI_SUCCESS)
        MPI_Error_string(code, error, &length);
    OK(MPI_Allreduce(&failed, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    if (first < probe->size)
        OK(MPI_Bcast(error, MPI_MAX_ERROR_STRING, MPI_CHAR, first, MPI_COMM_WORLD));
    return first < probe->size;
}

static int run_part(struct probe *probe, const struct part *part, int partner,
                    struct counted *counted)
{
    struct wires before, own;
    double start = now();
    read_wires(&before);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    int code = part->traffic(probe, partner, part->bytes, part->times);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    counted->what = part->what;
    own = wires_since(&before);
    counted->seconds = now() - start;
    counted->wires = of_all_nodes(probe, &own);
    return code;
}

/* ---- what is on the wires anyway ---- */

#define SETTLE_S 0.05 /* for ranks that leave a barrier late, and output on its way to rank 0 */
#define IDLE_S 0.1

static void rest(double seconds)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * seconds)}, NULL);
}

/* Other programs' bytes, counted while every rank sleeps: one that waited in MPI would send. */
static struct counted count_idle(const struct probe *probe)
{
    struct counted idle = {.what = "idle"};
    struct wires before;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    rest(SETTLE_S);
    double start = now();
    read_wires(&before);
    rest(IDLE_S);
    struct wires own = wires_since(&before);
    idle.seconds = now() - start;
    rest(SETTLE_S);
    idle.wires = of_all_nodes(probe, &own);
    return idle;
}

/* The busier of two windows. */
static void print_idle(const struct counted *one, const struct counted *other)
{
    double first = (double)all_sent(&one->wires) / one->seconds;
    double last = (double)all_sent(&other->wires) / other->seconds;
    const struct counted *idle = first > last ? one : other;
    printf("{\"mpigraft\":\"idle\",\"seconds\":%.6f,", idle->seconds);
    print_wires(&idle->wires);
    puts("}");
    fflush(stdout);
}

static void run_phase(struct probe *probe, const struct kind *kind, const char *peer, int partner)
{
    struct counted *counted = need(MOST_PARTS, sizeof *counted);
    char error[MPI_MAX_ERROR_STRING] = "";
    int count = 0;
    if (!payload(probe, &kind->parts[0], partner)) {
        free(counted);
        return; /* no such peers in this world */
    }
    bool failed = failed_anywhere(probe, kind->open ? kind->open(probe) : MPI_SUCCESS, error);
    while (!failed && count < MOST_PARTS && kind->parts[count].traffic) {
        counted[count].bytes = payload(probe, &kind->parts[count], partner);
        int code = run_part(probe, &kind->parts[count], partner, &counted[count]);
        failed = failed_anywhere(probe, code, error);
        count++;
    }
    if (!failed && kind->close) /* after an error a window is left: freeing it could wait for ever */
        failed_anywhere(probe, kind->close(probe), error);
    if (probe->rank == 0)
        print_phase(kind->name, peer, counted, count, error);
    probe->phases++;
    free(counted);
}

/* All phases that this world has peers for, in buffers of the kind that will be measured: GPU
 * memory may take other lanes. Returns their number. */
static int run_probe(MPI_Comm node, int buffers)
{
    struct probe probe = seat_ranks(node, &MEMORIES[buffers]);
    const struct kind *pairwise[] = {&P2P, &ONE_SIDED};
    struct counted before = count_idle(&probe);
    for (int i = 0; i < 2; i++) {
        run_phase(&probe, pairwise[i], "on-node", probe.neighbour);
        run_phase(&probe, pairwise[i], "off-node", probe.stranger);
    }
    run_phase(&probe, &COLLECTIVE, probe.nodes > 1 ? "off-node" : "on-node", NOBODY);
    struct counted after = count_idle(&probe);
    if (probe.rank == 0)
        print_idle(&before, &after);
    probe.memory->release(probe.buffer);
    if (probe.leaders != MPI_COMM_NULL)
        OK(MPI_Comm_free(&probe.leaders));
    return probe.phases;
}

#endif
