/* A rank's record: each call as a signature (record_file.h), the sequence of them folded.
 *
 * What goes into a call is written down before it, since handles are gone after it; what came out
 * after it. Threads write their calls apart and add them under one lock.
 */
#ifndef MPIGRAFT_TRACE_RECORDER_H
#define MPIGRAFT_TRACE_RECORDER_H

#include "../calls/recorded.h"
#include "../calls/record_file.h"
#include "fold.h"
#include "ids.h"
#include "objects.h"

enum class { TYPE, COMM, GROUP, OP, WIN, REQUEST, MESSAGE, CLASSES };

/* Requests of a call that may complete them, from before it to after it. */
struct pending {
    struct known *known;
    int count, room;
    bool any; /* is no MPI_REQUEST_NULL */
};

struct event {
    unsigned char *bytes;
    size_t length, room;
    struct pending pending;
    MPI_Status *statuses; /* for a caller that wants none */
    int status_room;
    uint64_t entered; /* ticks */
    bool open;        /* a call is being written */
    bool poll;        /* a test or probe without success */
    bool any;         /* the source or tag asked for is any */
    bool test;        /* of one request */
    bool stray;       /* uses a communicator, group or window that no recorded call made */
};

extern struct recorder {
    bool on;
    pthread_mutex_t lock;
    struct ids ids[CLASSES];
    struct {
        uint64_t digest;
        uint32_t number; /* from 1 */
    } *signatures; /* open addressing */
    size_t signature_room;
    uint32_t signature_count;
    unsigned char *text; /* signatures, each with its length before it */
    size_t *starts;      /* in it */
    size_t text_length, text_room, starts_room;
    size_t budget; /* bytes */
    uint64_t events, polls, world_collectives;
    uint64_t before, gap; /* ticks: of the last return, and of the program since the last event */
    uint32_t lacks;
    long thread;
} recorder;

extern __thread struct event event __attribute__((tls_model("initial-exec")));

/* ---- numbers ---- */

void put_unsigned(uint64_t value);
void put_integer(int64_t value);
void put_rank(int rank);
void put_tag(int tag);
void put_address(const void *address);

#define PUT_INTEGERS(array, many)                                                     \
    do {                                                                              \
        int64_t many_ = (int64_t)(many), before_ = 0;                                 \
        put_integer(many_);                                                           \
        for (int64_t i_ = 0; i_ < many_; before_ = (int64_t)(array)[i_], i_++)        \
            put_integer((int64_t)(array)[i_] - before_);                              \
    } while (0)

/* ---- handles ---- */

void know(enum class class, uint64_t handle, int place);
void know_predefined(void);
void put_known_handle(enum class class, uint64_t handle);
void put_new(enum class class, uint64_t handle);
void put_last(enum class class, uint64_t handle);
void put_new_comm(MPI_Comm comm, bool none);

#define PUT_TYPES(array, many)                             \
    do {                                                   \
        int64_t many_ = (int64_t)(many);                   \
        put_integer(many_);                                \
        for (int64_t i_ = 0; i_ < many_; i_++)             \
            put_known_handle(TYPE, KEY((array)[i_]));      \
    } while (0)

/* ---- how long arrays are ---- */

int64_t blocks_of(MPI_Comm comm, bool near, bool out);
int64_t parts_of(MPI_Comm comm);
int64_t dims_of(MPI_Comm comm);
int64_t sum_of(const int *numbers, int64_t many);

/* ---- requests ---- */

MPI_Status *own_statuses(int64_t many);
void put_cancelled(uint64_t handle);
int source_of(const MPI_Status *status);
void put_source(int source, const MPI_Status *status);
struct crowd *find_crowd(const void *array, int count);
uint32_t place_id(struct crowd *crowd, int place, uint32_t id);
void put_completed(const MPI_Request *requests, int64_t done, const MPI_Status *statuses);
void put_any(const MPI_Request *requests, bool done, const int *place, const MPI_Status *status);
void put_some(const MPI_Request *requests, int done, const int *places, const MPI_Status *statuses);
void put_pending(int64_t many, const MPI_Request *requests);
void put_matched(const MPI_Status *status);

#define PUT_PENDING(many, requests)      \
    do {                                 \
        put_integer(many);               \
        put_pending(many, requests);     \
    } while (0)

#define PUT_REQUESTS(many, requests)                             \
    do {                                                         \
        put_integer(many);                                       \
        for (int i_ = 0; i_ < (many); i_++)                      \
            put_known_handle(REQUEST, KEY((requests)[i_]));      \
    } while (0)

/* The call gets a status even if its caller wants none: it says what a wildcard matched. */
#define OWN_STATUS(status)               \
    if ((status) == MPI_STATUS_IGNORE)   \
    (status) = own_statuses(1)

#define OWN_STATUSES(many)                           \
    if (array_of_statuses == MPI_STATUSES_IGNORE)    \
    array_of_statuses = own_statuses(many)

#ifdef OPEN_MPI
#define IS_NO_COMM(comm) ((void *)(comm) == open_mpi_object("ompi_mpi_comm_null"))
#else
#define IS_NO_COMM(comm) ((comm) == MPI_COMM_NULL)
#endif

void count_collective(MPI_Comm comm);

/* The call that is being recorded, from its beginning to the record of it. */

void begin_event(uint64_t routine);
void end_event(uint64_t took);
COLD void note_failed_call(void);

/* ---- in the wrapper of a function ---- */

#define KEPT_BEFORE(name, routine)                \
    if (__builtin_expect(recorder.on, 0)) {       \
        event.open = true;                        \
        begin_event(routine);                     \
        IN_##name;                                \
    }
#define KEPT_AFTER(name, code, took)              \
    if (__builtin_expect(event.open, 0)) {        \
        event.open = false;                       \
        if (!(code)) {                            \
            OUT_##name;                           \
            end_event(took);                      \
        } else {                                  \
            note_failed_call();                   \
        }                                         \
    }
#define LOST_BEFORE(name, routine)
#define LOST_AFTER(name, code, took)

/* The record's beginning, and its file at the end. */

void start_recording(long budget_mib, uint64_t now);

/* ---- the file ---- */

const struct record_routine *recorded_routines(void);
void end_recording(uint32_t lacks, int last);

#endif
