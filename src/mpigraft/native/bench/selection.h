/* --benchmark: rows of the table, each with its own counts, datatype, likeness and window. */
#ifndef MPIGRAFT_SELECTION_H
#define MPIGRAFT_SELECTION_H

#include "mpi_functions.h"
#include "options.h"
#include "measure.h"
#include "table.h"

struct selection {
    const struct benchmark *benchmark;
    struct options options; /* of the whole, with its own on top */
    char label[160];        /* alltoallv,counts=sparse: what results are named by */
};

enum { MOST_SELECTIONS = 256 };

static const struct benchmark *benchmark_named(const char *name, size_t length)
{
    for (size_t i = 0; i < BENCHMARK_COUNT; i++)
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
static struct selection *select_benchmarks(const struct options *options, int *count)
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

#endif
