/* The parts of mpigraft-replay, from the record in a file to the calls that it makes. */
#ifndef MPIGRAFT_REPLAY_REPLAY_H
#define MPIGRAFT_REPLAY_REPLAY_H

#include <errno.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../calls/record_file.h"
#include "../calls/ticks.h"
#include "../common/check.h"
#include "../common/json.h"
#include "routines.h"

#define PROGRAM "mpigraft-replay"

#define OWN(call) (own_calls(1), OK(call), own_calls(-1))

struct replay_head {
    char magic[16];
    uint32_t version, ranks;
    uint32_t abi, reserved; /* of the MPI of the record: enum abi */
};

struct replay_part {
    uint64_t offset, bytes, checksum;
    uint64_t first, last; /* calls that are made, from 0; before them only objects are */
};

/* Bytes that are read one after the other; `bad` stays set after the first that is missing. */
struct bytes {
    const unsigned char *at, *end;
    bool bad;
};

enum { MOST_OBJECTS = 1 << 24, PREDEFINED = 128 }; /* of one class */

struct datatype {
    MPI_Datatype handle;
    MPI_Count extent, true_lb, true_extent, size;
};

struct communicator {
    MPI_Comm handle;
    int rank, size, far; /* `far`: ranks of the other side; 0: there is one side */
    int in, out;         /* neighbors */
    uint64_t absent;     /* by bits: neighbors that are MPI_PROC_NULL */
    int world;           /* this rank's in the world */
    uint64_t key;        /* the same on all ranks, of each communicator another; 0: not known */
    uint64_t collectives;
};

struct window {
    MPI_Win handle;
    char *memory; /* NULL: the MPI's own */
    MPI_Aint *sizes;
    int *units, ranks;
};

struct area {
    char *memory;
    size_t bytes;
    bool taken, window;
};

enum { MOST_BUFFERS = 3 }; /* of a call: MPI_Compare_and_swap's */

/* A call that is being made: what it has for itself until it is complete. */
struct act {
    struct call *call;
    struct kept *kept; /* objects that may be freed before (acts.c) */
    struct area *areas[MOST_BUFFERS];
    char *buffers[MOST_BUFFERS]; /* as MPI has them */
    uint64_t number;   /* of its message or collective; 0: it is not checked */
    int64_t source, tag; /* of what it receives, without wildcards */
};

struct request {
    MPI_Request handle;
    bool live, persistent, active, wild;
    bool early; /* complete by a call that any one of several completes */
    bool owed;  /* and before the program: the next such call has nothing to wait for */
    struct act act;
};

struct message {
    MPI_Message handle;
    struct communicator *comm;
    int64_t source, tag;
    uint64_t number;
};

/* Numbers of each class that the record has; tables are that long. */
enum class { TYPES_OF, COMMS_OF, GROUPS_OF, OPS_OF, WINS_OF, MESSAGES_OF, REQUESTS_OF, CLASSES };

struct field {
    int64_t value; /* or the length of an array */
    int64_t *array;
    int *ints; /* the array as MPI has it, where it is of ints */
};

/* What a request that was completed had matched. */
struct matched {
    int64_t position, source, tag;
};

/* A communicator that was made. */
struct membership {
    int64_t size, rank, first; /* `first`: of the world */
};

struct call {
    struct routine *routine;
    bool chosen; /* by --only */
    bool stray;  /* commits or frees what no recorded call made */
    bool matched;
    struct field fields[MOST_PARAMETERS]; /* by parameter */
    struct matched *completed;
    int completed_count;
    int64_t source, tag; /* what a wildcard matched */
    struct membership made;
    /* of its buffers, as of objects.generation (blocks.c) */
    uint64_t generation, bytes;
    struct span {
        int64_t low, high;
    } spans[MOST_BUFFERS];
    int buffers[MOST_BUFFERS]; /* parameters; -1: there is none */
};

struct block {
    int64_t peer, offset, count; /* `offset` in bytes; `peer`: a rank, or a neighbor's place */
    struct datatype *type;
};

enum { MOST_AREAS = 1 << 16 };

/* With --check: a program may free an object, and another may get its number, before a request is
 * complete or is started again. Both need it, to know what is where. */
struct kept {
    struct kept *next;
    bool is_type;
    int64_t id;
    struct datatype type;
    struct communicator comm;
};

struct bucket {
    uint64_t remaining, ticks; /* `ticks`: of one gap, the mean */
    double spread;             /* most that a gap is longer or shorter than that */
};

/* A call or a loop; what a loop repeats follows it, up to `end`. */
struct node {
    bool loop;
    uint32_t end;
    uint64_t count; /* of a loop */
    struct call *call;
    struct bucket *buckets;
    uint64_t bucket_count, remaining, drawn; /* gaps */
};

enum { DEEPEST = 64, MOST_BUCKETS = 64 };

struct cursor {
    uint32_t at;
    int depth;
    struct {
        uint32_t loop;
        uint64_t remaining;
    } stack[DEEPEST];
};

enum { NEVER_SENT = 32767 }; /* a tag that every MPI permits */

extern struct objects {
    int64_t most[CLASSES];
    struct datatype *types, predefined_types[PREDEFINED];
    struct communicator *comms, predefined_comms[2];
    MPI_Group *groups, no_group, empty_group;
    MPI_Op *ops, predefined_ops[PREDEFINED];
    struct window *windows;
    struct message *messages;
    struct request *requests;
    struct datatype no_type;
    struct communicator no_comm;
    struct window no_window;
    struct message no_message;
    MPI_Op no_op;
    uint64_t generation; /* changes when a type or a communicator is made */
} objects;

extern struct record {
    struct routine *routines;
    uint32_t routine_count;
    struct call *calls;
    uint64_t call_count;
    int64_t longest; /* array of handles */
    double ticks_per_s;
    uint64_t ticks;  /* of the calls and of the gaps before them */
    bool threads;    /* several called MPI */
    const char *problem;
} record;

extern struct blocks {
    struct block *items;
    int64_t count, room;
} blocks;

extern struct areas {
    struct area *items[MOST_AREAS];
    int count;
} areas;

extern const int64_t LARGEST_AREA;

/* Arrays of a call with requests or datatypes, and where it puts numbers that it gives back. */
extern struct scratch {
    MPI_Request *requests;
    MPI_Datatype *types;
    int *indices;
    MPI_Status *statuses;
    int64_t room;
    int numbers[MOST_PARAMETERS];
    void *address;
    uint32_t abi; /* of the MPI that was recorded */
} scratch;

extern struct checks {
    bool on;
    uint64_t right, wrong, unchecked;
    struct counter {
        uint64_t key, number;
    } *counters; /* open addressing */
    size_t room, used;
    unsigned char *stream, *packed;
    size_t stream_room;
    uint64_t keys; /* of communicators that this rank named */
} checks;

extern struct walk {
    struct node *nodes;
    uint32_t count, room;
    double scale;            /* of gaps: seconds of the record to ticks here; 0: none */
    uint64_t seed, own_seed; /* of all ranks, and of this one */
} walk;

extern uint64_t started_bytes;

extern struct run {
    uint64_t began, ended, before; /* ticks; `began` 0: in what is before the phase; `before`: the
                                    * last call returned */
    uint64_t events;
    const struct call *current; /* that is being made; NULL: none (run.c) */
    struct replay_part part;
    struct cursor cursor;
} run;

/* walk.c */
void own_calls(int more);
uint64_t read_unsigned(struct bytes *bytes);
int64_t read_signed(struct bytes *bytes);
struct bytes take_bytes(struct bytes *bytes, uint64_t length);
const char *read_part(const char *path, int rank, int size, struct replay_head *head,
                      struct replay_part *part, unsigned char **data);
bool read_node(struct bytes *bytes, int depth);
struct node *next_node(struct cursor *cursor);
uint64_t scattered(uint64_t z);
uint64_t next_gap(struct node *node);

/* requests.c */
const struct field *requests_of(const struct call *call);
int64_t single_request(const struct call *call);
bool look_ahead(struct cursor cursor, int64_t id, int64_t *source, int64_t *tag);
bool takes_any(const struct call *call);
int64_t load_requests(const struct call *call, const struct field *requests, bool none);
bool take_owed(const struct field *requests);
bool has_early(const struct field *requests);
uint64_t complete_requests(const struct call *call, const word *words, int64_t due);
void finish_former(int64_t id);
bool cancelled_late(struct cursor cursor, const struct call *call);
bool prepare_requests(const struct call *call, word *words);
void forget_request(int64_t id);
const char *permit_tags(int size);

/* run.c */
bool choose_calls(const char *only);
void run_record(void);
void drop_requests(void);
void start_watch(double run_s, double patience_s);

/* objects.c */
void describe_type(struct datatype *type);
void describe_comm(struct communicator *comm);
void make_predefined(void);
void make_tables(void);
struct datatype *type_of(int64_t id);
struct communicator *comm_of(int64_t id);
MPI_Group *group_of(int64_t id);
MPI_Op *op_of(int64_t id);
struct window *window_of(int64_t id);
struct message *message_of(int64_t id);
int64_t predefined_of(enum class class);

/* call.c */
bool refuse_record(const char *problem);
int64_t field_of(const struct call *call, const char *name, int64_t otherwise);
bool read_call(struct bytes *bytes, struct call *call);
bool in_place(const struct call *call, int at);
const struct field *array_of(const struct call *call, const char *name);

/* blocks.c */
const char *stem_of(const char *name);
bool among_neighbors(const char *name);
void blocks_of_buffer(const struct call *call, const char *name);
void describe_buffers(struct call *call);
struct area *take_area(struct span span);
void free_area(struct area *area);

/* words.c */
void make_scratch(int64_t items);
void load_words(const struct call *call, char *const buffers[MOST_BUFFERS], word *words);
int call_words(const struct routine *routine, const word *w);
int number_of(const struct call *call, const char *name);

/* data_check.c */
uint64_t mix(uint64_t a, uint64_t b);
uint64_t message_number(const struct communicator *comm, bool sends, int64_t peer, int64_t tag);
uint64_t seed_of(const struct communicator *comm, uint64_t number, int64_t from, int64_t to,
                 int64_t tag);
void fill_block(char *buffer, const struct block *block, const struct communicator *comm,
                uint64_t seed);
int64_t difference(char *buffer, const struct block *block, const struct communicator *comm,
                   uint64_t seed, int64_t bytes);
void report_difference(const char *name, int64_t from, int64_t at);
bool moves_data(const char *stem);
void fill_collective(const struct call *call, const char *stem, const struct communicator *comm,
                     uint64_t number, char *const buffers[2]);
void verify_collective(const struct call *call, const char *stem, const struct communicator *comm,
                       uint64_t number, char *const buffers[2]);
bool has_known_sum(const struct call *call, const char *stem);
void fill_sum(const struct call *call, const struct communicator *comm, uint64_t number,
              char *const buffers[2]);
void verify_sum(const struct call *call, const char *stem, const struct communicator *comm,
                uint64_t number, char *const buffers[2]);

/* acts.c */
void take_buffers(struct act *act);
void keep_objects(struct act *act);
void swap_objects(const struct act *act);
void free_buffers(struct act *act);
bool has_data(const struct call *call);
void prepare_data(struct act *act);
void verify_data(const struct act *act, MPI_Status *status);
void check_target(const struct call *call);
char *window_memory(const struct call *call);
uint64_t split_as_recorded(const struct call *call);
void know_objects(const struct call *call, bool complete);

#endif
