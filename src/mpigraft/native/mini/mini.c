/* mpigraft-mini: small applications that measure one MPI as real ones do. Started by the MPI's own
 * launcher; rank 0 prints.
 *
 * The flow: options, MPI_Init, the problem, one sample that is checked against a serial solution,
 * samples until the budget is spent, a last check, and a value for the iteration and each part.
 * Exit status 1: the result is wrong; 2: bad usage; 3: MPI failed, or the problem cannot be made.
 */

#include "mini.h"

/* ---- memory ---- */

/* End with words where the ranks of a node need more memory than it has. `bytes` of this rank. */
void require_memory(const struct mini *mini, double bytes)
{
    MPI_Comm host;
    OK(MPI_Comm_split_type(mini->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    double all = 0, room = memory_for_buffers();
    OK(MPI_Allreduce(&bytes, &all, 1, MPI_DOUBLE, MPI_SUM, host));
    OK(MPI_Comm_free(&host));
    if (all > room)
        DIE("this problem needs %.3g MiB on a node, and %.3g MiB are free; use a smaller --size "
            "or --local", all / 0x1p20, room / 0x1p20);
}

#ifndef SPOILED
#define SPOILED 0 /* 1 in a build of the tests */
#endif

struct wire make_wire(const struct mini *mini, size_t count)
{
    struct wire wire = {.memory = &MEMORIES[mini->options->buffers], .count = count,
                        .spoiled = SPOILED && mini->comm == MPI_COMM_WORLD};
    wire.host = host_allocate(count * sizeof(double));
    wire.mpi = wire.memory->upload ? wire.memory->allocate(count * sizeof(double)) : wire.host;
    return wire;
}

void free_wire(struct wire *wire)
{
    if (wire->mpi != wire->host)
        wire->memory->release(wire->mpi);
    free(wire->host);
}

/* ---- ranks ---- */

bool all_agree(const struct mini *mini, bool right)
{
    int every = right;
    OK(MPI_Allreduce(MPI_IN_PLACE, &every, 1, MPI_INT, MPI_LAND, mini->comm));
    return every;
}

/* Say on stderr what is wrong, once for each rank. Returns false. */
bool wrong(const struct mini *mini, const char *what, double got, double expected)
{
    fprintf(stderr, "%s: rank %d: wrong result: %s: %s: %.17g, not %.17g\n", program_name, mini->rank,
            mini->app->name, what, got, expected);
    return false;
}

const char program_name[] = "mpigraft-mini";

static const struct app *const APPS[] = {&DIRAC, &HALO, &OCEAN, &PARTICLES, &TRANSPOSE};

enum { APP_COUNT = sizeof APPS / sizeof *APPS };

static const struct app *app_named(const char *name)
{
    for (int i = 0; i < APP_COUNT; i++)
        if (name && !strcmp(APPS[i]->name, name))
            return APPS[i];
    refuse("--app %s: no such mini-app (--list names them)", name ? name : "is missing");
}

/* ---- samples ---- */

/* Seconds per iteration: of the whole, then of each part. */
struct samples {
    double *value; /* `width` of each sample */
    int count, width, parts;
    long iterations; /* of one sample */
};

static long chosen_by_rank_0(const struct mini *mini, long value)
{
    OK(MPI_Bcast(&value, 1, MPI_LONG, 0, mini->comm));
    return value;
}

static long take_sample(struct mini *mini, void *state, double *value, int parts)
{
    memset(mini->part, 0, sizeof mini->part);
    OK(MPI_Barrier(mini->comm));
    double begin = mini->mark = now();
    long iterations = mini->app->run(mini, state);
    value[0] = (now() - begin) / (double)iterations;
    for (int p = 0; p < parts; p++)
        value[1 + p] = mini->part[p] / (double)iterations;
    return iterations;
}

static void take_samples(struct mini *mini, void *state, struct samples *samples)
{
    enum { LEAST = 3 };
    double deadline = now() + 1e-3 * mini->options->budget;
    for (bool more = true; more; samples->count++) {
        double *value = samples->value + samples->count * samples->width;
        samples->iterations = take_sample(mini, state, value, samples->parts);
        int done = samples->count + 1;
        more = chosen_by_rank_0(mini, done < mini->options->samples &&
                                          (done < LEAST || now() < deadline));
    }
}

/* On rank 0: the slowest rank's time of an iteration, and the mean over ranks of its parts, which
 * add up to the mean of the whole. */
static void reduce_samples(const struct mini *mini, struct samples *samples)
{
    int numbers = samples->count * samples->width;
    double *sums = need((size_t)numbers, sizeof *sums), *most = need((size_t)numbers, sizeof *most);
    OK(MPI_Reduce(samples->value, sums, numbers, MPI_DOUBLE, MPI_SUM, 0, mini->comm));
    OK(MPI_Reduce(samples->value, most, numbers, MPI_DOUBLE, MPI_MAX, 0, mini->comm));
    for (int i = 0; i < numbers; i++)
        samples->value[i] = i % samples->width ? sums[i] / mini->size : most[i];
    free(sums);
    free(most);
}

/* ---- output ---- */

/* Print one row of samples. A part that took no time has no value: there is nothing to compare. */
static int print_value(const struct mini *mini, const struct samples *samples, int row, bool valid,
                       double resolution)
{
    int n = samples->count;
    double *values = need((size_t)n, sizeof *values), *sorted = need((size_t)n, sizeof *sorted);
    for (int i = 0; i < n; i++)
        sorted[i] = values[i] = 1e6 * samples->value[i * samples->width + row];
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    bool nothing = !(sorted[0] > 0);
    if (!nothing) {
        printf("{\"mpigraft\":\"value\",\"benchmark\":\"%s\",\"metric\":\"%s\",\"unit\":\"us\","
               "\"size\":0,\"value\":%.6g,\"resolution\":%.3g,\"mean\":%.6g,\"min\":%.6g,"
               "\"max\":%.6g,\"p90\":%.6g,\"p99\":%.6g,\"iterations\":%ld,\"batch\":%ld,"
               "\"valid\":%s,\"samples\":[",
               mini->label, row ? mini->app->parts[row - 1] : "iteration",
               quantile(sorted, n, 0.5), 1e6 * resolution, mean_of(values, n), sorted[0],
               sorted[n - 1], quantile(sorted, n, 0.9), quantile(sorted, n, 0.99),
               samples->iterations * n, samples->iterations,
               mini->options->no_validate ? "null" : valid ? "true" : "false");
        for (int i = 0; i < n; i++)
            printf("%s%.6g", i ? "," : "", values[i]);
        printf("]}\n");
        fflush(stdout);
    }
    free(values);
    free(sorted);
    return !nothing;
}

/* ---- the whole ---- */

static bool is_right(struct mini *mini, void *state)
{
    return mini->options->no_validate || all_agree(mini, mini->app->check(mini, state));
}

/* Returns how many values were printed; -1 where the result is wrong. */
static int measure(struct mini *mini, void *state, struct clock clock)
{
    struct samples samples = {.parts = 0};
    while (mini->app->parts[samples.parts])
        samples.parts++;
    samples.width = 1 + samples.parts;
    samples.value = need((size_t)(mini->options->samples * samples.width), sizeof(double));
    take_sample(mini, state, samples.value, samples.parts); /* warms up, and is checked */
    bool right = is_right(mini, state);
    int values = 0;
    if (right) {
        take_samples(mini, state, &samples);
        right = is_right(mini, state);
        reduce_samples(mini, &samples);
        double resolution = clock.resolution / (double)samples.iterations;
        for (int row = 0; row < samples.width && mini->rank == 0; row++)
            values += print_value(mini, &samples, row, right, resolution);
    }
    free(samples.value);
    OK(MPI_Bcast(&values, 1, MPI_INT, 0, mini->comm));
    if (mini->rank == 0)
        printf("{\"mpigraft\":\"end\",\"values\":%d,\"phases\":0}\n", values);
    return right;
}

static bool run_app(struct mini *mini, const struct world *world, int argc, char **argv)
{
    if (mini->rank == 0)
        print_begin(world, mini->options->buffers);
    struct use_before before = use_begins(world->host);
    void *state = mini->app->open(mini);
    make_label(mini, argc, argv);
    bool right = measure(mini, state, world->clock);
    use_ends(world->host, mini->rank, NULL, &before);
    mini->app->close(state);
    fflush(stdout);
    return right;
}

int main(int argc, char **argv)
{
    struct mini_options options = parse_mini_options(argc, argv);
    if (options.help)
        print_mini_help();
    for (int i = 0; i < APP_COUNT && options.list && !options.help; i++)
        puts(APPS[i]->name);
    if (options.help || options.list)
        return 0;
    struct mini mini = {.options = &options, .app = app_named(options.app)};
    open_memory(options.buffers);
    setvbuf(stdout, NULL, _IOFBF, 1 << 20); /* a line leaves in one piece */
    MPI_Init(&argc, &argv);
    struct world world = enter_world();
    mini.comm = MPI_COMM_WORLD;
    mini.rank = world.rank;
    mini.size = world.size;
    warn_of_unaware_mpi(options.buffers);
    bool right = run_app(&mini, &world, argc, argv);
    leave_world(&world);
    return right ? 0 : EXIT_INVALID;
}
