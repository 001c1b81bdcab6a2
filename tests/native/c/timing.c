/* The timing loop alone, in a world that a scenario makes: a clock, an operation, interruptions
 * and other ranks that are made up, so that what it finds can be known before.
 *
 * Words are NAME=VALUE; times in ns. Prints one line of JSON.
 */
#include "common/arguments.c"
#include "common/check.c"
#include "common/clock.h"
#include "common/memory.c"

const char program_name[] = "timing";

/* Computation is made up as well: it takes time of the scenario's clock. */
#define compute computes_for_real
#include "bench/compute.h"
#undef compute
static void compute(long steps);

#include "bench/buffers.c"
#include "bench/content.c"
#include "bench/measure.c"
#include "bench/message.c"
#include "bench/output.c"
#include "bench/table.c"

static struct {
    double cost, tick, jitter;        /* of the clock; every second reading costs that much more */
    double op, start, barrier;        /* an iteration, the first of a batch beside, a barrier */
    double every, stall, until;       /* interruptions: how often, how long, until when */
    double slow, from, quick;         /* iterations that take `stall` beside; each k-th does not */
    double hides;                     /* share of an iteration that passes beside computation */
    double slowed, disturbs;          /* bits: tries of the calibration; ns: the first time alone */
    double block, wrong;              /* a barrier that takes `stall`; another rank's data */
    double size, rank, bytes, budget, samples, iterations, warmup, osu, validate, first, again;
} world = {.cost = 20, .tick = 1, .op = 1000, .every = 1e18, .until = 1e18, .size = 2, .bytes = 8,
           .budget = 20, .samples = 100, .warmup = 10, .block = -1};

#define WORD(name) {#name, &world.name}
static const struct {
    const char *name;
    double *value;
} WORDS[] = {
    WORD(cost), WORD(tick), WORD(jitter), WORD(op), WORD(start), WORD(barrier),
    WORD(every), WORD(stall), WORD(until), WORD(slow), WORD(from), WORD(quick),
    WORD(block), WORD(wrong), WORD(size), WORD(rank), WORD(bytes), WORD(budget), WORD(samples), WORD(iterations), WORD(warmup),
    WORD(osu), WORD(validate), WORD(again), WORD(hides),
    WORD(slowed), WORD(disturbs),
};

static double elapsed, next_stall; /* ns */
static long calls, longest, barriers, syncs, reduces, apart, readings, told[3];
static long windows; /* that are open */
static double contributed[4]; /* first number of each reduction */
static bool at_barrier;

static void advance(double ns)
{
    elapsed += ns;
    while (elapsed >= next_stall && elapsed < world.until) {
        elapsed += world.stall;
        next_stall = elapsed + world.every;
    }
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    (void)clock;
    advance(world.cost + (readings++ % 2 ? world.jitter : 0));
    double ticks = (double)(long long)(elapsed / world.tick), at = 1e12 + ticks * world.tick;
    time->tv_sec = (time_t)(at / 1e9);
    time->tv_nsec = (long)(at - 1e9 * (double)time->tv_sec);
    return 0;
}

static bool beside; /* an iteration computes, nobody else */
static long calibrations, alone;

static void compute(long steps)
{
    bool calibrates = !beside && steps == CALIBRATION;
    advance((double)steps);
    if (calibrates && ((long)world.slowed >> calibrations++ & 1))
        advance((double)steps);
    if (!beside && !calibrates && !alone++)
        advance(world.disturbs);
}

static void iterate(struct run *run, long i)
{
    apart += at_barrier; /* iterations that came right after a barrier */
    at_barrier = false;
    bool slow = calls >= world.from && calls < world.from + world.slow;
    slow &= !world.quick || (calls + 1) % (long)world.quick;
    beside = true;
    compute(run->work);
    beside = false;
    advance(world.op * (run->work ? 1 - world.hides : 1) + (i == 0 ? world.start : 0) + (slow ? world.stall : 0));
    calls++;
    longest = i + 1 > longest ? i + 1 : longest;
}

/* ---- an MPI of which this process is all that there is ---- */

int MPI_Barrier(MPI_Comm comm)
{
    (void)comm;
    at_barrier = true;
    advance(world.barrier + ((double)barriers++ == world.block ? world.stall : 0));
    return MPI_SUCCESS;
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    (void)buffer, (void)comm;
    if (root)
        DIE("rank %d is asked", root);
    if (type == MPI_DOUBLE || count > 1)
        told[type == MPI_LONG ? 2 : count == 2]++;
    return count < 3 ? MPI_SUCCESS : MPI_ERR_COUNT;
}

int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm)
{
    (void)comm;
    if (from != MPI_IN_PLACE || count != 1 || type != MPI_INT || op != MPI_LAND)
        DIE("%d numbers of all", count);
    *(int *)to &= !world.wrong;
    return MPI_SUCCESS;
}

/* Rank r took 1 + r times as long as rank 0; of pairs, the first half alone counts. */
int MPI_Reduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm)
{
    (void)type, (void)comm;
    if (root || (reduces && reduces < 4 && count > 1))
        DIE("%d numbers to rank %d", count, root);
    const double *mine = from;
    double *all = to;
    int ranks = (int)world.first;
    for (int i = 0; i < count; i++) {
        all[i] = mine[i];
        for (int r = 1; r < ranks; r++)
            all[i] = op == MPI_SUM   ? all[i] + mine[i] * (1 + r)
                     : op == MPI_MAX ? larger(all[i], mine[i] * (1 + r))
                                     : smaller(all[i], mine[i] * (1 + r));
    }
    if (reduces < 4)
        contributed[reduces++] = mine[0];
    return MPI_SUCCESS;
}

int MPI_Win_allocate(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void *base,
                     MPI_Win *win)
{
    (void)unit, (void)info, (void)comm;
    *(void **)base = need((size_t)bytes + 1, 1);
    *win = (MPI_Win)1;
    windows++;
    return MPI_SUCCESS;
}

int MPI_Win_lock_all(int assert, MPI_Win win)
{
    (void)assert, (void)win;
    return MPI_SUCCESS;
}

int MPI_Win_unlock_all(MPI_Win win)
{
    (void)win;
    return MPI_SUCCESS;
}

int MPI_Win_sync(MPI_Win win)
{
    (void)win;
    syncs++;
    return MPI_SUCCESS;
}

int MPI_Win_free(MPI_Win *win)
{
    (void)win;
    windows--;
    return MPI_SUCCESS;
}

/* ---- */

static void read_word(const char *text)
{
    size_t length = strcspn(text, "=");
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (strlen(WORDS[i].name) == length && !strncmp(WORDS[i].name, text, length)) {
            *WORDS[i].value = atof(text + length + 1);
            return;
        }
    DIE("%s: no such word", text);
}

static void print_result(const struct run *run, struct clock clock, const struct result *result)
{
    struct figure figure = figure_of(run, run->benchmark->metric, result);
    printf("{\"cost\":%.10g,\"clock_resolution\":%.10g,\"batch\":%ld,\"count\":%d,\"value\":%.10g,"
           "\"resolution\":%.10g,\"rank_mean\":%.10g,\"rank_min\":%.10g,\"rank_max\":%.10g,"
           "\"calls\":%ld,\"longest\":%ld,\"barriers\":%ld,\"apart\":%ld,\"syncs\":%ld,"
           "\"windows\":%ld,\"rounds\":%u,\"elapsed\":%.10g,\"checked\":%d,\"valid\":%d,"
           "\"told\":[%ld,%ld,%ld],\"pure\":%.10g,\"compute\":%.10g,\"overall\":%.10g,"
           "\"overall_mean\":%.10g,\"overlap\":%.10g,\"first\":[%.10g,%.10g],\"work\":%ld,"
           "\"calibrations\":%ld,\"sent\":[",
           1e9 * clock.cost, 1e9 * clock.resolution, result->batch, result->count, figure.value,
           figure.resolution, 1e9 * result->rank_mean, 1e9 * result->rank_min,
           1e9 * result->rank_max, calls, longest, barriers, apart, syncs, windows, run->round,
           elapsed, result->checked, result->valid, told[0], told[1], told[2],
           1e9 * result->pure, 1e9 * result->compute, 1e9 * median_of(result->overall, result->count),
           1e9 * result->overall_mean, median_of(result->overlap, result->count),
           1e9 * result->overall[0], result->overlap[0], run->work, calibrations);
    for (int i = 0; i < 4; i++)
        printf("%s%.10g", i ? "," : "", contributed[i] < 1e300 ? 1e9 * contributed[i] : 1e300);
    printf("],\"samples\":[");
    for (int i = 0; i < result->count; i++)
        printf("%s%.10g", i ? "," : "", 1e9 * result->samples[i]);
    printf("]}\n");
}

/* timing BENCHMARK NAME=VALUE...: one size of it. */
int main(int argc, char **argv)
{
    struct benchmark benchmark = {0};
    for (int i = 0; i < BENCHMARK_COUNT; i++)
        if (argc > 1 && !strcmp(BENCHMARKS[i].name, argv[1]))
            benchmark = BENCHMARKS[i];
    if (!benchmark.name)
        DIE("no such benchmark");
    for (int i = 2; i < argc; i++)
        read_word(argv[i]);
    next_stall = world.every;
    benchmark.setup = nothing;
    benchmark.iterate = iterate;
    struct options options = {.budget = world.budget, .samples = (long long)world.samples,
                              .iterations = (long long)world.iterations, .window = 64,
                              .warmup = (long long)world.warmup, .no_validate = !world.validate,
                              .like = world.osu ? LIKE_OSU : LIKE_ITSELF};
    struct run run = {.options = &options, .benchmark = &benchmark, .size = (int)world.size,
                      .rank = (int)world.rank};
    run.leads = run.rank < run.size / 2;
    world.first = benchmark.ranks == EVERYONE ? run.size : run.leads ? run.size / 2 : 1;
    struct result result = {.samples = need((size_t)options.samples, sizeof(double)),
                            .overall = need((size_t)options.samples, sizeof(double)),
                            .overlap = need((size_t)options.samples, sizeof(double))};
    struct clock clock = examine_clock();
    elapsed = 0;
    next_stall = world.every;
    measure_size(&run, (size_t)world.bytes, clock, !world.again, &result);
    print_result(&run, clock, &result);
    free(result.samples);
    free(result.overall);
    free(result.overlap);
    return 0;
}
