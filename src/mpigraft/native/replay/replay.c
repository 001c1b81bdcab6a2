/* mpigraft-replay: make the calls of a record (record_file.h) on the MPI that starts this.
 *
 *     mpigraft-replay FILE [--gaps FACTOR|none] [--check] [--only ROUTINE,...] [--seed N] [--table]
 *                     [--patience SECONDS]
 *
 * Rank 0 prints JSON lines as mpigraft-bench does: the time of the whole, and of each routine.
 * With --table it prints them for people, beside the program's own.
 */
#include <limits.h>

#include "replay.h"

const char program_name[] = PROGRAM;

struct replay_options {
    const char *file, *only;
    double gaps, patience;
    bool check, table;
    uint64_t seed;
};

static void usage(const char *problem, const char *word_given)
{
    fprintf(stderr, PROGRAM ": %s%s\nusage: " PROGRAM
                            " FILE [--gaps FACTOR|none] [--check] [--only ROUTINE,...] [--seed N]\n",
            problem, word_given);
    exit(EXIT_USAGE);
}

static double factor_of(const char *text)
{
    char *end;
    double factor = strtod(text, &end);
    if (!strcmp(text, "none"))
        return 0;
    if (end == text || *end || !(factor >= 0 && factor <= 1e6))
        usage("--gaps takes a factor from 0 to 1000000, or none, and not ", text);
    return factor;
}

static struct replay_options parse_replay(int argc, char **argv)
{
    struct replay_options options = {.gaps = -1};
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(argv[i], "--check")) {
            options.check = true;
        } else if (!strcmp(argv[i], "--table")) {
            options.table = true;
        } else if (!strncmp(argv[i], "--", 2)) {
            if (!next)
                usage("a value is missing after ", argv[i]);
            if (!strcmp(argv[i], "--gaps"))
                options.gaps = factor_of(next);
            else if (!strcmp(argv[i], "--only"))
                options.only = next;
            else if (!strcmp(argv[i], "--patience"))
                options.patience = strtod(next, NULL);
            else if (!strcmp(argv[i], "--seed"))
                options.seed = strtoull(next, NULL, 10);
            else
                usage("there is no option ", argv[i]);
            i++;
        } else if (options.file)
            usage("one file is replayed, and this is another: ", argv[i]);
        else
            options.file = argv[i];
    }
    if (!options.file)
        usage("the file is missing", "");
    options.gaps = options.gaps >= 0 ? options.gaps : options.only ? 0 : 1;
    return options;
}

/* ---- reading ---- */

static bool read_signatures(struct bytes *bytes, uint64_t count)
{
    if (count > (uint64_t)(bytes->end - bytes->at))
        return refuse_record("it has too many signatures");
    record.call_count = count;
    record.calls = need(count, sizeof *record.calls);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t length = read_unsigned(bytes);
        struct bytes one = take_bytes(bytes, length);
        if (bytes->bad)
            return refuse_record("its signatures are cut short");
        if (!read_call(&one, &record.calls[i]))
            return false;
    }
    return bytes->at == bytes->end || refuse_record("its signatures are too long");
}

static bool read_nodes(struct bytes bytes)
{
    while (bytes.at < bytes.end)
        if (!read_node(&bytes, 0))
            return false;
    return true;
}

static bool read_record(const unsigned char *data, uint64_t length, int rank, int size)
{
    struct record_head head;
    struct bytes bytes = {data + sizeof head, data + length, false};
    memcpy(&head, data, sizeof head);
    uint64_t table = head.routines * sizeof(struct record_routine);
    if (memcmp(head.magic, RECORD_MAGIC, 16) || head.version != RECORD_VERSION)
        return refuse_record("its part is no record of this version");
    if (head.rank != rank || head.size != size || head.routines > 4096 || !(head.ticks_per_s > 0))
        return refuse_record("its part is of another rank");
    struct bytes names = take_bytes(&bytes, table);
    struct bytes signatures = take_bytes(&bytes, head.signature_bytes);
    struct bytes nodes = take_bytes(&bytes, head.node_bytes);
    if (bytes.bad || bytes.at != bytes.end)
        return refuse_record("its part is cut short or too long");
    record.routine_count = head.routines;
    record.routines = need(head.routines, sizeof *record.routines);
    for (uint32_t i = 0; i < head.routines; i++) {
        memcpy(record.routines[i].name, names.at + i * sizeof(struct record_routine), RECORD_NAME - 1);
        memcpy(record.routines[i].fields, names.at + i * sizeof(struct record_routine) + RECORD_NAME,
               RECORD_FIELDS - 1);
    }
    record.ticks_per_s = head.ticks_per_s;
    record.threads = head.lacks & SEVERAL_THREADS;
    walk.scale /= head.ticks_per_s; /* times the rate here */
    return read_signatures(&signatures, head.signatures) && read_nodes(nodes);
}

/* On all ranks or on none; the first rank that has a reason says it. */
static void agree_or_end(const char *file, const char *problem, bool named)
{
    int own = problem ? speaker : INT_MAX, first = INT_MAX;
    OWN(PMPI_Allreduce(&own, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    if (first == INT_MAX)
        return;
    if (first == speaker)
        fprintf(stderr, PROGRAM ": %s: %s%s\n", file, named ? "a replay cannot make: " : "", problem);
    OK(MPI_Finalize());
    exit(EXIT_USAGE);
}

static void read_own_part(const struct replay_options *options, int rank, int size)
{
    struct replay_head head = {.abi = 0};
    unsigned char *data = NULL;
    const char *problem = read_part(options->file, rank, size, &head, &run.part, &data);
    if (!problem && head.abi > 2)
        problem = "it is of an unknown ABI";
    agree_or_end(options->file, problem, false);
    scratch.abi = head.abi;
    bool good = read_record(data, run.part.bytes, rank, size);
    bool named = record.problem && record.problem[0] >= 'A' && record.problem[0] <= 'Z';
    agree_or_end(options->file, good ? NULL : record.problem, named);
    agree_or_end(options->file, permit_tags(size), false);
    free(data);
    int chosen = choose_calls(options->only), any = 0;
    OWN(PMPI_Allreduce(&chosen, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    agree_or_end(options->file, any ? NULL : "no call of --only is in it", false);
}

/* ---- output ---- */

struct spread {
    double low, sum, high;
};

struct counted {
    uint64_t calls, bytes;
};

/* Of `count` values of each rank, on rank 0. */
static void gather_spreads(const double *values, struct spread *spreads, int count)
{
    double *own = need((size_t)count * 2, sizeof *own), *most = need((size_t)count * 2, sizeof *own);
    double *sums = need((size_t)count, sizeof *sums);
    for (int i = 0; i < count; i++)
        own[2 * i] = -values[i], own[2 * i + 1] = values[i];
    OWN(PMPI_Reduce(own, most, 2 * count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD));
    OWN(PMPI_Reduce(values, sums, count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD));
    for (int i = 0; i < count; i++)
        spreads[i] = (struct spread){-most[2 * i], sums[i], most[2 * i + 1]};
    free(own), free(most), free(sums);
}

static void print_time(const char *routine, struct spread ms, int ranks, uint64_t calls, uint64_t bytes,
                       const char *valid)
{
    char option[64] = "";
    if (routine)
        snprintf(option, sizeof option, ",routine=%s", routine);
    double mean = ms.sum / ranks, value = routine ? mean : ms.high;
    printf("{\"mpigraft\":\"value\",\"benchmark\":\"replay%s\",\"metric\":\"time [ms] lower\","
           "\"unit\":\"ms\",\"size\":0,\"value\":%.9g,\"mean\":%.9g,\"min\":%.9g,\"max\":%.9g,"
           "\"iterations\":%llu,\"bytes\":%llu,\"valid\":%s,\"samples\":[]}\n",
           option, value, mean, ms.low, ms.high, (unsigned long long)calls, (unsigned long long)bytes, valid);
}

static void print_begin(int size)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    OWN(PMPI_Get_library_version(library, &length));
    library[strcspn(library, "\n")] = 0;
    printf("{\"mpigraft\":\"begin\",\"ranks\":%d,\"library\":", size);
    json_string(stdout, library);
    printf(",\"buffers\":\"host\"}\n");
}

static void print_all(const struct spread *spreads, const struct counted *counted, int size,
                      const uint64_t *data)
{
    const char *valid = !checks.on ? "null" : data[1] ? "false" : "true";
    int values = 1;
    print_begin(size);
    print_time(NULL, spreads[0], size, 1, 0, valid);
    for (uint32_t i = 0; i < record.routine_count; i++) {
        if (!counted[i].calls)
            continue;
        print_time(record.routines[i].name, spreads[i + 1], size, counted[i].calls, counted[i].bytes,
                   valid);
        values++;
    }
    printf("{\"mpigraft\":\"end\",\"values\":%d,\"phases\":0}\n", values);
    fflush(stdout);
}

/* Digits behind the point: a column is nine wide. */
static int digits_of(double ms)
{
    return ms < 1e3 ? 4 : ms < 1e6 ? 1 : 0;
}

#define SHOWN(ms) digits_of(ms), ms

/* For people: milliseconds, the average of ranks, in 80 columns. */
static void print_table(const struct spread *spreads, const struct counted *counted, int size,
                        double whole_ms)
{
    printf("%-25s %9s %10s %9s %9s %9s\n", "routine", "calls", "program ms", "replay ms", "least", "most");
    for (uint32_t i = 0; i < record.routine_count; i++) {
        if (!counted[i].calls)
            continue;
        const struct spread *own = &spreads[i + 1], *program = &spreads[record.routine_count + 1 + i];
        printf("%-25s %9llu %10.*f %9.*f %9.*f %9.*f\n", record.routines[i].name,
               (unsigned long long)counted[i].calls, SHOWN(program->sum / size), SHOWN(own->sum / size),
               SHOWN(own->low), SHOWN(own->high));
    }
    if (whole_ms > 0)
        printf("the program took %.4f ms, the replay %.4f ms: its slowest rank\n", whole_ms,
               spreads[0].high);
    else
        printf("the replay took %.4f ms: its slowest rank; it makes a part of the record\n",
               spreads[0].high);
    fflush(stdout);
}

/* What the program took from its first call to the last, on its slowest rank; 0: only a part of it
 * is repeated. */
static double program_ms(const struct replay_options *options)
{
    bool whole = !options->only && !run.part.first && run.events <= run.part.last;
    double own = whole ? 1e3 * (double)record.ticks / record.ticks_per_s : 0, most = 0;
    OWN(PMPI_Reduce(&own, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD));
    return most;
}

/* false: data was wrong. */
static bool report(int rank, int size, double rate, const struct replay_options *options)
{
    double whole_ms = program_ms(options);
    int count = (int)record.routine_count;
    uint64_t own[3] = {checks.right, checks.wrong, checks.unchecked}, data[3];
    double *ms = need(2 * (size_t)count + 1, sizeof *ms);
    struct spread *spreads = need(2 * (size_t)count + 1, sizeof *spreads);
    struct counted *counted = need((size_t)count, sizeof *counted), *all = need((size_t)count, sizeof *all);
    ms[0] = 1e3 * (double)(run.ended - run.began) / rate;
    for (int i = 0; i < count; i++) {
        ms[i + 1] = 1e3 * (double)record.routines[i].ticks / rate;
        ms[count + 1 + i] = 1e3 * (double)record.routines[i].recorded / record.ticks_per_s;
        counted[i] = (struct counted){record.routines[i].calls, record.routines[i].bytes};
    }
    OWN(PMPI_Allreduce(own, data, 3, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD));
    OWN(PMPI_Reduce(counted, all, 2 * count, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD));
    gather_spreads(ms, spreads, 2 * count + 1);
    if (rank == 0 && options->table)
        print_table(spreads, all, size, whole_ms);
    else if (rank == 0)
        print_all(spreads, all, size, data);
    if (rank == 0 && checks.on)
        fprintf(stderr,
                PROGRAM ": data of %llu calls was right, of %llu wrong; %llu were not checked\n"
                PROGRAM ": checks delay ranks, for which others wait: compare no times\n",
                (unsigned long long)data[0], (unsigned long long)data[1], (unsigned long long)data[2]);
    free(ms), free(spreads), free(counted), free(all);
    return data[1] == 0;
}

/* The program's own buffer for MPI_Bsend is not recorded. */
static void attach_buffer(void)
{
    uint64_t most = 0;
    for (uint64_t i = 0; i < record.call_count; i++) {
        struct call *call = &record.calls[i];
        if (starts_with(call->routine->name, "Bsend") || starts_with(call->routine->name, "Ibsend"))
            most = (uint64_t)field_of(call, "count", 0) > most ? (uint64_t)field_of(call, "count", 0) : most;
    }
    uint64_t bytes = most ? (most * 16 + MPI_BSEND_OVERHEAD) * 64 : 0;
    bytes = bytes > (uint64_t)1 << 28 ? (uint64_t)1 << 28 : bytes;
    if (bytes)
        OWN(PMPI_Buffer_attach(need(bytes, 1), (int)bytes));
}

int main(int argc, char **argv)
{
    struct replay_options options = parse_replay(argc, argv);
    int rank, size;
    OK(MPI_Init(&argc, &argv));
    OWN(PMPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OWN(PMPI_Comm_size(MPI_COMM_WORLD, &size));
    speaker = rank;
    struct moment start = moment_now();
    walk.scale = options.gaps;
    walk.seed = options.seed;
    walk.own_seed = scattered(options.seed + (uint64_t)rank);
    read_own_part(&options, rank, size);
    checks.on = options.check;
    make_predefined();
    make_tables();
    make_scratch(record.longest);
    attach_buffer();
    while (nanoseconds(CLOCK_MONOTONIC) - start.ns < 20000000)
        ; /* long enough for the rate of the counter */
    walk.scale *= tick_rate(start, moment_now());
    double run_s = (double)record.ticks / record.ticks_per_s;
    start_watch(run_s * (options.gaps > 1 ? options.gaps : 1), options.patience);
    run_record();
    run.current = NULL;
    double rate = tick_rate(start, moment_now());
    drop_requests();
    OWN(PMPI_Barrier(MPI_COMM_WORLD));
    bool good = report(rank, size, rate, &options);
    OK(MPI_Finalize());
    return good ? 0 : EXIT_INVALID;
}
