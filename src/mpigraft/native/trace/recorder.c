/* A rank's record: each call as a signature (record_file.h), the sequence of them folded.
 *
 * What goes into a call is written down before it, since handles are gone after it; what came out
 * after it. Threads write their calls apart and add them under one lock.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "recorder.h"

struct recorder recorder = {.lock = PTHREAD_MUTEX_INITIALIZER};
__thread struct event event;

/* Requests that the call may complete are taken out until it returns. */
OUTSIDE void put_pending(int64_t many, const MPI_Request *requests)
{
    struct pending *pending = &event.pending;
    if (many > pending->room) {
        struct known *more = realloc(pending->known, (size_t)many * sizeof *more);
        if (!more)
            return;
        pending->known = more;
        pending->room = (int)many;
    }
    pthread_mutex_lock(&recorder.lock);
    struct crowd *crowd = many > 1 ? find_crowd(requests, (int)many) : NULL;
    pending->any = false;
    for (int64_t i = 0; i < many; i++) {
        pending->known[i] = take_known(&recorder.ids[REQUEST], KEY(requests[i]));
        pending->any |= pending->known[i].id != 0;
        put_integer((int32_t)place_id(crowd, (int)i, pending->known[i].id));
    }
    pthread_mutex_unlock(&recorder.lock);
    pending->count = (int)many;
}

/* What a probe or receive of any source or tag matched. */
OUTSIDE void put_matched(const MPI_Status *status)
{
    put_integer(event.any);
    if (event.any)
        put_source(status->MPI_SOURCE, status);
}

/* A collective in which all ranks of the world take part. */
OUTSIDE void count_collective(MPI_Comm comm)
{
    const struct members *members = members_of_comm(&self, comm);
    recorder.world_collectives += members && members->size == process.head->size;
}

void begin_event(uint64_t routine)
{
    event.length = 0;
    event.any = event.poll = event.stray = false;
    event.pending.count = 0;
    event.entered = ticks();
    event.test = routine == R_Test;
    put_unsigned(routine);
}

/* The number of a signature, from 0; -1: there is no memory for it. */
static int64_t number_of(const unsigned char *bytes, size_t length)
{
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++)
        digest = (digest ^ bytes[i]) * UINT64_C(0x100000001b3);
    if (recorder.signature_count * 2 >= recorder.signature_room) {
        size_t room = recorder.signature_room ? 2 * recorder.signature_room : 1024;
        void *old = recorder.signatures, *more = calloc(room, sizeof *recorder.signatures);
        if (!more)
            return -1;
        __typeof__(recorder.signatures) from = old;
        size_t before = recorder.signature_room;
        recorder.signatures = more;
        recorder.signature_room = room;
        fold.bytes += (room - before) * sizeof *recorder.signatures;
        for (size_t i = 0; i < before; i++)
            if (from[i].number) {
                size_t at = from[i].digest % room;
                while (recorder.signatures[at].number)
                    at = (at + 1) % room;
                recorder.signatures[at] = from[i];
            }
        free(old);
    }
    size_t at = digest % recorder.signature_room;
    for (; recorder.signatures[at].number; at = (at + 1) % recorder.signature_room) {
        uint32_t number = recorder.signatures[at].number - 1;
        size_t start = recorder.starts[number], end = recorder.starts[number + 1];
        if (recorder.signatures[at].digest == digest && end - start == length &&
            !memcmp(recorder.text + start, bytes, length))
            return number;
    }
    if (recorder.text_length + length > recorder.text_room) {
        size_t room = 2 * (recorder.text_length + length) + 4096;
        unsigned char *more = need(recorder.text, recorder.text_room, room);
        if (!more)
            return -1;
        recorder.text = more;
        recorder.text_room = room;
    }
    if (recorder.signature_count + 2 > recorder.starts_room) {
        size_t room = recorder.starts_room ? 2 * recorder.starts_room : 256;
        size_t *more = need(recorder.starts, recorder.starts_room * sizeof *more,
                            room * sizeof *more);
        if (!more)
            return -1;
        if (!recorder.starts)
            more[0] = 0;
        recorder.starts = more;
        recorder.starts_room = room;
    }
    memcpy(recorder.text + recorder.text_length, bytes, length);
    recorder.text_length += length;
    recorder.signatures[at].digest = digest;
    recorder.signatures[at].number = ++recorder.signature_count;
    recorder.starts[recorder.signature_count] = recorder.text_length;
    return recorder.signature_count - 1;
}

enum { MOST_TESTS = 64 };

/* Requests that were tested one after the other, with no other call between: which was complete
 * first is timing's, and they are recorded in one order. */
static struct {
    struct tested {
        uint32_t number;
        uint64_t gap, took;
    } all[MOST_TESTS];
    int count;
} tests;

static bool fold_tests(void)
{
    bool good = true;
    for (int i = 0; good && i < tests.count; i++)
        good = fold_call(tests.all[i].number, tests.all[i].gap, tests.all[i].took);
    tests.count = 0;
    return good;
}

static bool keep_call(uint32_t number, uint64_t gap, uint64_t took)
{
    if ((!event.test || tests.count == MOST_TESTS) && !fold_tests())
        return false;
    if (!event.test)
        return fold_call(number, gap, took);
    int place = tests.count++;
    for (; place && tests.all[place - 1].number > number; place--)
        tests.all[place] = tests.all[place - 1];
    tests.all[place] = (struct tested){number, gap, took};
    return true;
}

/* Add the call that was written down, unless it was a test without success: the time in those is
 * waiting, and neither a call nor a gap. Nor is the recorder's own time a gap. */
OUTSIDE void end_event(uint64_t took)
{
    long thread = self.thread ? (long)self.thread->thread : 0;
    pthread_mutex_lock(&recorder.lock);
    if (!recorder.on)
        goto end;
    if (recorder.thread && recorder.thread != thread)
        recorder.lacks |= SEVERAL_THREADS;
    recorder.thread = thread;
    recorder.gap += event.entered > recorder.before ? event.entered - recorder.before : 0;
    if (event.poll) {
        recorder.polls++;
        goto end;
    }
    recorder.lacks |= event.stray ? LACKS_OBJECTS : 0;
    int64_t number = number_of(event.bytes, event.length);
    if (number < 0 || !keep_call((uint32_t)number, recorder.gap, took) ||
        fold.bytes > recorder.budget) {
        recorder.lacks |= LACKS_END;
        recorder.on = false;
    }
    recorder.events++;
    recorder.gap = 0;
end:
    recorder.before = ticks();
    pthread_mutex_unlock(&recorder.lock);
}

COLD void note_failed_call(void)
{
    pthread_mutex_lock(&recorder.lock);
    recorder.lacks |= recorder.on ? CALLS_FAILED : 0;
    pthread_mutex_unlock(&recorder.lock);
}

/* ---- in the wrapper of a function ---- */

void start_recording(long budget_mib, uint64_t now)
{
    recorder.budget = (size_t)budget_mib << 20;
    recorder.before = now;
    know_predefined();
    recorder.on = true;
}

/* ---- the file ---- */

static void write_unsigned(FILE *file, uint64_t value)
{
    for (; value > 127; value >>= 7)
        putc((int)(value & 127) | 128, file);
    putc((int)value, file);
}

/* By Newton's method: this library needs no libm. */
static double square_root(double value)
{
    double root = value > 1 ? value : 1, last = 0;
    while (root != last && !(last && root > last)) {
        last = root;
        root = (root + value / root) / 2;
    }
    return root;
}

static uint64_t deviation_of(const struct histogram *histogram, int bucket)
{
    double count = (double)histogram->counts[bucket], mean = histogram->ticks[bucket] / count;
    double variance = histogram->squares[bucket] / count - mean * mean;
    return variance > 0 ? (uint64_t)square_root(variance) : 0;
}

static void write_gaps(FILE *file, const struct node *node)
{
    const struct gaps *gaps = &node->gaps;
    const struct histogram *histogram = gaps->histogram;
    int buckets = 0;
    for (int i = 0; histogram && i < BUCKETS; i++)
        buckets += histogram->counts[i] > 0;
    write_unsigned(file, 0);
    write_unsigned(file, node->signature);
    write_unsigned(file, gaps->times);
    write_unsigned(file, gaps->gap);
    write_unsigned(file, gaps->took);
    write_unsigned(file, (uint64_t)buckets);
    for (int i = 0; histogram && i < BUCKETS; i++)
        if (histogram->counts[i]) {
            write_unsigned(file, (uint64_t)i);
            write_unsigned(file, histogram->counts[i]);
            write_unsigned(file, (uint64_t)histogram->ticks[i]);
            write_unsigned(file, deviation_of(histogram, i));
        }
}

/* Loops in loops are few: a body is at least two calls, or a loop of other calls. */
static void write_nodes(FILE *file, const struct sequence *sequence)
{
    for (size_t i = 0; i < sequence->length; i++) {
        const struct node *node = &sequence->nodes[i];
        if (!node->count) {
            write_gaps(file, node);
            continue;
        }
        write_unsigned(file, 1);
        write_unsigned(file, node->count);
        write_unsigned(file, node->body->length);
        write_nodes(file, node->body);
    }
}

static void write_signatures(FILE *file)
{
    for (uint32_t i = 0; i < recorder.signature_count; i++) {
        size_t length = recorder.starts[i + 1] - recorder.starts[i];
        write_unsigned(file, length);
        fwrite(recorder.text + recorder.starts[i], 1, length, file);
    }
}

static void write_record(FILE *file, uint64_t now)
{
    const struct trace_rank *rank = process.head;
    struct record_head head = {
        .magic = RECORD_MAGIC,
        .version = RECORD_VERSION,
        .routines = ROUTINES,
        .rank = rank->rank,
        .size = rank->size,
        .lacks = recorder.lacks,
        .ticks_per_s = rank->ticks_per_s,
        .began_ns = rank->began_ns,
        .run_ticks = now - rank->began,
        .events = recorder.events,
        .signatures = recorder.signature_count,
        .polls = recorder.polls,
        .world_collectives = recorder.world_collectives,
    };
    fwrite(&head, sizeof head, 1, file);
    fwrite(recorded_routines(), sizeof(struct record_routine), ROUTINES, file);
    long start = ftell(file);
    write_signatures(file);
    long middle = ftell(file);
    write_nodes(file, &fold.all);
    head.signature_bytes = (uint64_t)(middle - start);
    head.node_bytes = (uint64_t)(ftell(file) - middle);
    rewind(file);
    fwrite(&head, sizeof head, 1, file);
}

/* Once for a process, beside the node's file, by its slot there: several processes of a job may have
 * one rank. The end of the run is its last call. */
void end_recording(uint32_t lacks, int last)
{
    char path[PATH_MAX], begun[PATH_MAX + 8];
    if (!recorder.on && !(recorder.lacks & LACKS_END))
        return;
    if (recorder.on) {
        begin_event((uint64_t)last);
        end_event(0);
        recorder.events--; /* it is no call of its own yet */
    }
    recorder.on = false;
    recorder.lacks |= lacks;
    int node = (int)(strrchr(slot.path, '.') - slot.path);
    uint64_t number = (slot.offset - TRACE_START) / slot.bytes;
    if (snprintf(path, sizeof path, "%.*s.%" PRIu64 ".record", node, slot.path, number) >=
        (int)sizeof path)
        return;
    snprintf(begun, sizeof begun, "%s.part", path);
    FILE *file = fopen(begun, "wxe");
    errno = file ? 0 : errno;
    if (file)
        write_record(file, ticks());
    bool bad = !file || ferror(file);
    int error = errno;
    if ((file && fclose(file)) || bad || rename(begun, path)) {
        fprintf(stderr, "mpigraft-trace: %s: %s; rank %d is not recorded\n", path,
                strerror(error ? error : errno), process.head->rank);
        unlink(begun);
    }
    recorder.lacks = 0;
}
