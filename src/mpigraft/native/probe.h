/* --probe: known traffic of each kind between known peers, and what the wires saw of it.
 *
 * A library that was told to use shared memory and sends a hundred megabytes through a network
 * interface is caught here, whatever it says of itself. Errors are returned, not fatal: a phase
 * that fails says so and the next one is tried.
 */
#ifndef MPIGRAFT_PROBE_H
#define MPIGRAFT_PROBE_H

#include <dirent.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "json.h"

enum { MOST_WIRES = 64, NOBODY = -1 };

struct wire {
    char name[48];
    long long sent; /* bytes */
};

struct wires {
    int count;
    struct wire wire[MOST_WIRES];
};

static void add_wire(struct wires *wires, const char *name, long long sent)
{
    if (wires->count == MOST_WIRES)
        return;
    struct wire *wire = &wires->wire[wires->count++];
    snprintf(wire->name, sizeof wire->name, "%s", name);
    wire->sent = sent;
}

/* Bytes sent by each interface of this process's own network, not of what /sys was mounted for. */
static void read_interfaces(struct wires *wires)
{
    char line[512], name[64];
    long long sent;
    FILE *file = fopen("/proc/self/net/dev", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, " %63[^:]: %*d %*d %*d %*d %*d %*d %*d %*d %lld", name, &sent) == 2)
            add_wire(wires, name, sent);
    if (file)
        fclose(file);
}

/* One counter of the kernel; Slingshot's files read "value@time". */
static bool read_counter(const char *path, long long *value)
{
    FILE *file = fopen(path, "r");
    bool found = file && fscanf(file, "%lld", value) == 1;
    if (file)
        fclose(file);
    return found;
}

/* Networks that bypass the kernel's interfaces, by the files that their drivers keep. */
static const struct {
    const char *folder, *file;
    const char *suffix; /* of the wire's name */
    int unit;           /* bytes that one count stands for */
} BYPASSING[] = {
    {"/sys/class/infiniband", "ports/1/counters/port_xmit_data", ":1", 4},
    {"/sys/class/infiniband", "ports/2/counters/port_xmit_data", ":2", 4},
    {"/sys/class/cxi", "device/telemetry/hni_sts_tx_ok_octets", "", 1},
};

static void read_bypassing(struct wires *wires)
{
    for (size_t i = 0; i < sizeof BYPASSING / sizeof *BYPASSING; i++) {
        DIR *devices = opendir(BYPASSING[i].folder);
        struct dirent *device;
        while (devices && (device = readdir(devices))) {
            char path[512], name[300];
            long long count;
            snprintf(path, sizeof path, "%s/%s/%s", BYPASSING[i].folder, device->d_name,
                     BYPASSING[i].file);
            snprintf(name, sizeof name, "%s%s", device->d_name, BYPASSING[i].suffix);
            if (device->d_name[0] != '.' && read_counter(path, &count))
                add_wire(wires, name, count * BYPASSING[i].unit);
        }
        if (devices)
            closedir(devices);
    }
}

static void read_wires(struct wires *wires)
{
    memset(wires, 0, sizeof *wires);
    read_interfaces(wires);
    read_bypassing(wires);
}

/* ---- who talks to whom ---- */

struct probe {
    MPI_Comm leaders; /* one rank of each node */
    int rank, size, nodes;
    int neighbour; /* on this node, or NOBODY */
    int stranger;  /* on another node, or NOBODY */
    int phases;
    char *buffer;  /* 2 x LARGE, or 2 x size x MEDIUM for the collective */
};

enum { SMALL = 8, MEDIUM = 1 << 16, LARGE = 1 << 20 };

static const struct {
    int bytes, times;
} VOLUMES[] = {{SMALL, 1000}, {MEDIUM, 64}, {LARGE, 16}};

enum { VOLUME_COUNT = sizeof VOLUMES / sizeof *VOLUMES };

static long long volume(void)
{
    long long bytes = 0;
    for (int v = 0; v < VOLUME_COUNT; v++)
        bytes += (long long)VOLUMES[v].bytes * VOLUMES[v].times;
    return bytes;
}

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
static struct probe seat_ranks(MPI_Comm node)
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
    probe.buffer = need(2, blocks > LARGE ? blocks : LARGE);
    return probe;
}

/* ---- traffic; each returns an MPI error code and never ends the program ---- */

#define TRY(call)                                                       \
    do {                                                                \
        int code_ = (call);                                             \
        if (code_ != MPI_SUCCESS)                                       \
            return code_;                                               \
    } while (0)

static int talk(struct probe *probe, int partner)
{
    for (int v = 0; v < VOLUME_COUNT && partner != NOBODY; v++)
        for (int i = 0; i < VOLUMES[v].times; i++)
            TRY(MPI_Sendrecv(probe->buffer, VOLUMES[v].bytes, MPI_CHAR, partner, v,
                             probe->buffer + LARGE, VOLUMES[v].bytes, MPI_CHAR, partner, v,
                             MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return MPI_SUCCESS;
}

static int access_window(struct probe *probe, int partner, MPI_Win win)
{
    TRY(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    TRY(MPI_Win_lock_all(0, win));
    for (int v = 0; v < VOLUME_COUNT && partner != NOBODY; v++)
        for (int i = 0; i < VOLUMES[v].times; i++) {
            int bytes = VOLUMES[v].bytes;
            if (i % 2)
                TRY(MPI_Get(probe->buffer, bytes, MPI_CHAR, partner, 0, bytes, MPI_CHAR, win));
            else
                TRY(MPI_Put(probe->buffer, bytes, MPI_CHAR, partner, LARGE, bytes, MPI_CHAR, win));
            TRY(MPI_Win_flush(partner, win));
        }
    return MPI_Win_unlock_all(win);
}

static int access_memory(struct probe *probe, int partner)
{
    char *base;
    MPI_Win win;
    TRY(MPI_Win_allocate(2 * LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    int code = access_window(probe, partner, win);
    if (code != MPI_SUCCESS)
        return code; /* the window is left: freeing it could wait for ever */
    return MPI_Win_free(&win);
}

enum { EXCHANGES = 16 };

static int exchange(struct probe *probe, int partner)
{
    (void)partner;
    char *arriving = probe->buffer + (size_t)probe->size * MEDIUM;
    for (int i = 0; i < EXCHANGES; i++) {
        TRY(MPI_Alltoall(probe->buffer, SMALL, MPI_CHAR, arriving, SMALL, MPI_CHAR,
                         MPI_COMM_WORLD));
        TRY(MPI_Alltoall(probe->buffer, MEDIUM, MPI_CHAR, arriving, MEDIUM, MPI_CHAR,
                         MPI_COMM_WORLD));
    }
    return MPI_SUCCESS;
}

/* ---- phases ---- */

struct kind {
    const char *name;
    int (*traffic)(struct probe *, int partner);
};

/* What the wires of all nodes sent since `before`, added up by name on rank 0. */
static struct wires sent_since(const struct probe *probe, const struct wires *before)
{
    struct wires total = {0}, after;
    if (probe->leaders == MPI_COMM_NULL)
        return total;
    read_wires(&after);
    for (int i = 0; i < after.count; i++)
        for (int k = 0; k < before->count; k++)
            if (!strcmp(after.wire[i].name, before->wire[k].name))
                after.wire[i].sent -= before->wire[k].sent;
    struct wires *all = need((size_t)probe->nodes, sizeof *all);
    OK(MPI_Gather(&after, sizeof after, MPI_BYTE, all, sizeof after, MPI_BYTE, 0, probe->leaders));
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

static void print_phase(const char *kind, const char *peer, long long bytes,
                        const struct wires *wires, const char *error)
{
    printf("{\"mpigraft\":\"phase\",\"kind\":\"%s\",\"peer\":\"%s\",\"bytes\":%lld,\"wire\":{",
           kind, peer, bytes);
    for (int i = 0; i < wires->count; i++) {
        fputs(i ? "," : "", stdout);
        json_string(stdout, wires->wire[i].name);
        printf(":%lld", wires->wire[i].sent);
    }
    printf("},\"ok\":%s", *error ? "false,\"error\":" : "true");
    if (*error)
        json_string(stdout, error);
    puts("}");
    fflush(stdout);
}

static void run_phase(struct probe *probe, const struct kind *kind, const char *peer, int partner,
                      long long mine)
{
    struct wires before;
    long long bytes = 0;
    char error[MPI_MAX_ERROR_STRING] = "";
    OK(MPI_Allreduce(&mine, &bytes, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD));
    if (!bytes)
        return; /* no such peers in this world */
    read_wires(&before);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    int code = kind->traffic(probe, partner), length;
    if (code != MPI_SUCCESS)
        MPI_Error_string(code, error, &length);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    struct wires sent = sent_since(probe, &before);
    int failed = code != MPI_SUCCESS ? probe->rank : probe->size, first;
    OK(MPI_Allreduce(&failed, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    if (first < probe->size)
        OK(MPI_Bcast(error, sizeof error, MPI_CHAR, first, MPI_COMM_WORLD));
    if (probe->rank == 0)
        print_phase(kind->name, peer, bytes, &sent, error);
    probe->phases++;
}

/* All phases that this world has peers for; returns their number. */
static int run_probe(MPI_Comm node)
{
    static const struct kind p2p = {"p2p", talk}, one_sided = {"one-sided", access_memory},
                             collective = {"collective", exchange};
    struct probe probe = seat_ranks(node);
    const struct kind *pairwise[] = {&p2p, &one_sided};
    for (int i = 0; i < 2; i++) {
        long long near = probe.neighbour == NOBODY ? 0 : volume();
        long long far = probe.stranger == NOBODY ? 0 : volume();
        run_phase(&probe, pairwise[i], "on-node", probe.neighbour, near);
        run_phase(&probe, pairwise[i], "off-node", probe.stranger, far);
    }
    long long each = (long long)EXCHANGES * (SMALL + MEDIUM) * (probe.size - 1);
    run_phase(&probe, &collective, probe.nodes > 1 ? "off-node" : "on-node", NOBODY, each);
    free(probe.buffer);
    if (probe.leaders != MPI_COMM_NULL)
        OK(MPI_Comm_free(&probe.leaders));
    return probe.phases;
}

#endif
