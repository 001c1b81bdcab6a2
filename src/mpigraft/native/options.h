/* The command line as a table: one row an option, with its bounds. */
#ifndef MPIGRAFT_OPTIONS_H
#define MPIGRAFT_OPTIONS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum {
    DEFAULT_WINDOW = 64, /* OSU's */
    DEFAULT_THREADS = 2, /* OSU's receivers */
    DEFAULT_PARTITIONS = 8,
};

enum buffers { BUFFERS_HOST, BUFFERS_CUDA, BUFFERS_ROCM };
enum datatype { DATATYPE_CONTIGUOUS, DATATYPE_INDEXED, DATATYPE_PACKED };
enum counts { COUNTS_EQUAL, COUNTS_SKEWED, COUNTS_SPARSE };
enum format { FORMAT_JSON, FORMAT_OSU };
enum like { LIKE_ITSELF, LIKE_OSU };
enum in_place { IN_PLACE_NO, IN_PLACE_YES };
enum sync { SYNC_FLUSH, SYNC_FENCE, SYNC_PSCW, SYNC_LOCK };
enum topology { TOPOLOGY_CART, TOPOLOGY_GRAPH };

static const char *const BUFFERS[] = {"host", "cuda", "rocm", NULL};
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
    bool no_validate, list, probe, help;
    bool max_asked; /* --max was given: a size that does not fit is an error */
};

enum option_kind { TAKES_NUMBER, TAKES_DECIMAL, TAKES_WORD, TAKES_TEXT, TAKES_NOTHING };

struct option_row {
    const char *name;
    enum option_kind kind;
    size_t offset;
    long long low, high;
    const char *const *words;
    const char *help;
};

#define AT(member) offsetof(struct options, member)
#define GIB (1LL << 30)
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
    {"--probe", TAKES_NOTHING, AT(probe), 0, 0, NULL, "known traffic and what the wires saw"},
    {"--help", TAKES_NOTHING, AT(help), 0, 0, NULL, "this text"},
};

static bool first_rank(void);

/* Usage errors come before MPI_Init: no world is needed to say no. Of many ranks only the
 * first speaks, as far as the launcher tells us who that is. */
__attribute__((noreturn, format(printf, 1, 2))) static void refuse(const char *format, ...)
{
    if (first_rank()) {
        va_list arguments;
        va_start(arguments, format);
        fputs("mpigraft-bench: ", stderr);
        vfprintf(stderr, format, arguments);
        fputc('\n', stderr);
        va_end(arguments);
    }
    exit(EXIT_USAGE);
}

/* A number of the environment, or -1. */
static long long environment_number(const char *const *names)
{
    for (; *names; names++) {
        const char *text = getenv(*names);
        if (text && *text >= '0' && *text <= '9')
            return strtoll(text, NULL, 10);
    }
    return -1;
}

static bool first_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                        "SLURM_PROCID", "PALS_RANKID", "FLUX_TASK_RANK", NULL};
    return environment_number(names) <= 0;
}

static long long parse_number(const struct option_row *row, const char *text)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    bool whole = end != text && !errno && !end[shift != 0];
    if (!whole || value < 0 || value > (row->high >> shift) || (value << shift) < row->low)
        refuse("%s %s: want a whole number from %lld to %lld (K, M, G allowed)", row->name, text,
               row->low, row->high);
    return value << shift;
}

static double parse_decimal(const struct option_row *row, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value > (double)row->low && value <= (double)row->high))
        refuse("%s %s: want a number over %lld, at most %lld", row->name, text, row->low,
               row->high);
    return value;
}

static int parse_word(const struct option_row *row, const char *text)
{
    for (int i = 0; row->words[i]; i++)
        if (!strcmp(row->words[i], text))
            return i;
    refuse("%s %s: want %s", row->name, text, row->help);
}

static void store_option(struct options *options, const struct option_row *row, const char *text)
{
    void *member = (char *)options + row->offset;
    switch (row->kind) {
    case TAKES_NUMBER: *(long long *)member = parse_number(row, text); break;
    case TAKES_DECIMAL: *(double *)member = parse_decimal(row, text); break;
    case TAKES_WORD: *(int *)member = parse_word(row, text); break;
    case TAKES_TEXT: *(const char **)member = text; break;
    case TAKES_NOTHING: *(bool *)member = true; break;
    }
    options->max_asked |= row->offset == AT(max);
}

static void print_help(void)
{
    puts("mpigraft-bench [OPTION]...   measures one MPI; start it with the MPI's launcher");
    for (size_t i = 0; i < sizeof OPTIONS / sizeof *OPTIONS; i++)
        printf("  %-15s %s\n", OPTIONS[i].name, OPTIONS[i].help);
}

static const struct option_row *option_named(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof OPTIONS / sizeof *OPTIONS; i++)
        if (strlen(OPTIONS[i].name) == length && !strncmp(OPTIONS[i].name, name, length))
            return &OPTIONS[i];
    return NULL;
}

static struct options parse_options(int argc, char **argv)
{
    struct options options = {.benchmarks = "latency", .min = 1, .max = 4LL << 20, .budget = 100,
                              .warmup = 10, .window = DEFAULT_WINDOW,
                              .threads = DEFAULT_THREADS, .partitions = DEFAULT_PARTITIONS,
                              .samples = 100};
    for (int i = 1; i < argc; i++) {
        size_t length = strcspn(argv[i], "=");
        const char *equals = argv[i][length] ? argv[i] + length : NULL;
        const struct option_row *row = option_named(argv[i], length);
        if (!row)
            refuse("%s: no such option (--help lists them)", argv[i]);
        if (row->kind == TAKES_NOTHING && equals)
            refuse("%s takes no value", row->name);
        if (row->kind != TAKES_NOTHING && !equals && ++i == argc)
            refuse("%s needs a value", row->name);
        store_option(&options, row, equals ? equals + 1 : argv[i]);
    }
    if (options.min > options.max)
        refuse("--min %lld is more than --max %lld", options.min, options.max);
    return options;
}

#endif
