/* mpigraft-bench: measures one MPI. Started by the MPI's own launcher; rank 0 prints.
 *
 * The flow: options, MPI_Init, and for each benchmark its ranks, sizes that fit into memory,
 * and one value per size. Exit status 1: data arrived wrong; 2: bad usage; 3: MPI failed.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "mpi_functions.h"
#include "../common/check.h"
#include "../common/clock.h"
#include "../common/conditions.h"
#include "measure.h"
#include "../common/memory.h"
#include "../common/world.h"
#include "message.h"
#include "options.h"
#include "output.h"
#include "run.h"

const char program_name[] = "mpigraft-bench";

struct bench {
    struct world world;
    double init_s;   /* what MPI_Init took here */
    double launch_s; /* from --launched until the last rank was there, on rank 0 */
    int values;      /* printed so far */
    bool valid;      /* all of them */
};

/* ---- ranks and sizes ---- */

/* The communicator of the ranks that take part, MPI_COMM_NULL on the others. In pairs the first
 * half of the hosts meets the second, whichever way the launcher dealt the ranks. */
static MPI_Comm taking_part(const struct world *world, const struct benchmark *benchmark)
{
    int half = world->size / 2;
    bool in = benchmark->ranks == PAIR    ? world->spot == 0 || world->spot == half
              : benchmark->ranks == PAIRS ? world->spot < 2 * half
                                          : true;
    bool by_host = benchmark->ranks == PAIR || benchmark->ranks == PAIRS;
    MPI_Comm comm;
    OK(MPI_Comm_split(MPI_COMM_WORLD, in ? 0 : MPI_UNDEFINED,
                      by_host ? world->spot : world->rank, &comm));
    if (comm != MPI_COMM_NULL)
        OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    return comm;
}

static struct run make_run(const struct selection *selection, MPI_Comm comm)
{
    struct run run = {.options = &selection->options,
                      .benchmark = selection->benchmark,
                      .label = selection->label,
                      .comm = comm};
    if (comm == MPI_COMM_NULL)
        return run;
    OK(MPI_Comm_rank(comm, &run.rank));
    OK(MPI_Comm_size(comm, &run.size));
    run.leads = run.rank < run.size / 2;
    run.peer = run.leads ? run.rank + run.size / 2 : run.rank - run.size / 2;
    return run;
}

/* What messages of a size need and may not get. */
struct needs {
    double memory; /* over what is free, on the worst node */
    int missing;   /* enum call: the function for large counts that this MPI lacks */
};

static struct needs needs_of(const struct world *world, struct run *run, size_t bytes)
{
    double mine = 0, node = 0, room = memory_for_buffers();
    struct needs own = {.missing = NO_CALL}, worst;
    if (run->comm != MPI_COMM_NULL) {
        plan_size(run, bytes);
        mine = (double)bytes_of_messages(run);
        own.missing = run->large ? missing_call(run->benchmark) : NO_CALL;
        forget_areas(run);
    }
    OK(MPI_Allreduce(&mine, &node, 1, MPI_DOUBLE, MPI_SUM, world->host));
    own.memory = node / room;
    OK(MPI_Allreduce(&own.memory, &worst.memory, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
    OK(MPI_Allreduce(&own.missing, &worst.missing, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    return worst;
}

static bool available(const struct needs *needs)
{
    return needs->memory <= 1 && !needs->missing;
}

/* Say why messages of `bytes` are not measured, on rank 0. */
static void explain(const struct run *run, size_t bytes, const struct needs *needs)
{
    fprintf(stderr, "messages of %zu B need ", bytes);
    if (needs->missing == INTS_ALONE)
        fprintf(stderr, "counts or displacements over %d, which this benchmark has not",
                INT_LIMIT);
    else if (needs->missing)
        fprintf(stderr, "counts or displacements over %d, and this MPI has no %s", INT_LIMIT,
                name_of((enum call)needs->missing));
    else
        fprintf(stderr, "%.3g times the memory that is free on a node", needs->memory);
    fprintf(stderr, run->options->max_asked ? "; use a smaller --max\n" : "\n");
}

/* The largest size to run, or 0 where none fits. A size that was asked for is never dropped. */
static size_t largest_size(const struct world *world, struct run *run)
{
    const struct options *options = run->options;
    size_t asked = (size_t)options->min;
    while (asked * 2 <= (size_t)options->max)
        asked *= 2;
    size_t size = asked;
    struct needs needs = needs_of(world, run, size), larger = needs;
    while (!available(&needs) && !options->max_asked && size / 2 >= (size_t)options->min) {
        size /= 2;
        larger = needs;
        needs = needs_of(world, run, size);
    }
    bool none = !available(&needs);
    if (world->rank == 0 && (none || size < asked)) {
        fprintf(stderr, "mpigraft-bench: %s: ", run->benchmark->name);
        if (!none)
            fprintf(stderr, "sizes over %zu B are left out: ", size);
        explain(run, none ? size : 2 * size, none ? &needs : &larger);
    }
    if (none && options->max_asked) {
        OK(MPI_Finalize());
        exit(EXIT_USAGE);
    }
    return none ? 0 : size;
}

static void finish_together(void)
{
    MPI_Request request;
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

/* ---- one benchmark ---- */

static void print_result(struct bench *bench, const struct run *run, const struct result *result)
{
    if (bench->world.rank == 0)
        bench->values += run->options->format == FORMAT_OSU ? print_osu(run, result)
                                                            : print_json(run, result);
    bench->valid &= result->valid;
}

static double startup_cost(const struct bench *bench, const struct run *run)
{
    switch (run->benchmark->metric) {
    case INIT_TIME: return bench->init_s;
    case LAUNCH_TIME: return bench->launch_s; /* rank 0 knows it, the others have 0 */
    default: return memory_after_talking(run->comm);
    }
}

/* The smallest step of that: seconds, or the MiB of a KiB, in which the kernel counts memory.
 * --launched comes with six decimals. */
static double startup_resolution(const struct bench *bench, const struct run *run)
{
    switch (run->benchmark->metric) {
    case INIT_TIME: return bench->world.clock.resolution;
    case LAUNCH_TIME: return 1e-6;
    default: return 1.0 / 1024;
    }
}

/* One number per rank; the value is the worst rank's, and of OSU's kind the mean. */
static void report_startup(struct bench *bench, struct run *run)
{
    double mine = startup_cost(bench, run);
    double sample = 0;
    struct result result = {.samples = &sample, .count = 1, .batch = 1, .valid = true};
    OK(MPI_Reduce(&mine, &result.rank_mean, 1, MPI_DOUBLE, MPI_SUM, 0, run->comm));
    OK(MPI_Reduce(&mine, &result.rank_min, 1, MPI_DOUBLE, MPI_MIN, 0, run->comm));
    OK(MPI_Reduce(&mine, &result.rank_max, 1, MPI_DOUBLE, MPI_MAX, 0, run->comm));
    result.rank_mean /= run->size;
    sample = like_osu(run) ? result.rank_mean : result.rank_max;
    result.resolution = startup_resolution(bench, run);
    print_result(bench, run, &result);
}

static void run_sizes(struct bench *bench, struct run *run, size_t largest)
{
    struct result result = {0};
    result.samples = need((size_t)run->options->samples, sizeof *result.samples);
    result.overall = need((size_t)run->options->samples, sizeof *result.overall);
    result.overlap = need((size_t)run->options->samples, sizeof *result.overlap);
    size_t first = has(run, SIZELESS)     ? 0
                   : has(run, ONE_NUMBER) ? largest
                                          : (size_t)run->options->min;
    for (size_t size = first; size <= largest; size = size ? size * 2 : 1) {
        measure_size(run, size, bench->world.clock, size == first, &result);
        print_result(bench, run, &result);
        if (has(run, SIZELESS))
            break;
    }
    free(result.samples);
    free(result.overall);
    free(result.overlap);
}

/* The first rank of each host meets all the others. */
static void run_hosts(struct bench *bench, const struct selection *selection)
{
    int place, count;
    MPI_Comm hosts;
    OK(MPI_Comm_rank(bench->world.host, &place));
    OK(MPI_Comm_split(MPI_COMM_WORLD, place ? MPI_UNDEFINED : 0, bench->world.spot, &hosts));
    if (hosts != MPI_COMM_NULL) {
        OK(MPI_Comm_set_errhandler(hosts, MPI_ERRORS_RETURN));
        OK(MPI_Comm_size(hosts, &count));
        if (count < 2)
            DIE("%s: all ranks are on one host", selection->benchmark->name);
        bench->values += run_pairs(&selection->options, hosts, bench->world.clock, &bench->valid);
        finish_together();
        OK(MPI_Comm_free(&hosts));
    } else {
        wait_idle(MPI_COMM_WORLD); /* takes nothing from those that measure */
    }
}

static void run_benchmark(struct bench *bench, const struct selection *selection)
{
    const struct benchmark *benchmark = selection->benchmark;
    if (benchmark->ranks == HOSTS) {
        run_hosts(bench, selection);
        return;
    }
    if (benchmark->traits & PARTITIONED)
        introduce_partitions(bench->world.rank);
    MPI_Comm comm = taking_part(&bench->world, benchmark);
    struct run run = make_run(selection, comm);
    size_t largest = benchmark->traits & SIZELESS     ? 1
                     : benchmark->traits & ONE_NUMBER ? sizeof(uint64_t)
                                                      : largest_size(&bench->world, &run);
    if (bench->world.rank == 0 && run.options->format == FORMAT_OSU)
        osu_header(&run);
    if (benchmark->ranks == STARTUP)
        report_startup(bench, &run);
    else if (comm != MPI_COMM_NULL)
        run_sizes(bench, &run, largest);
    if (comm != MPI_COMM_NULL) {
        finish_together();
        OK(MPI_Comm_free(&comm));
    } else {
        wait_idle(MPI_COMM_WORLD);
    }
}

/* ---- the whole ---- */

static bool needs_two(const struct selection *selections, int count)
{
    bool needs = false;
    for (int i = 0; i < count; i++)
        needs |= selections[i].benchmark->ranks < EVERYONE;
    return needs;
}

/* Run a benchmark, and say who used the CPUs meanwhile: not of a start, which is over by now. */
static void run_observed(struct bench *bench, const struct selection *selection)
{
    bool observed = selection->options.format == FORMAT_JSON &&
                    selection->benchmark->ranks != STARTUP;
    struct use_before before;
    if (observed)
        before = use_begins(bench->world.host);
    run_benchmark(bench, selection);
    if (observed)
        use_ends(bench->world.host, bench->world.rank, selection->label, &before);
}

static void run_all(struct bench *bench, const struct selection *selections, int count)
{
    for (int i = 0; i < count; i++)
        run_observed(bench, &selections[i]);
    int valid = bench->valid;
    OK(MPI_Bcast(&valid, 1, MPI_INT, 0, MPI_COMM_WORLD));
    bench->valid = valid;
}

/* --help and --list: no MPI is started. */
static bool answered(const struct options *options)
{
    if (options->help)
        print_help();
    bool osu = options->like == LIKE_OSU;
    for (int i = 0; i < BENCHMARK_COUNT && options->list && !options->help; i++)
        if (!osu || BENCHMARKS[i].title)
            printf("%s%s\n", BENCHMARKS[i].name, osu ? ",like=osu" : "");
    return options->help || options->list;
}

static void measure(struct bench *bench, const struct options *options,
                    const struct selection *selections, int count)
{
    bool json = options->format == FORMAT_JSON;
    if (bench->world.rank == 0 && json)
        print_begin(&bench->world, options->buffers);
    struct use_before before;
    if (json)
        before = use_begins(bench->world.host);
    run_all(bench, selections, count);
    if (json)
        use_ends(bench->world.host, bench->world.rank, NULL, &before);
    if (bench->world.rank == 0 && json)
        printf("{\"mpigraft\":\"end\",\"values\":%d,\"phases\":0}\n", bench->values);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct options options = parse_options(argc, argv);
    if (answered(&options))
        return 0;
    int count;
    struct selection *selections = select_benchmarks(&options, &count);
    open_memory(options.buffers);
    setvbuf(stdout, NULL, _IOFBF, 1 << 20); /* a line leaves in one piece */
    bind_added_calls();
    struct bench bench = {.valid = true};
    double begin = now();
    start_mpi(&argc, &argv, selections->benchmark->traits & THREADED);
    bench.init_s = now() - begin;
    if (options.launched > 0)
        bench.launch_s = since_launch(options.launched);
    bench.world = enter_world();
    warn_of_unaware_mpi(options.buffers);
    bool enough = bench.world.size > 1 || !needs_two(selections, count);
    if (enough)
        measure(&bench, &options, selections, count);
    else
        fprintf(stderr, "mpigraft-bench: this needs two ranks or more; the world has one\n");
    forget_content();
    free(selections);
    leave_world(&bench.world);
    return !enough ? EXIT_USAGE : bench.valid ? 0 : EXIT_INVALID;
}
