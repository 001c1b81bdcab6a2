/* The command line: what is asked of all benchmarks, and of one alone. */
#ifndef MPIGRAFT_OPTIONS_H
#define MPIGRAFT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

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

struct benchmark;

struct selection {
    const struct benchmark *benchmark;
    struct options options; /* of the whole, with its own on top */
    char label[160];        /* alltoallv,counts=sparse: what results are named by */
};

extern const char *const DATATYPES[];

void print_help(void);
struct options parse_options(int argc, char **argv);
const struct benchmark *benchmark_named(const char *name, size_t length);
struct selection *select_benchmarks(const struct options *options, int *count);

#endif
