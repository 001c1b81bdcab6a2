/* The arguments of a call as words, from its record and the objects of this run. */
#include "replay.h"

struct scratch scratch;

void make_scratch(int64_t items)
{
    scratch.room = 2 * items + 64; /* types of both sides of an alltoallw */
    size_t room = (size_t)scratch.room;
    scratch.requests = need(room, sizeof *scratch.requests);
    scratch.types = need(room, sizeof *scratch.types);
    scratch.indices = need(room, sizeof *scratch.indices);
    scratch.statuses = need(room, sizeof *scratch.statuses);
}

/* A handle: an int in MPICH, an address in others. */
static word word_of(const void *handle, size_t bytes)
{
    word value = 0;
    memcpy(&value, handle, bytes);
    return value;
}

#define WORD(handle) word_of(&(handle), sizeof(handle))
#define ADDRESS(pointer) ((word)(uintptr_t)(pointer))

static int64_t rank_of(int64_t value)
{
    switch (value) {
    case RANK_OF_NULL: return MPI_PROC_NULL;
    case RANK_ANY: return MPI_ANY_SOURCE;
    case RANK_OF_ROOT: return MPI_ROOT;
    case RANK_UNDEFINED: return MPI_UNDEFINED;
    }
    return value;
}

/* Constants are other numbers in each ABI. */
static const struct constant {
    const char *parameter;
    int abi[3], here;
} CONSTANTS[] = {
    {"lock_type", {1, 234, 301}, MPI_LOCK_EXCLUSIVE},
    {"lock_type", {2, 235, 302}, MPI_LOCK_SHARED},
    {"order", {0, 56, 12}, MPI_ORDER_C},
    {"order", {1, 57, 15}, MPI_ORDER_FORTRAN},
    {"array_of_distribs", {0, 121, 17}, MPI_DISTRIBUTE_BLOCK},
    {"array_of_distribs", {1, 122, 18}, MPI_DISTRIBUTE_CYCLIC},
    {"array_of_distribs", {2, 123, 16}, MPI_DISTRIBUTE_NONE},
    {"array_of_dargs", {-1, -49767, 19}, MPI_DISTRIBUTE_DFLT_DARG},
};

static const struct constant MODES[] = {
    {"assert", {1, 1024, 1024}, MPI_MODE_NOCHECK},  {"assert", {2, 8192, 2048}, MPI_MODE_NOPRECEDE},
    {"assert", {4, 4096, 4096}, MPI_MODE_NOPUT},    {"assert", {8, 2048, 8192}, MPI_MODE_NOSTORE},
    {"assert", {16, 16384, 16384}, MPI_MODE_NOSUCCEED},
};

static int64_t constant_here(const char *parameter, int64_t value)
{
    if (!strcmp(parameter, "assert")) {
        int64_t here = 0;
        for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++)
            here |= value & MODES[i].abi[scratch.abi] ? MODES[i].here : 0;
        return here;
    }
    for (size_t i = 0; i < sizeof CONSTANTS / sizeof *CONSTANTS; i++)
        if (!strcmp(parameter, CONSTANTS[i].parameter) && value == CONSTANTS[i].abi[scratch.abi])
            return CONSTANTS[i].here;
    return value;
}

/* A user's operation: it costs nothing and changes nothing. */
static void no_operation(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)length, (void)type;
}

static word array_word(const struct call *call, int at)
{
    const struct parameter *parameter = &call->routine->parameters[at];
    const struct field *field = &call->fields[at];
    switch (parameter->shape) {
    case LONGS: return ADDRESS(field->array);
    case RANGES: return ADDRESS(field->ints);
    case TYPES: {
        bool beside = !strncmp(parameter->name, "recv", 4) && /* those that are sent */
                      parameter_of(call->routine, "sendtypes") >= 0;
        MPI_Datatype *types = scratch.types + (beside ? scratch.room / 2 : 0);
        for (int64_t i = 0; i < field->value; i++)
            types[i] = type_of(field->array[i])->handle;
        return ADDRESS(types);
    }
    default: break;
    }
    if (one_of(parameter->name, " array_of_distribs array_of_dargs "))
        for (int64_t i = 0; i < field->value; i++)
            field->ints[i] = (int)constant_here(parameter->name, field->array[i]);
    return ADDRESS(field->ints);
}

/* Parameters without a record. */
static word unrecorded_word(const struct parameter *parameter, int at)
{
    MPI_Info info = MPI_INFO_NULL;
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    switch (parameter->shape) {
    case INFO: return WORD(info);
    case ERRHANDLER: return WORD(handler);
    case STATUS: return ADDRESS(scratch.statuses);
    case AT_INTEGER: return ADDRESS(&scratch.numbers[at]);
    case FUNCTION: return ADDRESS(no_operation);
    case BUFFER: return ADDRESS(&scratch.address);
    case INTEGERS: return strstr(parameter->name, "weights") ? ADDRESS(MPI_UNWEIGHTED)
                                                             : ADDRESS(scratch.indices);
    default: return 0;
    }
}

static word handle_word(enum shape shape, int64_t id)
{
    switch (shape) {
    case TYPE: return WORD(type_of(id)->handle);
    case AT_TYPE: return ADDRESS(&type_of(id)->handle);
    case COMM: return WORD(comm_of(id)->handle);
    case AT_COMM: return ADDRESS(&comm_of(id)->handle);
    case GROUP: return WORD(*group_of(id));
    case AT_GROUP: return ADDRESS(group_of(id));
    case OP: return WORD(*op_of(id));
    case AT_OP: return ADDRESS(op_of(id));
    case WIN: return WORD(window_of(id)->handle);
    case AT_WIN: return ADDRESS(&window_of(id)->handle);
    case MESSAGE: return WORD(message_of(id)->handle);
    case AT_MESSAGE: return ADDRESS(&message_of(id)->handle);
    case REQUEST: return WORD(objects.requests[id].handle);
    case AT_REQUEST: return ADDRESS(&objects.requests[id].handle);
    default: return 0;
    }
}

static word buffer_word(const struct call *call, int at, char *const buffers[MOST_BUFFERS])
{
    if (in_place(call, at))
        return ADDRESS(MPI_IN_PLACE);
    for (int i = 0; i < MOST_BUFFERS; i++)
        if (at == call->buffers[i])
            return ADDRESS(buffers[i]);
    return 0;
}

/* Arrays of requests are in `scratch` already. */
void load_words(const struct call *call, char *const buffers[MOST_BUFFERS], word *words)
{
    for (int i = 0; i < call->routine->count; i++) {
        const struct parameter *parameter = &call->routine->parameters[i];
        int64_t value = call->fields[i].value;
        switch (parameter->letter) {
        case 0: words[i] = unrecorded_word(parameter, i); break;
        case 'a': words[i] = buffer_word(call, i, buffers); break;
        case 'i': words[i] = (word)constant_here(parameter->name, value); break;
        case 'r': words[i] = (word)rank_of(value); break;
        case 'k': words[i] = (word)(value == -1 ? MPI_ANY_TAG : value); break;
        case 'f': words[i] = ADDRESS(call->fields[i].array); break;
        case 'Q': words[i] = ADDRESS(scratch.requests); break;
        case 'x': words[i] = ADDRESS(&scratch.numbers[i]); break;
        case 'X': words[i] = ADDRESS(scratch.indices); break;
        case 'z':
        case 'Z': words[i] = ADDRESS(scratch.statuses); break;
        case 'I':
        case 'T': words[i] = array_word(call, i); break;
        default: words[i] = handle_word(parameter->shape, value);
        }
        if (!strcmp(parameter->name, "reorder"))
            words[i] = 0; /* ranks are as recorded */
    }
}

int call_words(const struct routine *routine, const word *w)
{
    return routine->function(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11],
                             w[12], w[13], w[14], w[15]);
}

int number_of(const struct call *call, const char *name)
{
    int at = parameter_of(call->routine, name);
    return at < 0 ? 0 : scratch.numbers[at];
}
