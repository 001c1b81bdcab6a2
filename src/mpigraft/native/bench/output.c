/* What rank 0 prints. */
#include <math.h>

#include "../common/check.h"
#include "../common/memory.h"
#include "../common/statistics.h"
#include "output.h"

const struct metric_row METRICS[] = {[LATENCY] = {"latency", "us"},
                                            [BANDWIDTH] = {"bandwidth", "MB/s"},
                                            [BANDWIDTH_AND_RATE] = {"message_rate", "messages/s"},
                                            [INIT_TIME] = {"init_time", "ms"},
                                            [LAUNCH_TIME] = {"launch_time", "ms"},
                                            [MEMORY] = {"memory", "MiB"},
                                            [OVERLAP] = {"overlap", "%"}};

/* Messages of one iteration, over all pairs. */
static double messages_of(const struct run *run)
{
    return (double)run->window * (has(run, BOTH_WAYS) ? 2 : 1) * (run->size / 2);
}

/* Seconds per iteration in the unit of `metric`. */
static double in_unit(const struct run *run, enum metric metric, size_t bytes, double seconds)
{
    double messages = messages_of(run);
    switch (metric) {
    case LATENCY: return seconds * 1e6 / (has(run, HALVES) ? 2 : 1);
    case BANDWIDTH: return messages * (double)bytes / seconds / 1e6;
    case BANDWIDTH_AND_RATE: return messages / seconds;
    case INIT_TIME:
    case LAUNCH_TIME: return seconds * 1e3;
    default: return seconds; /* MiB of memory and percent of overlap as they are */
    }
}

/* The value of the samples: their median, or as OSU has it what the mean time makes. */
struct figure figure_of(const struct run *run, enum metric metric,
                        const struct result *result)
{
    int n = result->count;
    double seconds = like_osu(run) ? mean_of(result->samples, n) : median_of(result->samples, n);
    double value = in_unit(run, metric, result->size, seconds);
    double next = in_unit(run, metric, result->size, seconds + result->resolution);
    return (struct figure){value, fabs(next - value)};
}

static void print_value(const struct run *run, enum metric metric, const struct result *result)
{
    struct figure figure = figure_of(run, metric, result);
    int n = result->count;
    double *values = need((size_t)n, sizeof *values), *sorted = need((size_t)n, sizeof *sorted);
    for (int i = 0; i < n; i++)
        sorted[i] = values[i] = in_unit(run, metric, result->size, result->samples[i]);
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    printf("{\"mpigraft\":\"value\",\"benchmark\":\"%s\",\"metric\":\"%s\",\"unit\":\"%s\","
           "\"size\":%zu,\"value\":%.6g,\"resolution\":%.3g,\"mean\":%.6g,\"min\":%.6g,"
           "\"max\":%.6g,\"p90\":%.6g,\"p99\":%.6g,",
           run->label, METRICS[metric].name, METRICS[metric].unit, result->size, figure.value,
           figure.resolution, mean_of(values, n), sorted[0], sorted[n - 1],
           quantile(sorted, n, 0.9), quantile(sorted, n, 0.99));
    if (metric == LATENCY)
        printf("\"rank_mean\":%.6g,", in_unit(run, metric, result->size, result->rank_mean));
    if (metric == OVERLAP)
        printf("\"compute\":%.6g,", 1e6 * result->compute);
    printf("\"iterations\":%ld,\"batch\":%ld,\"valid\":%s,\"samples\":[",
           result->batch * result->count, result->batch,
           !result->checked ? "null" : result->valid ? "true" : "false");
    for (int i = 0; i < n; i++)
        printf("%s%.6g", i ? "," : "", values[i]);
    printf("]}\n");
    fflush(stdout);
    free(values);
    free(sorted);
}

/* With computation beside the call: how long both take, and how much of the call that hides. */
static void print_overlap(const struct run *run, const struct result *result)
{
    struct result with = *result;
    with.samples = result->overlap;
    with.resolution = 100 * result->resolution / result->pure;
    print_value(run, OVERLAP, &with);
    char label[200];
    snprintf(label, sizeof label, "%s,time=overall", run->label);
    struct run both = *run;
    both.label = label;
    with.samples = result->overall;
    with.rank_mean = result->overall_mean;
    with.resolution = result->resolution;
    print_value(&both, LATENCY, &with);
}

/* Each metric of a benchmark is a value. */
int print_json(const struct run *run, const struct result *result)
{
    bool rate = run->benchmark->metric == BANDWIDTH_AND_RATE;
    if (rate)
        print_value(run, BANDWIDTH, result);
    print_value(run, run->benchmark->metric, result);
    if (has(run, OVERLAPS))
        print_overlap(run, result);
    return 1 + rate + 2 * has(run, OVERLAPS);
}

/* ---- OSU 7.4: columns of 10, 18, 18 ... characters ---- */

/* How OSU names --sync. */
static const char *const OSU_SYNCS[] = {"flush", "fence", "post/start/complete/wait",
                                        "lock/unlock"};

static void osu_overlap_header(const struct run *run)
{
    if (has(run, SIZELESS))
        printf("# %16s", "Overall(us)");
    else
        printf("# Datatype: %s.\n%-10s%18s",
               has(run, REDUCES) && !like_osu(run) ? "MPI_FLOAT" : "MPI_CHAR", "# Size",
               "Overall(us)");
    printf("%18s%18s%18s", "Compute(us)", "Pure Comm.(us)", "Overlap(%)");
    if (!run->options->no_validate && !has(run, SIZELESS))
        printf("%18s", "Validation");
    putchar('\n');
}

static void osu_overlap_row(const struct run *run, const struct result *result)
{
    double overall = result->overall_mean, pure = result->pure;
    if (has(run, SIZELESS))
        printf("%18.2f", 1e6 * overall);
    else
        printf("%-10zu%18.2f", result->size, 1e6 * overall);
    printf("%18.2f%18.2f%18.2f", 1e6 * result->compute, 1e6 * pure,
           overlap_of(overall, result->compute, pure));
    if (result->checked)
        printf("%18s", result->valid ? "Pass" : "Fail");
    putchar('\n');
}

void osu_header(const struct run *run)
{
    const struct benchmark *benchmark = run->benchmark;
    bool one_sided = has(run, PUTS | GETS), pairs = benchmark->metric == BANDWIDTH_AND_RATE;
    if (benchmark->metric == INIT_TIME || one_sided || pairs)
        printf("# OSU %s Test v7.4\n", benchmark->title);
    else
        printf("\n# OSU %s Test v7.4\n", benchmark->title);
    if (benchmark->metric == INIT_TIME)
        return;
    if (one_sided)
        printf("# Window creation: MPI_Win_%s\n# Synchronization: MPI_Win_%s\n",
               run->options->buffers == BUFFERS_HOST ? "allocate" : "create",
               OSU_SYNCS[run->options->sync]);
    if (has(run, OVERLAPS)) {
        printf("# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait\n\n");
        osu_overlap_header(run);
        return;
    }
    if (pairs)
        printf("# [ pairs: %d ] [ window size: %lld ]\n", run->size / 2, run->options->window);
    if (has(run, SIZELESS)) {
        printf("# %s\n", "Avg Latency(us)");
        return;
    }
    printf("# Datatype: %s.\n", has(run, REDUCES) && !like_osu(run) ? "MPI_FLOAT" : "MPI_CHAR");
    printf("%-10s", "# Size");
    if (pairs)
        printf("%18s%18s", "MB/s", "Messages/s");
    else if (benchmark->metric == BANDWIDTH)
        printf("%18s", "Bandwidth (MB/s)");
    else
        printf("%18s", one_sided ? "Latency (us)" : "Avg Latency(us)");
    if (!run->options->no_validate)
        printf("%18s", "Validation");
    putchar('\n');
}

static void osu_row(const struct run *run, const struct result *result)
{
    size_t size = result->size;
    double seconds = mean_of(result->samples, result->count);
    if (has(run, SIZELESS)) {
        printf("%17.2f\n", in_unit(run, LATENCY, size, result->rank_mean));
        return;
    }
    printf("%-10zu", size);
    if (run->benchmark->metric == LATENCY)
        printf("%18.2f", in_unit(run, LATENCY, size, result->rank_mean));
    else
        printf("%18.2f", in_unit(run, BANDWIDTH, size, seconds));
    if (run->benchmark->metric == BANDWIDTH_AND_RATE)
        printf("%18.2f", in_unit(run, BANDWIDTH_AND_RATE, size, seconds));
    if (result->checked)
        printf("%18s", result->valid ? "Pass" : "Fail");
    putchar('\n');
    if (result->checked && !result->valid)
        printf("DATA VALIDATION ERROR: %s exited with status 1 on message size %zu.\n",
               run->benchmark->name, size);
}

int print_osu(const struct run *run, const struct result *result)
{
    if (has(run, OVERLAPS))
        osu_overlap_row(run, result);
    else if (run->benchmark->metric == INIT_TIME)
        printf("nprocs: %d, min: %.0f ms, max: %.0f ms, avg: %.0f ms\n", run->size,
               1e3 * result->rank_min, 1e3 * result->rank_max, 1e3 * result->rank_mean);
    else
        osu_row(run, result);
    fflush(stdout);
    return 1;
}
