/* The functions that a record may name: where each of their parameters comes from. */
#ifndef MPIGRAFT_REPLAY_ROUTINES_H
#define MPIGRAFT_REPLAY_ROUTINES_H

#include <stdbool.h>
#include <stdint.h>

enum { MOST_PARAMETERS = 16 };

/* What a parameter is; `AT_` is the address of one. */
enum shape {
    NO_SHAPE, BUFFER, INTEGER, INTEGERS, LONGS, STRING,
    TYPE, AT_TYPE, TYPES, COMM, AT_COMM, GROUP, AT_GROUP, OP, AT_OP, WIN, AT_WIN,
    MESSAGE, AT_MESSAGE, REQUEST, AT_REQUEST, REQUESTS, AT_INTEGER, STATUS, INFO, ERRHANDLER,
    FUNCTION, RANGES,
};

struct parameter {
    char name[32];
    enum shape shape;
    char letter; /* of the schema; 0: nothing was recorded of it */
};

/* Its arguments as words: int (*)(word, word, ...). */
typedef uint64_t word;
typedef int (*routine_function)(word, word, word, word, word, word, word, word, word, word, word,
                                word, word, word, word, word);

/* What a call is to the replay. */
enum duty { LEFT_OUT, OBJECT, COMPLETION, TRAFFIC };

struct routine {
    char name[32];
    int count; /* of parameters */
    struct parameter parameters[MOST_PARAMETERS];
    char fields[32];                   /* the schema */
    signed char places[32];            /* the parameter of each field */
    enum duty duty;
    bool is_large, persistent, repeats, one_sided, p2p;
    routine_function function;
    struct routine *base; /* which its time counts for; NULL: itself */
    /* of this rank */
    uint64_t ticks, calls, bytes;
    uint64_t recorded; /* ticks of the program in it */
};

bool starts_with(const char *text, const char *start);
bool ends_with(const char *text, const char *end);
bool one_of(const char *name, const char *list);
int parameter_of(const struct routine *routine, const char *name);
bool bind_routine(struct routine *routine, bool large);

#endif
