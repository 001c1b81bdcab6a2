/* The command line as a table: one row an option, with its bounds; and rows of benchmarks. */
#include <string.h>

#include "../common/arguments.h"
#include "../common/memory.h"
#include "measure.h"
#include "message.h"
#include "mpi_functions.h"
#include "options.h"
#include "run.h"

const char *const DATATYPES[] = {"contiguous", "indexed", "packed", NULL};
static const char *const COUNTS[] = {"equal", "skewed", "sparse", NULL};
static const char *const FORMATS[] = {"json", "osu", NULL};
static const char *const LIKES[] = {"itself", "osu", NULL};
static const char *const IN_PLACES[] = {"no", "yes", NULL};
static const char *const SYNCS[] = {"flush", "fence", "pscw", "lock", NULL};
static const char *const TOPOLOGIES[] = {"cart", "graph", NULL};

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

void print_help(void)
{
    puts("mpigraft-bench [OPTION]...   measures one MPI; start it with the MPI's launcher");
    print_rows(OPTIONS, OPTION_ROWS);
}

static const struct option_row *option_named(const char *name, size_t length)
{
    return row_named(OPTIONS, OPTION_ROWS, name, length);
}

struct options parse_options(int argc, char **argv)
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
/* ---- --benchmark: rows of the table, each with its own counts, datatype, window ... ---- */

enum { MOST_SELECTIONS = 256 };

const struct benchmark *benchmark_named(const char *name, size_t length)
{
    for (int i = 0; i < BENCHMARK_COUNT; i++)
        if (strlen(BENCHMARKS[i].name) == length && !strncmp(BENCHMARKS[i].name, name, length))
            return &BENCHMARKS[i];
    refuse("--benchmark %.*s: no such benchmark (--list names them)", (int)length, name);
}

/* Options that one benchmark may have alone, in alphabetical order, and those that have them. */
enum own {
    OWN_COUNTS, OWN_DATATYPE, OWN_IN_PLACE, OWN_LIKE, OWN_PARTITIONS, OWN_SYNC, OWN_THREADS,
    OWN_TOPOLOGY, OWN_WINDOW, OWN_OPTIONS,
};

static const char *const OWN_NAMES[OWN_OPTIONS] = {
    "--counts", "--datatype", "--in_place", "--like", "--partitions", "--sync", "--threads",
    "--topology", "--window",
};

static bool takes(const struct benchmark *benchmark, enum own option)
{
    static const unsigned of[OWN_OPTIONS] = {
        [OWN_COUNTS] = COUNTED,         [OWN_IN_PLACE] = IN_PLACE, [OWN_PARTITIONS] = PARTITIONED,
        [OWN_SYNC] = PUTS | GETS,       [OWN_THREADS] = THREADED,  [OWN_TOPOLOGY] = NEIGHBORS,
        [OWN_WINDOW] = WINDOWED,
    };
    if (option == OWN_DATATYPE)
        return !(benchmark->traits & (SIZELESS | ONE_NUMBER));
    if (option == OWN_LIKE)
        return benchmark->title;
    return benchmark->traits & of[option];
}

/* Whether an option has another value than by default. */
static bool changed(const struct options *options, enum own option)
{
    switch (option) {
    case OWN_COUNTS: return options->counts;
    case OWN_DATATYPE: return options->datatype;
    case OWN_IN_PLACE: return options->in_place;
    case OWN_LIKE: return options->like;
    case OWN_PARTITIONS: return options->partitions != DEFAULT_PARTITIONS;
    case OWN_SYNC: return options->sync;
    case OWN_THREADS: return options->threads != DEFAULT_THREADS;
    case OWN_TOPOLOGY: return options->topology;
    default: return options->window != DEFAULT_WINDOW;
    }
}

/* Options that change what is measured are part of its name: those that were asked for with the
 * name, and those of the whole that are not the default. */
static void name_selection(struct selection *selection, const bool *own)
{
    char *label = selection->label;
    size_t room = sizeof selection->label;
    snprintf(label, room, "%s", selection->benchmark->name);
    for (int i = 0; i < OWN_OPTIONS; i++) {
        if (!own[i] && !(takes(selection->benchmark, i) && changed(&selection->options, i)))
            continue;
        const struct option_row *row = option_named(OWN_NAMES[i], strlen(OWN_NAMES[i]));
        const void *member = (const char *)&selection->options + row->offset;
        size_t length = strlen(label);
        if (row->kind == TAKES_WORD)
            snprintf(label + length, room - length, ",%s=%s", row->name + 2,
                     row->words[*(const int *)member]);
        else
            snprintf(label + length, room - length, ",%s=%lld", row->name + 2,
                     *(const long long *)member);
    }
}

static void refuse_what_cannot_be(const struct selection *selection)
{
    const struct options *options = &selection->options;
    const char *name = selection->benchmark->name;
    unsigned traits = selection->benchmark->traits;
    if ((traits & (REDUCES | ACCUMULATES)) && options->datatype != DATATYPE_CONTIGUOUS)
        refuse("%s with datatype %s: MPI sums no derived datatypes", name,
               DATATYPES[options->datatype]);
    if ((traits & COUNTED) && options->datatype == DATATYPE_INDEXED &&
        options->counts == COUNTS_SKEWED)
        refuse("%s: skewed counts need datatype contiguous or packed", name);
    if (!(traits & SIZELESS) && options->datatype == DATATYPE_INDEXED &&
        options->max / BLOCK >= INT_LIMIT)
        refuse("%s: datatype indexed has at most %d blocks of %d B; --max %lld has more", name,
               INT_LIMIT, BLOCK, options->max);
    if (options->datatype == DATATYPE_PACKED && options->buffers != BUFFERS_HOST)
        refuse("%s: packing by hand is done by the CPU, not in %s buffers", name,
               BUFFERS[options->buffers]);
    if ((traits & IN_PLACE) && options->in_place && options->datatype == DATATYPE_PACKED)
        refuse("%s: packing by hand copies to another buffer, so nothing is in place", name);
    if ((traits & THREADED) && options->buffers != BUFFERS_HOST)
        refuse("%s: threads have no %s device of their own; use host buffers", name,
               BUFFERS[options->buffers]);
    if (selection->benchmark->metric == LAUNCH_TIME && options->launched <= 0)
        refuse("%s: --launched says since when", name);
    if (!selection->benchmark->title && options->format == FORMAT_OSU)
        refuse("%s: OSU has no such benchmark to print like", name);
    refuse_what_is_lacking(selection->benchmark);
}

/* One of name[:option=value]..., cut out of `text`. */
static struct selection parse_selection(const struct options *options, char *text)
{
    bool own[OWN_OPTIONS] = {false};
    char *rest = text, *word = strsep(&rest, ":");
    struct selection selection = {benchmark_named(word, strlen(word)), *options, ""};
    while ((word = strsep(&rest, ":"))) {
        char *value = word, *name = strsep(&value, "=");
        int which = 0;
        while (which < OWN_OPTIONS && strcmp(OWN_NAMES[which] + 2, name))
            which++;
        if (which == OWN_OPTIONS || !takes(selection.benchmark, which) || !value)
            refuse("--benchmark %s: %s is not an option of it (some have counts=, datatype=, "
                   "in_place=, like=, partitions=, sync=, threads=, topology=, window=)",
                   selection.benchmark->name, name);
        store_option(&selection.options, option_named(OWN_NAMES[which], strlen(OWN_NAMES[which])),
                     value);
        own[which] = true;
    }
    name_selection(&selection, own);
    refuse_what_cannot_be(&selection);
    if (selection.benchmark->traits & OVERLAPS)
        selection.options.budget /= PHASES;
    return selection;
}

/* With MPI_THREAD_MULTIPLE every call of MPI may take a lock, so nothing else is measured then. */
static void refuse_threads_among_others(const struct selection *selections, int count)
{
    for (int i = 0; i < count && count > 1; i++)
        if (selections[i].benchmark->traits & THREADED)
            refuse("%s: it starts MPI with MPI_THREAD_MULTIPLE, which may slow the other "
                   "benchmarks; run it by itself", selections[i].benchmark->name);
}

/* All of --benchmark; `*count` of them. */
struct selection *select_benchmarks(const struct options *options, int *count)
{
    struct selection *selections = need(MOST_SELECTIONS, sizeof *selections);
    char *copy = strdup(options->benchmarks), *rest = copy, *word;
    for (*count = 0; (word = strsep(&rest, ",")); ++*count) {
        if (*count == MOST_SELECTIONS)
            refuse("--benchmark: more than %d", MOST_SELECTIONS);
        selections[*count] = parse_selection(options, word);
    }
    refuse_threads_among_others(selections, *count);
    free(copy);
    return selections;
}
