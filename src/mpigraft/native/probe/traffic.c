/* What the probe moves: each kind of traffic, between peers that are known.
 *
 * Each function returns an MPI error code and never ends the program.
 */
#include "probe.h"

/* ---- who talks to whom ---- */

/* The neighbours of `rank` in a ring of all ranks with the same `mark`, in their order. */
static struct peers ring(const int *mark, int size, int rank)
{
    struct peers peers = {NOBODY, NOBODY};
    for (int i = 1; i < size && peers.to == NOBODY; i++)
        if (mark[(rank + i) % size] == mark[rank])
            peers.to = (rank + i) % size;
    for (int i = 1; i < size && peers.from == NOBODY; i++)
        if (mark[(rank - i + size) % size] == mark[rank])
            peers.from = (rank - i + size) % size;
    return peers;
}

static void find_peers(struct probe *probe)
{
    int *host = hosts_of_all(probe->size), *seat = need((size_t)probe->size, sizeof *seat);
    for (int rank = 0; rank < probe->size; rank++) {
        for (int before = 0; before < rank; before++)
            seat[rank] += host[before] == host[rank];
        probe->hosts += host[rank] == rank;
    }
    probe->near = ring(host, probe->size, probe->rank);
    probe->far = ring(seat, probe->size, probe->rank);
    free(host);
    free(seat);
}

static void find_readers(struct probe *probe)
{
    struct place_of_rank *all = places_of_all(probe->size), *mine = &all[probe->rank];
    int first = probe->rank;
    probe->reads_devices = true;
    probe->place = *mine;
    for (int before = probe->rank; before-- > 0;) {
        if (all[before].network == mine->network)
            first = before;
        probe->reads_devices &= all[before].machine != mine->machine;
    }
    free(all);
    probe->reads_interfaces = first == probe->rank;
    bool reads = probe->reads_interfaces || probe->reads_devices;
    OK(MPI_Comm_split(MPI_COMM_WORLD, reads ? 0 : MPI_UNDEFINED, probe->rank, &probe->readers));
    OK(MPI_Comm_split(MPI_COMM_WORLD, first, probe->rank, &probe->network));
}

/* What own connections are counted with: all ranks of a network number its interfaces alike. */
static void open_sockets(struct probe *probe)
{
    read_wires(&probe->interfaces, probe->reads_interfaces, false);
    OK(MPI_Bcast(&probe->interfaces, sizeof probe->interfaces, MPI_BYTE, 0, probe->network));
    probe->sockets.counts = kernel_counts();
    probe->routes = open_routes();
}

struct probe seat_ranks(const struct world *world, const struct memory *memory)
{
    struct probe probe = {.host = world->host, .rank = world->rank, .size = world->size,
                          .memory = memory};
    find_peers(&probe);
    find_readers(&probe);
    open_sockets(&probe);
    size_t blocks = (size_t)probe.size * (probe.size > LONG_RANKS ? SMALL : MEDIUM);
    probe.half = blocks > LARGE ? blocks : LARGE;
    probe.buffer = memory->allocate(2 * probe.half);
    return probe;
}

void leave_seats(struct probe *probe)
{
    probe->memory->release(probe->buffer);
    if (probe->readers != MPI_COMM_NULL)
        OK(MPI_Comm_free(&probe->readers));
    OK(MPI_Comm_free(&probe->network));
    forget_sockets(&probe->sockets);
    if (probe->routes >= 0)
        close(probe->routes);
}

/* ---- each kind ---- */

int talk(struct probe *probe, struct peers peers, int bytes, int times)
{
    for (int i = 0; i < times && peers.to != NOBODY; i++)
        TRY(MPI_Sendrecv(probe->buffer, bytes, MPI_CHAR, peers.to, 0, probe->buffer + LARGE, bytes,
                         MPI_CHAR, peers.from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return MPI_SUCCESS;
}

int expose_memory(struct probe *probe)
{
    char *base;
    if (probe->memory->upload) { /* MPI allocates no memory of GPUs */
        probe->exposed = probe->memory->allocate(2 * LARGE);
        TRY(MPI_Win_create(probe->exposed, 2 * LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                           &probe->win));
    } else {
        TRY(MPI_Win_allocate(2 * LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &probe->win));
    }
    TRY(MPI_Win_set_errhandler(probe->win, MPI_ERRORS_RETURN));
    return MPI_Win_lock_all(0, probe->win); /* here: it talks to ranks of other hosts too */
}

int access_window(struct probe *probe, struct peers peers, int bytes, int times)
{
    MPI_Win win = probe->win;
    for (int i = 0; i < times && peers.to != NOBODY; i++) {
        if (i % 2)
            TRY(MPI_Get(probe->buffer, bytes, MPI_CHAR, peers.to, 0, bytes, MPI_CHAR, win));
        else
            TRY(MPI_Put(probe->buffer, bytes, MPI_CHAR, peers.to, LARGE, bytes, MPI_CHAR, win));
        TRY(MPI_Win_flush(peers.to, win));
    }
    return MPI_SUCCESS;
}

int withdraw_memory(struct probe *probe)
{
    TRY(MPI_Win_unlock_all(probe->win));
    TRY(MPI_Win_free(&probe->win));
    if (probe->exposed)
        probe->memory->release(probe->exposed);
    return MPI_SUCCESS;
}

int exchange(struct probe *probe, struct peers peers, int bytes, int times)
{
    (void)peers;
    char *arriving = probe->buffer + probe->half;
    for (int i = 0; i < times; i++)
        TRY(MPI_Alltoall(probe->buffer, bytes, MPI_CHAR, arriving, bytes, MPI_CHAR,
                         MPI_COMM_WORLD));
    return MPI_SUCCESS;
}

int add_up(struct probe *probe, struct peers peers, int bytes, int times)
{
    (void)peers;
    char *sums = probe->buffer + probe->half;
    for (int i = 0; i < times; i++)
        TRY(MPI_Allreduce(probe->buffer, sums, bytes, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD));
    return MPI_SUCCESS;
}

int tell_all(struct probe *probe, struct peers peers, int bytes, int times)
{
    (void)peers;
    for (int i = 0; i < times; i++)
        TRY(MPI_Bcast(probe->buffer, bytes, MPI_CHAR, i % probe->size, MPI_COMM_WORLD));
    return MPI_SUCCESS;
}
