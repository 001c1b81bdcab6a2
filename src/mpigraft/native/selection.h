/* --benchmark: rows of the table, each with its own counts, datatype, likeness and window. */
#ifndef MPIGRAFT_SELECTION_H
#define MPIGRAFT_SELECTION_H

#include "benchmarks.h"
#include "options.h"

struct selection {
    const struct benchmark *benchmark;
    struct options options; /* of the whole, with its own on top */
    char label[96];         /* alltoallv,counts=sparse: what results are named by */
};

enum { MOST_SELECTIONS = 256 };

static const struct benchmark *benchmark_named(const char *name, size_t length)
{
    for (size_t i = 0; i < BENCHMARK_COUNT; i++)
        if (strlen(BENCHMARKS[i].name) == length && !strncmp(BENCHMARKS[i].name, name, length))
            return &BENCHMARKS[i];
    refuse("--benchmark %.*s: no such benchmark (--list names them)", (int)length, name);
}

static void append(char *label, size_t room, const char *name, const char *value)
{
    size_t length = strlen(label);
    snprintf(label + length, room - length, ",%s=%s", name, value);
}

/* Options that change what is measured are part of its name, in alphabetical order: those that
 * were asked for with the name, and those of the whole that are not the default. */
static void name_selection(struct selection *selection, const bool *own)
{
    const struct options *options = &selection->options;
    unsigned traits = selection->benchmark->traits;
    char window[24];
    snprintf(window, sizeof window, "%lld", options->window);
    snprintf(selection->label, sizeof selection->label, "%s", selection->benchmark->name);
    if (own[0] || ((traits & COUNTED) && options->counts))
        append(selection->label, sizeof selection->label, "counts", COUNTS[options->counts]);
    if (own[1] || (!(traits & SIZELESS) && options->datatype))
        append(selection->label, sizeof selection->label, "datatype",
               DATATYPES[options->datatype]);
    if (own[2] || (selection->benchmark->title && options->like))
        append(selection->label, sizeof selection->label, "like", LIKES[options->like]);
    if (own[3] || ((traits & WINDOWED) && options->window != DEFAULT_WINDOW))
        append(selection->label, sizeof selection->label, "window", window);
}

static void refuse_what_cannot_be(const struct selection *selection)
{
    const struct options *options = &selection->options;
    const char *name = selection->benchmark->name;
    unsigned traits = selection->benchmark->traits;
    if ((traits & REDUCES) && options->datatype != DATATYPE_CONTIGUOUS)
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
    if (selection->benchmark->metric == LAUNCH_TIME && options->launched <= 0)
        refuse("%s: --launched says since when", name);
    if (!selection->benchmark->title && options->format == FORMAT_OSU)
        refuse("%s: OSU has no such benchmark to print like", name);
}

/* One of name[:option=value]..., cut out of `text`. */
static struct selection parse_selection(const struct options *options, char *text)
{
    static const char *const names[] = {"--counts", "--datatype", "--like", "--window"};
    bool own[] = {false, false, false, false};
    char *rest = text, *word = strsep(&rest, ":");
    struct selection selection = {benchmark_named(word, strlen(word)), *options, ""};
    unsigned traits = selection.benchmark->traits;
    const bool has_it[] = {traits & COUNTED, !(traits & SIZELESS), selection.benchmark->title,
                           traits & WINDOWED};
    while ((word = strsep(&rest, ":"))) {
        char *value = word, *name = strsep(&value, "=");
        int which = 0;
        while (which < 4 && strcmp(names[which] + 2, name))
            which++;
        if (which == 4 || !has_it[which] || !value)
            refuse("--benchmark %s: %s is not an option of it (some have counts=, datatype=, "
                   "like=, window=)", selection.benchmark->name, name);
        store_option(&selection.options, option_named(names[which], strlen(names[which])), value);
        own[which] = true;
    }
    name_selection(&selection, own);
    refuse_what_cannot_be(&selection);
    return selection;
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
    free(copy);
    return selections;
}

#endif
