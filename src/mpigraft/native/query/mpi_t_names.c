/* What MPI_T says in integers as words, and the values of its variables. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include "../common/check.h"
#include "../common/json.h"
#include "mpi_t_names.h"

const struct word BINDINGS[] = {
    {MPI_T_BIND_NO_OBJECT, "none"},      {MPI_T_BIND_MPI_COMM, "communicator"},
    {MPI_T_BIND_MPI_DATATYPE, "datatype"}, {MPI_T_BIND_MPI_ERRHANDLER, "error handler"},
    {MPI_T_BIND_MPI_FILE, "file"},       {MPI_T_BIND_MPI_GROUP, "group"},
    {MPI_T_BIND_MPI_OP, "operation"},    {MPI_T_BIND_MPI_REQUEST, "request"},
    {MPI_T_BIND_MPI_WIN, "window"},      {MPI_T_BIND_MPI_MESSAGE, "message"},
    {MPI_T_BIND_MPI_INFO, "info"},
#if MPI_VERSION >= 4
    {MPI_T_BIND_MPI_SESSION, "session"},
#endif
    {0, NULL},
};

const struct word SCOPES[] = {
    {MPI_T_SCOPE_CONSTANT, "constant"}, {MPI_T_SCOPE_READONLY, "read-only"},
    {MPI_T_SCOPE_LOCAL, "local"},       {MPI_T_SCOPE_GROUP, "group"},
    {MPI_T_SCOPE_GROUP_EQ, "group, equal"}, {MPI_T_SCOPE_ALL, "all"},
    {MPI_T_SCOPE_ALL_EQ, "all, equal"}, {0, NULL},
};

const struct word VERBOSITIES[] = {
    {MPI_T_VERBOSITY_USER_BASIC, "user"},
    {MPI_T_VERBOSITY_USER_DETAIL, "user, detail"},
    {MPI_T_VERBOSITY_USER_ALL, "user, all"},
    {MPI_T_VERBOSITY_TUNER_BASIC, "tuner"},
    {MPI_T_VERBOSITY_TUNER_DETAIL, "tuner, detail"},
    {MPI_T_VERBOSITY_TUNER_ALL, "tuner, all"},
    {MPI_T_VERBOSITY_MPIDEV_BASIC, "developer"},
    {MPI_T_VERBOSITY_MPIDEV_DETAIL, "developer, detail"},
    {MPI_T_VERBOSITY_MPIDEV_ALL, "developer, all"},
    {0, NULL},
};

const struct word CLASSES[] = {
    {MPI_T_PVAR_CLASS_STATE, "state"},
    {MPI_T_PVAR_CLASS_LEVEL, "level"},
    {MPI_T_PVAR_CLASS_SIZE, "size"},
    {MPI_T_PVAR_CLASS_PERCENTAGE, "percentage"},
    {MPI_T_PVAR_CLASS_HIGHWATERMARK, "highwatermark"},
    {MPI_T_PVAR_CLASS_LOWWATERMARK, "lowwatermark"},
    {MPI_T_PVAR_CLASS_COUNTER, "counter"},
    {MPI_T_PVAR_CLASS_AGGREGATE, "aggregate"},
    {MPI_T_PVAR_CLASS_TIMER, "timer"},
    {MPI_T_PVAR_CLASS_GENERIC, "generic"},
    {0, NULL},
};

const char *word(const struct word *words, int value)
{
    for (; words->text; words++)
        if (words->value == value)
            return words->text;
    return "unknown";
}

#define IS(handle, text, form, ctype)                                                              \
    if (datatype == (handle))                                                                      \
        return (struct type){text, form, sizeof(ctype)}

struct type type_of(MPI_Datatype datatype)
{
    IS(MPI_INT, "int", INTEGER, int);
    IS(MPI_UNSIGNED, "unsigned", UNSIGNED, unsigned);
    IS(MPI_UNSIGNED_LONG, "unsigned long", UNSIGNED, unsigned long);
    IS(MPI_UNSIGNED_LONG_LONG, "unsigned long long", UNSIGNED, unsigned long long);
    IS(MPI_COUNT, "count", INTEGER, MPI_Count);
    IS(MPI_CHAR, "text", CHARACTERS, char);
    IS(MPI_DOUBLE, "double", REAL, double);
    /* Beyond the standard's list, but Open MPI has them. */
    IS(MPI_C_BOOL, "bool", UNSIGNED, _Bool);
    IS(MPI_LONG, "long", INTEGER, long);
    IS(MPI_INT32_T, "int32", INTEGER, int32_t);
    IS(MPI_UINT32_T, "uint32", UNSIGNED, uint32_t);
    IS(MPI_INT64_T, "int64", INTEGER, int64_t);
    IS(MPI_UINT64_T, "uint64", UNSIGNED, uint64_t);
    return (struct type){"other", OTHER, 0};
}

void field(const char *name, const char *text)
{
    printf(",\"%s\":", name);
    json_string(stdout, text);
}

/* ---------------------------------------------------------------- values */

static void print_element(struct type type, const unsigned char *at)
{
    long long whole = 0;
    unsigned long long natural = 0;
    double real;
    switch (type.form) {
    case REAL:
        memcpy(&real, at, sizeof real);
        printf(isfinite(real) ? "%.17g" : "\"%g\"", real);
        return;
    case UNSIGNED: /* the low bytes come first: both architectures are little-endian */
        memcpy(&natural, at, type.bytes);
        printf("%llu", natural);
        return;
    default:
        memcpy(&whole, at, type.bytes);
        printf("%lld", type.bytes == sizeof(int) ? (long long)(int)whole : whole);
    }
}

/* One value, or a list of them; a text is one. */
static void print_value(struct type type, const unsigned char *bytes, int count)
{
    fputs(",\"value\":", stdout);
    if (type.form == CHARACTERS) {
        json_string(stdout, (const char *)bytes);
        return;
    }
    if (count != 1)
        putchar('[');
    for (int i = 0; i < count; i++) {
        fputs(i ? "," : "", stdout);
        print_element(type, bytes + (size_t)i * type.bytes);
    }
    if (count != 1)
        putchar(']');
}

/* Room for `count` elements, and for texts more than their count says: implementations differ in
 * whether it covers the final zero. */
unsigned char *room(struct type type, int count)
{
    return need((size_t)count + TEXT_ROOM, type.bytes);
}

/* The object that a variable is asked about; NULL where `binding` is to one that we have not. */
void *object(int binding, bool initialised, bool *there)
{
    static MPI_Comm world = MPI_COMM_NULL;
    *there = binding == MPI_T_BIND_NO_OBJECT || (binding == MPI_T_BIND_MPI_COMM && initialised);
    if (binding == MPI_T_BIND_NO_OBJECT || !*there)
        return NULL;
    world = MPI_COMM_WORLD;
    return &world;
}

void print_control(int index, struct type type, void *bound)
{
    MPI_T_cvar_handle handle;
    int count = 0;
    if (MPI_T_cvar_handle_alloc(index, bound, &handle, &count) != MPI_SUCCESS)
        return;
    unsigned char *bytes = room(type, count);
    if (MPI_T_cvar_read(handle, bytes) == MPI_SUCCESS)
        print_value(type, bytes, count);
    free(bytes);
    MPI_T_cvar_handle_free(&handle);
}

void print_performance(int index, struct type type, void *bound, bool continuous)
{
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    int count = 0;
    OK(MPI_T_pvar_session_create(&session));
    if (MPI_T_pvar_handle_alloc(session, index, bound, &handle, &count) != MPI_SUCCESS)
        return;
    unsigned char *bytes = room(type, count);
    if (continuous || MPI_T_pvar_start(session, handle) == MPI_SUCCESS)
        if (MPI_T_pvar_read(session, handle, bytes) == MPI_SUCCESS)
            print_value(type, bytes, count);
    free(bytes);
    OK(MPI_T_pvar_handle_free(session, &handle));
    OK(MPI_T_pvar_session_free(&session));
}
