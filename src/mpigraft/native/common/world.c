/* All ranks of a program, and what is known of them from MPI_Init on: which of them share a host
 * and which a network, asked of the kernel.
 *
 * MPI's own answer is about memory: if it may not be used (MPIR_CVAR_NOLOCAL), MPICH says that
 * nobody shares a node, and counters of one host would be added up once per rank.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "world.h"

/* FNV-1a, 64 bits, as its authors (Fowler, Noll, Vo) give it. */
uint64_t mixed(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001B3);
    return hash;
}

static struct place_of_rank own_place(void)
{
    char name[256] = "", boot[64] = "";
    struct stat found = {.st_ino = 0};
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file && !fgets(boot, sizeof boot, file))
        *boot = 0;
    if (file)
        fclose(file);
    gethostname(name, sizeof name - 1);
    if (stat("/proc/self/ns/net", &found))
        found.st_ino = 0;
    const char *known = *boot ? boot : name; /* a /proc without it: hosts differ by name at least */
    uint64_t inode = found.st_ino;
    struct place_of_rank place;
    place.machine = mixed(UINT64_C(0xCBF29CE484222325), known, strlen(known));
    place.network = mixed(place.machine, &inode, sizeof inode);
    place.host = mixed(place.network, name, strlen(name));
    return place;
}

/* The places of all ranks, by rank. */
struct place_of_rank *places_of_all(int size)
{
    struct place_of_rank own = own_place(), *all = need((size_t)size, sizeof *all);
    OK(MPI_Allgather(&own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE, MPI_COMM_WORLD));
    return all;
}

/* The first rank of each rank's host, by rank. */
int *hosts_of_all(int size)
{
    int *host = need((size_t)size, sizeof *host);
    struct place_of_rank *all = places_of_all(size);
    for (int rank = 0; rank < size; rank++)
        while (all[host[rank]].host != all[rank].host)
            host[rank]++;
    free(all);
    return host;
}

/* Where `rank` comes when one host is counted out after the other, however ranks were dealt. */
static int host_by_host(const int *host, int size, int rank)
{
    int before = 0;
    for (int other = 0; other < size; other++)
        before += host[other] < host[rank] || (host[other] == host[rank] && other < rank);
    return before;
}

/* What every program does after MPI_Init; its errors are returned from then on. */
struct world enter_world(void)
{
    struct world world;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &world.rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &world.size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    speaker = world.rank;
    int *host = hosts_of_all(world.size);
    world.spot = host_by_host(host, world.size, world.rank);
    OK(MPI_Comm_split(MPI_COMM_WORLD, host[world.rank], world.rank, &world.host));
    free(host);
    world.clock = examine_clock();
    return world;
}

void leave_world(struct world *world)
{
    OK(MPI_Comm_free(&world->host));
    OK(MPI_Finalize());
}

/* Ranks that wait for others without a spin leave their CPU to these. */
void wait_idle(MPI_Comm comm)
{
    MPI_Request request;
    OK(MPI_Ibarrier(comm, &request));
    for (int done = 0; !done;) {
        OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        if (!done)
            nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
}

/* The first line of rank 0. */
void print_begin(const struct world *world, int buffers)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    OK(MPI_Get_library_version(library, &length));
    library[strcspn(library, "\n")] = 0;
    printf("{\"mpigraft\":\"begin\",\"ranks\":%d,\"library\":", world->size);
    json_string(stdout, library);
    printf(",\"buffers\":\"%s\",\"clock_ns\":%.3g,\"clock_resolution_ns\":%.3g}\n",
           BUFFERS[buffers], 1e9 * world->clock.cost, 1e9 * world->clock.resolution);
    fflush(stdout);
}
