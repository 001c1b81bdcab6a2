/* The record's beginning, and its file at the end. */
#ifndef MPIGRAFT_TRACE_RECORD_WRITER_H
#define MPIGRAFT_TRACE_RECORD_WRITER_H

#include "../calls/recorded.h"
#include "recorder.h"

static void start_recording(long budget_mib, uint64_t now)
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

static const struct record_routine *recorded_routines(void);

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
static void end_recording(uint32_t lacks, int last)
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

#endif
