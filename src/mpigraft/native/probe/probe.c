/* mpigraft-probe: known traffic of each kind between known peers, and what the wires saw of it.
 * Started by the MPI's own launcher; rank 0 prints.
 *
 * A library that has to use shared memory and sends a hundred megabytes through a network
 * interface is caught here, even if it reports otherwise. Errors are returned, not fatal: a phase
 * that fails prints its error and the next one is tried. Exit status 2: bad usage; 3: MPI failed.
 */
#include <fcntl.h>
#include <stddef.h>
#include <time.h>

#include "probe.h"

const char program_name[] = "mpigraft-probe";

/* ---- phases ---- */

/* Short and long messages, and each kind of collective, may go by lanes of their own: Intel MPI
 * that has to use TCP adds up 8 bytes in shared memory. So each is counted by itself. */
struct part {
    const char *what;
    int (*traffic)(struct probe *, struct peers peers, int bytes, int times);
    int bytes, times; /* as often where that is done in PART_S */
};

#define ON_NODE "on-node"
#define OFF_NODE "off-node"

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

/* Whether each rank that has a peer sends as much as the others. */
static bool in_pairs(const struct part *part)
{
    return part->traffic == talk || part->traffic == access_window;
}

static long long own_payload(const struct part *part, struct peers peers, int times)
{
    return peers.to == NOBODY ? 0 : (long long)part->bytes * times;
}

/* Bytes that all ranks together cannot but send in a part. */
static long long payload(const struct probe *probe, const struct part *part, struct peers peers,
                         int times)
{
    long long each = (long long)part->bytes * times, mine = own_payload(part, peers, times);
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

/* The wires of all hosts added up by name, on rank 0; `own` matters on readers only. */
static struct wires of_all_hosts(const struct probe *probe, const struct wires *own)
{
    struct wires total = {0};
    int readers;
    if (probe->readers == MPI_COMM_NULL)
        return total;
    OK(MPI_Comm_size(probe->readers, &readers));
    struct wires *all = need((size_t)readers, sizeof *all);
    OK(MPI_Gather(own, sizeof *own, MPI_BYTE, all, sizeof *own, MPI_BYTE, 0, probe->readers));
    if (probe->rank == 0)
        total = wires_of_all(all, readers);
    free(all);
    return total;
}

static void read_own(const struct probe *probe, struct wires *wires)
{
    read_wires(wires, probe->reads_interfaces, probe->reads_devices);
}

struct counted {
    const char *what;
    int times;
    long long bytes;
    double seconds; /* while its wires were counted, on rank 0 */
    struct wires wires;
    struct shares shares;
};

/* All parts of a phase as one: every part reads the same wires in the same order. */
static struct counted added_up(const struct counted *parts, int count)
{
    struct counted total = {.bytes = 0};
    for (int i = 0; i < count; i++) {
        const struct wire *wire = parts[i].wires.wire;
        total.bytes += parts[i].bytes;
        for (int k = 0; k < parts[i].wires.count; k++)
            if (k < total.wires.count)
                total.wires.wire[k].sent += wire[k].sent;
            else
                add_wire(&total.wires, wire[k].name, wire[k].counter, wire[k].sent);
    }
    return total;
}

static void print_phase(const char *kind, const char *peer, const struct counted *parts, int count,
                        const char *error)
{
    struct counted total = added_up(parts, count);
    printf("{\"mpigraft\":\"phase\",\"kind\":\"%s\",\"peer\":\"%s\",\"bytes\":%lld,", kind, peer,
           total.bytes);
    print_by_name("wire", &total.wires, offsetof(struct wire, sent), true);
    fputs(",\"parts\":[", stdout);
    for (int i = 0; i < count; i++) {
        printf("%s{\"what\":\"%s\",\"times\":%d,\"bytes\":%lld,\"seconds\":%.6f,",
               i ? "," : "", parts[i].what, parts[i].times, parts[i].bytes, parts[i].seconds);
        print_by_name("wire", &parts[i].wires, offsetof(struct wire, sent), true);
        putchar(',');
        print_by_name("least", &parts[i].wires, offsetof(struct wire, least), true);
        putchar(',');
        print_shares(&parts[i].shares, &parts[i].wires);
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

#define PART_S 0.5          /* that a part may take, if it can be cut shorter */
#define LEAST_SHORT 2048LL  /* bytes per host of a part: less drowns in what is always about */
#define LEAST_LONG (1 << 19)

/* How often a part is to be done. Two ranks on one core take milliseconds for 8 bytes. The trial
 * also sets connections up, whose bytes are none of the payload. */
static int fit(struct probe *probe, const struct part *part, struct peers peers, int *times)
{
    int trial = part->times / 64 + 1;
    long long once = payload(probe, part, peers, 1);
    TRY(part->traffic(probe, peers, part->bytes, trial));
    double begin = now(), slowest;
    TRY(part->traffic(probe, peers, part->bytes, trial));
    double took = (now() - begin) / trial;
    TRY(MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
    double fitting = PART_S / (slowest > 1e-9 ? slowest : 1e-9);
    long long least = probe->hosts * (part->bytes == SMALL ? LEAST_SHORT : LEAST_LONG);
    double fewest = (double)((least + once - 1) / once);
    fitting = fitting > fewest ? fitting : fewest;
    *times = fitting < part->times ? (int)fitting : part->times;
    return MPI_SUCCESS;
}

/* The classes of peers between which a part's payload goes. */
static unsigned classes_due(const struct part *part, bool far)
{
    return in_pairs(part) ? 1u << (far ? FAR : NEAR) : 1u << FAR | 1u << NEAR;
}

/* Between peers of one host nothing needs the network, so ranks wait for those of their host
 * alone while wires are counted. Bytes for other hosts have left when they are there. Connections
 * that the trial has opened get their peers before, and those of the part itself after it. */
static int run_part(struct probe *probe, const struct part *part, struct peers peers, bool far,
                    struct counted *counted)
{
    struct wires before, own;
    MPI_Comm there = far ? MPI_COMM_WORLD : probe->host;
    walk_sockets(&probe->sockets);
    match_connections(probe);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    double start = now();
    read_own(probe, &before);
    begin_window(&probe->sockets);
    OK(MPI_Barrier(there));
    int code = part->traffic(probe, peers, part->bytes, counted->times);
    OK(MPI_Barrier(there));
    end_window(&probe->sockets);
    read_own(probe, &own);
    own = wires_since(&before, &own);
    counted->what = part->what;
    counted->seconds = now() - start;
    match_connections(probe);
    long long each = in_pairs(part) ? own_payload(part, peers, counted->times) : 0;
    counted->shares = shares_of_all(probe, classes_due(part, far), each, &own);
    counted->wires = of_all_hosts(probe, &own);
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
    struct wires before, own;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    rest(SETTLE_S);
    double start = now();
    read_own(probe, &before);
    rest(IDLE_S);
    read_own(probe, &own);
    own = wires_since(&before, &own);
    idle.seconds = now() - start;
    rest(SETTLE_S);
    idle.wires = of_all_hosts(probe, &own);
    return idle;
}

/* The busier of two windows. */
static void print_idle(const struct counted *one, const struct counted *other)
{
    double first = (double)all_sent(&one->wires) / one->seconds;
    double last = (double)all_sent(&other->wires) / other->seconds;
    const struct counted *idle = first > last ? one : other;
    printf("{\"mpigraft\":\"idle\",\"seconds\":%.6f,", idle->seconds);
    print_by_name("wire", &idle->wires, offsetof(struct wire, sent), true);
    putchar(',');
    print_counters(&idle->wires);
    puts("}");
    fflush(stdout);
}

static bool has_room(const struct probe *probe, const struct part *part)
{
    return part->traffic != exchange || part->bytes == SMALL || probe->size <= LONG_RANKS;
}

static void run_phase(struct probe *probe, const struct kind *kind, const char *peer,
                      struct peers peers)
{
    struct counted *counted = need(MOST_PARTS, sizeof *counted);
    char error[MPI_MAX_ERROR_STRING] = "";
    int count = 0;
    bool far = !strcmp(peer, OFF_NODE);
    if (!payload(probe, &kind->parts[0], peers, 1)) {
        free(counted);
        return; /* no such peers in this world */
    }
    bool failed = failed_anywhere(probe, kind->open ? kind->open(probe) : MPI_SUCCESS, error);
    const struct part *end = kind->parts + MOST_PARTS;
    for (const struct part *part = kind->parts; !failed && part < end && part->traffic; part++) {
        if (!has_room(probe, part))
            continue;
        int code = fit(probe, part, peers, &counted[count].times);
        if ((failed = failed_anywhere(probe, code, error)))
            break;
        counted[count].bytes = payload(probe, part, peers, counted[count].times);
        code = run_part(probe, part, peers, far, &counted[count]);
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

/* What MPI itself reports about the ranks of one host. If MPICH may not use the memory that they
 * share, it says that they share none, and only then does it use none. */
static void print_locality(const struct probe *probe)
{
    MPI_Comm local;
    int near, host;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, probe->rank, MPI_INFO_NULL,
                           &local));
    OK(MPI_Comm_size(local, &near));
    OK(MPI_Comm_size(probe->host, &host));
    OK(MPI_Comm_free(&local));
    int mine[] = {near == host, near == 1}, all[2];
    OK(MPI_Allreduce(mine, all, 2, MPI_INT, MPI_LAND, MPI_COMM_WORLD));
    if (probe->rank == 0)
        printf("{\"mpigraft\":\"locality\",\"peer\":\"%s\"}\n",
               all[0] ? ON_NODE : all[1] ? OFF_NODE : "of both kinds");
}

/* All phases that this world has peers for, in buffers of the kind that will be measured: GPU
 * memory may take other lanes. Returns their number. */
static int run_phases(const struct world *world, const struct memory *memory)
{
    struct probe probe = seat_ranks(world, memory);
    const struct kind *pairwise[] = {&P2P, &ONE_SIDED};
    const struct peers nobody = {NOBODY, NOBODY};
    print_locality(&probe);
    struct counted before = count_idle(&probe);
    for (int i = 0; i < 2; i++) {
        run_phase(&probe, pairwise[i], ON_NODE, probe.near);
        run_phase(&probe, pairwise[i], OFF_NODE, probe.far);
    }
    run_phase(&probe, &COLLECTIVE, probe.hosts > 1 ? OFF_NODE : ON_NODE, nobody);
    struct counted after = count_idle(&probe);
    if (probe.rank == 0)
        print_idle(&before, &after);
    leave_seats(&probe);
    return probe.phases;
}

struct options {
    int buffers;
    bool help;
};

static const struct option_row OPTIONS[] = {
    {"--buffers", TAKES_WORD, offsetof(struct options, buffers), 0, 0, BUFFERS,
     "host, cuda or rocm"},
    {"--help", TAKES_NOTHING, offsetof(struct options, help), 0, 0, NULL, "this text"},
};

enum { OPTION_ROWS = sizeof OPTIONS / sizeof *OPTIONS };

int main(int argc, char **argv)
{
    struct options options = {.buffers = BUFFERS_HOST};
    read_arguments(argc, argv, OPTIONS, OPTION_ROWS, &options, store_argument);
    if (options.help) {
        puts("mpigraft-probe [OPTION]...   start it with the launcher of an MPI");
        print_rows(OPTIONS, OPTION_ROWS);
        return 0;
    }
    open_memory(options.buffers);
    setvbuf(stdout, NULL, _IOFBF, 1 << 20); /* a line leaves in one piece */
    MPI_Init(&argc, &argv); /* on an error MPI itself prints it and ends */
    struct world world = enter_world();
    warn_of_unaware_mpi(options.buffers);
    if (world.rank == 0)
        print_begin(&world, options.buffers);
    int phases = run_phases(&world, &MEMORIES[options.buffers]);
    if (world.rank == 0)
        printf("{\"mpigraft\":\"end\",\"values\":0,\"phases\":%d}\n", phases);
    fflush(stdout);
    leave_world(&world);
    return 0;
}
