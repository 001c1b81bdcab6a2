/* The command line as a table: one row an option, with its bounds. */
#ifndef MPIGRAFT_OPTIONS_H
#define MPIGRAFT_OPTIONS_H

#include "../common/arguments.h"
#include "../common/memory.h"

enum {
    DEFAULT_WINDOW = 64, /* OSU's */
    DEFAULT_THREADS = 2, /* OSU's receivers */
    DEFAULT_PARTITIONS = 8,
};

enum datatype { DATATYPE_CONTIGUOUS, DATATYPE_INDEXED, DATATYPE_PACKED };
enum counts { COUNTS_EQUAL, COUNTS_SKEWED, COUNTS_SPARSE };
enum format { FORMAT_JSON, FORMAT_OSU };
enum like { LIKE_ITSELF, LIKE_OSU };
enum in_place { IN_PLACE_NO, IN_PLACE_YES };
enum sync { SYNC_FLUSH, SYNC_FENCE, SYNC_PSCW, SYNC_LOCK };
enum topology { TOPOLOGY_CART, TOPOLOGY_GRAPH };

static const char *const DATATYPES[] = {"contiguous", "indexed", "packed", NULL};
static const char *const COUNTS[] = {"equal", "skewed", "sparse", NULL};
static const char *const FORMATS[] = {"json", "osu", NULL};
static const char *const LIKES[] = {"itself", "osu", NULL};
static const char *const IN_PLACES[] = {"no", "yes", NULL};
static const char *const SYNCS[] = {"flush", "fence", "pscw", "lock", NULL};
static const char *const TOPOLOGIES[] = {"cart", "graph", NULL};

struct options {
    const char *benchmarks; /* names with commas between them */
    long long min, max;     /* bytes per message */
    double budget;          /* milliseconds per size */
    double launched;        /* seconds of CLOCK_REALTIME when the launcher was started, or 0 */
    long long iterations;   /* 0: as many as the budget allows */
    long long warmup, window, samples, threads, partitions;
    int buffers, datatype, counts, format, like, in_place, sync, topology;
    bool no_validate, list, help;
    bool max_asked; /* --max was given: a size that does not fit is an error */
};

#define AT(member) offsetof(struct options, member)
#define MOST_BYTES (1LL << 42) /* times as many ranks as there are, no size_t overflows */

static const struct option_row OPTIONS[] = {
    {"--benchmark", TAKES_TEXT, AT(benchmarks), 0, 0, NULL,
     "names with commas between them (latency), and options of one alone\n"
     "                  (counts, datatype, in_place, like, partitions, sync, threads,\n"
     "                  topology, window): alltoallv:counts=sparse,bw:window=1"},
    {"--min", TAKES_NUMBER, AT(min), 1, MOST_BYTES, NULL, "smallest message, bytes (1)"},
    {"--max", TAKES_NUMBER, AT(max), 1, MOST_BYTES, NULL, "largest message, bytes (4M)"},
    {"--budget", TAKES_DECIMAL, AT(budget), 0, 3600000, NULL, "milliseconds per size (100)"},
    {"--iterations", TAKES_NUMBER, AT(iterations), 1, GIB, NULL, "fixed number per size"},
    {"--warmup", TAKES_NUMBER, AT(warmup), 0, 1000000, NULL, "iterations before timing (10)"},
    {"--window", TAKES_NUMBER, AT(window), 1, 4096, NULL, "messages in flight (64)"},
    {"--threads", TAKES_NUMBER, AT(threads), 1, 256, NULL, "of each rank in latency_mt (2)"},
    {"--partitions", TAKES_NUMBER, AT(partitions), 1, 4096, NULL,
     "of a message in partitioned_latency (8)"},
    {"--samples", TAKES_NUMBER, AT(samples), 1, 10000, NULL, "most batches kept (100)"},
    {"--launched", TAKES_DECIMAL, AT(launched), 0, 8 * GIB, NULL,
     "when the launcher was started, as `date +%s.%N` tells (for launch_time)"},
    {"--buffers", TAKES_WORD, AT(buffers), 0, 0, BUFFERS, "host, cuda or rocm"},
    {"--datatype", TAKES_WORD, AT(datatype), 0, 0, DATATYPES, "contiguous, indexed or packed"},
    {"--counts", TAKES_WORD, AT(counts), 0, 0, COUNTS, "equal, skewed or sparse"},
    {"--format", TAKES_WORD, AT(format), 0, 0, FORMATS, "json or osu"},
    {"--like", TAKES_WORD, AT(like), 0, 0, LIKES,
     "osu: time and average as the OSU benchmarks 7.4 do (itself)"},
    {"--in_place", TAKES_WORD, AT(in_place), 0, 0, IN_PLACES,
     "no or yes: collectives send from where they receive"},
    {"--sync", TAKES_WORD, AT(sync), 0, 0, SYNCS,
     "flush, fence, pscw or lock: how one-sided accesses end"},
    {"--topology", TAKES_WORD, AT(topology), 0, 0, TOPOLOGIES,
     "cart or graph: who are the neighbours in neighbor_*"},
    {"--no-validate", TAKES_NOTHING, AT(no_validate), 0, 0, NULL, "do not look at the data"},
    {"--list", TAKES_NOTHING, AT(list), 0, 0, NULL,
     "names of the benchmarks; with --like osu of those that OSU has"},
    {"--help", TAKES_NOTHING, AT(help), 0, 0, NULL, "this text"},
};

enum { OPTION_ROWS = sizeof OPTIONS / sizeof *OPTIONS };

static void store_option(void *options, const struct option_row *row, const char *text)
{
    store_argument(options, row, text);
    ((struct options *)options)->max_asked |= row->offset == AT(max);
}

static void print_help(void)
{
    puts("mpigraft-bench [OPTION]...   measures one MPI; start it with the MPI's launcher");
    print_rows(OPTIONS, OPTION_ROWS);
}

static const struct option_row *option_named(const char *name, size_t length)
{
    return row_named(OPTIONS, OPTION_ROWS, name, length);
}

static struct options parse_options(int argc, char **argv)
{
    struct options options = {.benchmarks = "latency", .min = 1, .max = 4LL << 20, .budget = 100,
                              .warmup = 10, .window = DEFAULT_WINDOW,
                              .threads = DEFAULT_THREADS, .partitions = DEFAULT_PARTITIONS,
                              .samples = 100};
    read_arguments(argc, argv, OPTIONS, OPTION_ROWS, &options, store_option);
    if (options.min > options.max)
        refuse("--min %lld is more than --max %lld", options.min, options.max);
    return options;
}

#endif
