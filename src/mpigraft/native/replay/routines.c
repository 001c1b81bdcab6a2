/* The functions that a record may name: where each of their parameters comes from.
 *
 * The prototypes are those of calls.h, as text. All arguments of MPI's functions are integers and
 * pointers, which calls on x86-64 and aarch64 pass as words: a routine is called by its address
 * with an array of words, so that none of them is written out here, and none has to be in the MPI
 * that this program was built with.
 */
#include <dlfcn.h>

#include "replay.h"

/* Letters of the record's schema that a parameter may have: as input, as output. */
static const struct {
    const char *in, *out;
} LETTERS[] = {
    [BUFFER] = {"a", ""},   [INTEGER] = {"irk", ""}, [INTEGERS] = {"I", "X"}, [LONGS] = {"I", ""},
    [STRING] = {"f", ""},   [TYPE] = {"t", ""},      [AT_TYPE] = {"t", "A"},  [TYPES] = {"T", ""},
    [COMM] = {"c", ""},     [AT_COMM] = {"c", "C"},  [GROUP] = {"g", ""},     [AT_GROUP] = {"g", "B"},
    [OP] = {"o", ""},       [AT_OP] = {"o", "D"},    [WIN] = {"w", ""},       [AT_WIN] = {"w", "E"},
    [MESSAGE] = {"m", ""},  [AT_MESSAGE] = {"m", "G"}, [REQUEST] = {"q", ""}, [AT_REQUEST] = {"qQ", "H"},
    [REQUESTS] = {"Q", ""}, [AT_INTEGER] = {"", "x"}, [STATUS] = {"", "zZ"},  [RANGES] = {"I", ""},
    [FUNCTION] = {"", ""},
};

static const struct prototype {
    const char *name, *parameters;
    bool large; /* ends in _c: counts are MPI_Count */
} PROTOTYPES[] = {
#define CALL(name, parameters, ...) {#name, #parameters, false},
#define LARGE(name, parameters, ...) {#name, #parameters, true},
#include "../calls/calls.h"
#undef CALL
#undef LARGE
};

enum { PROTOTYPE_COUNT = sizeof PROTOTYPES / sizeof *PROTOTYPES };

bool starts_with(const char *text, const char *start)
{
    return !strncmp(text, start, strlen(start));
}

bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && !strcmp(text + length - tail, end);
}

/* One of a list of words, each with a space before it and after it. */
bool one_of(const char *name, const char *list)
{
    char wanted[48];
    snprintf(wanted, sizeof wanted, " %s ", name);
    return strstr(list, wanted) != NULL;
}

static bool pointed_at(const char *type)
{
    return strchr(type, '*') != NULL;
}

static enum shape handle_shape(const char *type, bool array)
{
    static const struct {
        const char *name;
        enum shape plain, address, array;
    } HANDLES[] = {
        {"MPI_Datatype", TYPE, AT_TYPE, TYPES},       {"MPI_Comm", COMM, AT_COMM, NO_SHAPE},
        {"MPI_Group", GROUP, AT_GROUP, NO_SHAPE},     {"MPI_Op", OP, AT_OP, NO_SHAPE},
        {"MPI_Win", WIN, AT_WIN, NO_SHAPE},           {"MPI_Message", MESSAGE, AT_MESSAGE, NO_SHAPE},
        {"MPI_Request", REQUEST, AT_REQUEST, REQUESTS}, {"MPI_Info", INFO, INFO, INFO},
        {"MPI_Status", STATUS, STATUS, STATUS},       {"MPI_Errhandler", ERRHANDLER, ERRHANDLER, NO_SHAPE},
    };
    for (size_t i = 0; i < sizeof HANDLES / sizeof *HANDLES; i++) {
        size_t length = strlen(HANDLES[i].name);
        if (!strncmp(type, HANDLES[i].name, length) && !strchr("_abcdefghijklmnopqrstuvwxyz",
                                                                type[length] ? type[length] : ' '))
            return array ? HANDLES[i].array : pointed_at(type) ? HANDLES[i].address : HANDLES[i].plain;
    }
    return NO_SHAPE;
}

/* `text`: `const int sendcounts[]`, without the name. */
static enum shape shape_of(const char *type, bool array, bool ranges)
{
    if (starts_with(type, "const "))
        type += 6;
    if (ranges)
        return RANGES;
    enum shape handle = handle_shape(type, array);
    if (handle)
        return handle;
    if (starts_with(type, "void"))
        return BUFFER;
    if (starts_with(type, "char"))
        return STRING;
    if (starts_with(type, "int"))
        return array ? INTEGERS : pointed_at(type) ? AT_INTEGER : INTEGER;
    if (starts_with(type, "MPI_Aint") || starts_with(type, "MPI_Count"))
        return array ? LONGS : pointed_at(type) ? AT_INTEGER : INTEGER;
    return FUNCTION; /* MPI_User_function * and the like */
}

/* One parameter of the text between two commas. */
static void parse_parameter(const char *from, const char *to, struct parameter *parameter)
{
    char text[128];
    snprintf(text, sizeof text, "%.*s", (int)(to - from), from);
    char *bracket = strchr(text, '[');
    bool ranges = bracket && strchr(bracket + 1, '[');
    if (bracket)
        *bracket = 0;
    char *name = text + strlen(text);
    while (name > text && (name[-1] == '_' || (name[-1] >= '0' && name[-1] <= '9') ||
                           (name[-1] >= 'a' && name[-1] <= 'z') || (name[-1] >= 'A' && name[-1] <= 'Z')))
        name--;
    snprintf(parameter->name, sizeof parameter->name, "%.31s", name);
    *name = 0;
    parameter->shape = shape_of(text, bracket != NULL, ranges);
}

static void parse_parameters(const char *text, struct routine *routine)
{
    routine->count = 0;
    if (!strcmp(text, "(void)"))
        return;
    for (const char *from = text + 1; *from && routine->count < MOST_PARAMETERS;) {
        while (*from == ' ')
            from++;
        size_t length = strcspn(from, ",)");
        parse_parameter(from, from + length, &routine->parameters[routine->count++]);
        from += length + 1;
    }
}

int parameter_of(const struct routine *routine, const char *name)
{
    for (int i = 0; i < routine->count; i++)
        if (!strcmp(routine->parameters[i].name, name))
            return i;
    return -1;
}

/* Which parameter each field of the schema is: inputs in their order, then outputs in theirs. */
static bool place_fields(struct routine *routine)
{
    size_t field = 0;
    for (int i = 0; i < routine->count; i++) {
        struct parameter *parameter = &routine->parameters[i];
        const char *letters = LETTERS[parameter->shape].in;
        if (letters && routine->fields[field] && strchr(letters, routine->fields[field])) {
            parameter->letter = routine->fields[field];
            routine->places[field++] = (signed char)i;
        }
    }
    for (int i = 0; i < routine->count; i++) {
        struct parameter *parameter = &routine->parameters[i];
        const char *letters = LETTERS[parameter->shape].out;
        if (!parameter->letter && letters && routine->fields[field] &&
            strchr(letters, routine->fields[field])) {
            parameter->letter = routine->fields[field];
            routine->places[field++] = (signed char)i;
        }
    }
    return routine->fields[field] == 0;
}

static enum duty duty_of(const char *name)
{
    static const char completions[] = " Wait Waitall Waitany Waitsome Test Testall Testany Testsome "
                                      "Start Startall Request_free Cancel Pready Pready_range "
                                      "Pready_list ";
    static const char left_out[] = " Abort Pack Unpack Reduce_local Grequest_complete Alloc_mem Free_mem "
                                   "Comm_get_parent Request_get_status Win_detach ";
    static const char makers[] = " Op_create Op_free Buffer_attach Buffer_detach Cart_create Cart_sub "
                                  "Graph_create Dist_graph_create Dist_graph_create_adjacent "
                                  "Intercomm_create Intercomm_merge Win_create Win_allocate "
                                  "Win_allocate_shared Win_free Win_get_group ";
    if (one_of(name, completions))
        return COMPLETION;
    if (one_of(name, left_out) || starts_with(name, "File_"))
        return LEFT_OUT;
    bool object = one_of(name, makers) || starts_with(name, "Comm_") || starts_with(name, "Group_") ||
                  starts_with(name, "Type_");
    return object ? OBJECT : TRAFFIC;
}

static bool is_one_sided(const struct routine *routine)
{
    return routine->duty == TRAFFIC && parameter_of(routine, "win") >= 0;
}

static bool is_p2p(const struct routine *routine)
{
    bool peer = parameter_of(routine, "dest") >= 0 || parameter_of(routine, "source") >= 0 ||
                parameter_of(routine, "message") >= 0;
    return routine->duty == TRAFFIC && peer;
}

/* Look up the routine of a record; false: this program does not know it, or its schema. */
bool bind_routine(struct routine *routine, bool large)
{
    const struct prototype *prototype = NULL;
    for (int i = 0; i < PROTOTYPE_COUNT; i++)
        if (!strcmp(PROTOTYPES[i].name, routine->name) && PROTOTYPES[i].large == large)
            prototype = &PROTOTYPES[i];
    if (!prototype)
        return false;
    parse_parameters(prototype->parameters, routine);
    if (!place_fields(routine))
        return false;
    char symbol[48];
    snprintf(symbol, sizeof symbol, "MPI_%s%s", routine->name, large ? "_c" : "");
    void *address = dlsym(RTLD_DEFAULT, symbol);
    memcpy(&routine->function, &address, sizeof address);
    routine->is_large = large;
    routine->duty = duty_of(routine->name);
    routine->persistent = ends_with(routine->name, "_init");
    routine->one_sided = is_one_sided(routine);
    routine->p2p = is_p2p(routine);
    routine->repeats = one_of(routine->name, " Iprobe Improbe Win_test ");
    return true;
}
