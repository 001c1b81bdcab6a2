/* pairs: latency and bandwidth between each two hosts, the first rank of each.
 *
 * Hosts meet as in a tournament: in each of n - 1 rounds every host is in one pair, and all pairs
 * of a round are measured at once, as mpiGraph does. One pair after the other would be quieter,
 * but takes n / 2 times as long, and a network that is loaded alike everywhere shows its weak
 * links too.
 */
#include <string.h>
#include <unistd.h>

#include "../common/check.h"
#include "measure.h"
#include "output.h"
#include "run.h"

enum { SHORT_MESSAGE = 8, LONG_MESSAGE = 1 << 20, NAME_ROOM = 80 };
enum { IN_FLIGHT = 8 }; /* long messages: enough to fill a link, and little to wait for */

/* What a pair found, by the lower host's number. */
struct link {
    int lower, upper;
    int valid;
    struct figure latency, forth, back; /* us; MB/s from the lower one to the upper, and back */
};

/* Whom `host` of `count` meets in `round`, or -1: the circle method. One host stays, the others
 * go round it; of an odd number one always rests. */
static int opponent(int host, int count, int round)
{
    int even = count + count % 2, ring = even - 1, found;
    if (host == ring) {
        found = 0;
        while (2 * found % ring != round)
            found++;
    } else {
        found = ((round - host) % ring + ring) % ring;
        if (found == host)
            found = ring;
    }
    return found < count ? found : -1;
}

/* The median that one size of a benchmark gives over `comm`, on its first rank. */
static struct figure measured(const struct options *options, const char *name, MPI_Comm comm,
                              size_t bytes, struct clock clock, int *valid)
{
    struct selection selection = {benchmark_named(name, strlen(name)), *options, ""};
    selection.options.window = IN_FLIGHT;
    struct run run = {.options = &selection.options, .benchmark = selection.benchmark,
                      .label = name, .comm = comm, .size = 2};
    struct result result = {.samples = need((size_t)options->samples, sizeof(double))};
    OK(MPI_Comm_rank(comm, &run.rank));
    run.leads = run.rank == 0;
    run.peer = !run.rank;
    measure_size(&run, bytes, clock, true, &result);
    struct figure figure = {0, 0};
    if (run.leads)
        figure = figure_of(&run, run.benchmark->metric, &result);
    *valid &= result.valid;
    free(result.samples);
    return figure;
}

/* A name that fits into a benchmark's key; a second host of one name gets its number too. */
static void name_host(MPI_Comm hosts, int number, char *name)
{
    char own[NAME_ROOM] = "";
    int count, twice = 0;
    OK(MPI_Comm_size(hosts, &count));
    gethostname(own, sizeof own - 12);
    for (char *c = own; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *c))
            *c = '_';
    char *all = need((size_t)count, NAME_ROOM);
    OK(MPI_Allgather(own, NAME_ROOM, MPI_CHAR, all, NAME_ROOM, MPI_CHAR, hosts));
    for (int i = 0; i < count; i++)
        twice += !strcmp(all + (size_t)i * NAME_ROOM, own);
    free(all);
    if (twice > 1 || !*own)
        snprintf(name, NAME_ROOM, "%.60s.%d", own, number);
    else
        snprintf(name, NAME_ROOM, "%s", own);
}

static struct link meet(const struct options *options, MPI_Comm hosts, int host, int other,
                        struct clock clock)
{
    struct link link = {.lower = host < other ? host : other,
                        .upper = host < other ? other : host, .valid = 1};
    bool upper = host == link.upper;
    MPI_Comm forth, back;
    int color = other < 0 ? MPI_UNDEFINED : link.lower;
    OK(MPI_Comm_split(hosts, color, upper, &forth));
    OK(MPI_Comm_split(hosts, color, !upper, &back));
    if (other >= 0) {
        link.latency = measured(options, "latency", forth, SHORT_MESSAGE, clock, &link.valid);
        OK(MPI_Barrier(forth));
        link.forth = measured(options, "bw", forth, LONG_MESSAGE, clock, &link.valid);
        OK(MPI_Barrier(forth));
        link.back = measured(options, "bw", back, LONG_MESSAGE, clock, &link.valid);
        if (upper)
            OK(MPI_Send(&link.back, 2, MPI_DOUBLE, 0, TAG, forth));
        else
            OK(MPI_Recv(&link.back, 2, MPI_DOUBLE, 1, TAG, forth, MPI_STATUS_IGNORE));
        OK(MPI_Comm_free(&forth));
        OK(MPI_Comm_free(&back));
    }
    link.lower = other < 0 || upper ? -1 : link.lower; /* one of the two tells */
    return link;
}

static void print_link(const char *label, enum metric metric, size_t size, struct figure figure,
                       bool valid)
{
    printf("{\"mpigraft\":\"value\",\"benchmark\":\"%s\",\"metric\":\"%s\",\"unit\":\"%s\","
           "\"size\":%zu,\"value\":%.6g,\"resolution\":%.3g,\"valid\":%s}\n",
           label, METRICS[metric].name, METRICS[metric].unit, size, figure.value,
           figure.resolution, valid ? "true" : "false");
}

static void print_links(const struct link *links, int count, const char *names)
{
    char label[2 * NAME_ROOM + 32];
    for (int i = 0; i < count; i++) {
        const struct link *link = &links[i];
        const char *lower = names + (size_t)link->lower * NAME_ROOM;
        const char *upper = names + (size_t)link->upper * NAME_ROOM;
        snprintf(label, sizeof label, "pairs,from=%s,to=%s", lower, upper);
        print_link(label, LATENCY, SHORT_MESSAGE, link->latency, link->valid);
        print_link(label, BANDWIDTH, LONG_MESSAGE, link->forth, link->valid);
        snprintf(label, sizeof label, "pairs,from=%s,to=%s", upper, lower);
        print_link(label, BANDWIDTH, LONG_MESSAGE, link->back, link->valid);
    }
}

static int by_value(const void *left, const void *right)
{
    return ascending(&((const struct figure *)left)->value, &((const struct figure *)right)->value);
}

/* The median, and how coarse it is: as the coarser of the one or two in the middle. */
static struct figure middle_of(struct figure *figures, int count)
{
    qsort(figures, (size_t)count, sizeof *figures, by_value);
    const struct figure *low = &figures[(count - 1) / 2], *high = &figures[count / 2];
    return (struct figure){(low->value + high->value) / 2, larger(low->resolution, high->resolution)};
}

/* The median over all links: what configurations are compared by. */
static bool print_middle(const struct link *links, int count)
{
    bool valid = true;
    struct figure *latency = need((size_t)count, sizeof *latency);
    struct figure *bandwidth = need(2 * (size_t)count, sizeof *bandwidth);
    for (int i = 0; i < count; i++) {
        valid &= links[i].valid;
        latency[i] = links[i].latency;
        bandwidth[2 * i] = links[i].forth;
        bandwidth[2 * i + 1] = links[i].back;
    }
    print_link("pairs", LATENCY, SHORT_MESSAGE, middle_of(latency, count), valid);
    print_link("pairs", BANDWIDTH, LONG_MESSAGE, middle_of(bandwidth, 2 * count), valid);
    free(latency);
    free(bandwidth);
    return valid;
}

/* All pairs of `hosts`, a communicator of one rank each. The first prints; returns how many
 * values there are, and whether all are valid. */
int run_pairs(const struct options *options, MPI_Comm hosts, struct clock clock,
              bool *valid)
{
    int host, count, met = 0;
    char name[NAME_ROOM];
    OK(MPI_Comm_rank(hosts, &host));
    OK(MPI_Comm_size(hosts, &count));
    int even = count + count % 2, all = count * (count - 1) / 2;
    struct link *links = need((size_t)(all + 1), sizeof *links);
    struct link *gathered = need((size_t)count, sizeof *gathered);
    char *names = need((size_t)count, NAME_ROOM);
    name_host(hosts, host, name);
    OK(MPI_Gather(name, NAME_ROOM, MPI_CHAR, names, NAME_ROOM, MPI_CHAR, 0, hosts));
    for (int round = 0; round < even - 1; round++) {
        struct link mine = meet(options, hosts, host, opponent(host, count, round), clock);
        OK(MPI_Gather(&mine, sizeof mine, MPI_BYTE, gathered, sizeof mine, MPI_BYTE, 0, hosts));
        for (int i = 0; host == 0 && i < count; i++)
            if (gathered[i].lower >= 0)
                links[met++] = gathered[i];
    }
    if (host == 0) {
        print_links(links, met, names);
        *valid &= print_middle(links, met);
        fflush(stdout);
    }
    free(names);
    free(gathered);
    free(links);
    return host == 0 ? 3 * met + 2 : 0;
}
