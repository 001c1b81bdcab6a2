/* A signature of the record, read once: what the call was given, and what it gave back. */
#include <stddef.h>
#include <limits.h>

#include "replay.h"

struct record record;

bool refuse_record(const char *problem)
{
    if (!record.problem)
        record.problem = problem;
    return false;
}

static enum class class_of(char letter)
{
    switch (letter) {
    case 't':
    case 'T':
    case 'A': return TYPES_OF;
    case 'c':
    case 'C': return COMMS_OF;
    case 'g':
    case 'B': return GROUPS_OF;
    case 'o':
    case 'D': return OPS_OF;
    case 'w':
    case 'E': return WINS_OF;
    case 'm':
    case 'G': return MESSAGES_OF;
    default: return REQUESTS_OF;
    }
}

static int64_t read_id(struct bytes *bytes, char letter)
{
    int64_t id = read_signed(bytes);
    enum class class = class_of(letter);
    if (id >= MOST_OBJECTS || id < -predefined_of(class)) {
        refuse_record("a number of an object is out of range");
        return 0;
    }
    if (id > objects.most[class])
        objects.most[class] = id;
    return id;
}

static int64_t read_length(struct bytes *bytes, int64_t each)
{
    int64_t length = read_signed(bytes);
    if (length < 0 || length > (bytes->end - bytes->at) / each) {
        bytes->bad = true;
        return 0;
    }
    return length;
}

static void read_integers(struct bytes *bytes, struct field *field)
{
    field->value = read_length(bytes, 1);
    field->array = need((size_t)field->value, sizeof *field->array);
    field->ints = need((size_t)field->value, sizeof *field->ints);
    int64_t last = 0;
    for (int64_t i = 0; i < field->value; i++) {
        last = (int64_t)((uint64_t)last + (uint64_t)read_signed(bytes));
        field->array[i] = last;
        field->ints[i] = (int)last;
    }
}

static void read_ids(struct bytes *bytes, char letter, struct field *field)
{
    field->value = read_length(bytes, 1);
    field->array = need((size_t)field->value, sizeof *field->array);
    record.longest = field->value > record.longest ? field->value : record.longest;
    for (int64_t i = 0; i < field->value; i++)
        field->array[i] = read_id(bytes, letter);
}

static void read_membership(struct bytes *bytes, struct call *call, struct field *field)
{
    field->value = read_id(bytes, 'C');
    if (!field->value) /* a rank that is in none of the new ones */
        return;
    call->made.size = read_signed(bytes);
    call->made.rank = read_signed(bytes);
    struct field members = {0, NULL, NULL};
    read_integers(bytes, &members);
    call->made.first = members.value ? members.array[0] : -1;
    free(members.array);
    free(members.ints);
}

static void read_completed(struct bytes *bytes, struct call *call)
{
    call->completed_count = (int)read_length(bytes, 3);
    call->completed = need((size_t)call->completed_count, sizeof *call->completed);
    for (int i = 0; i < call->completed_count; i++) {
        struct matched *one = &call->completed[i];
        one->position = read_signed(bytes);
        one->source = read_signed(bytes);
        one->tag = read_signed(bytes);
    }
}

static void read_field(struct bytes *bytes, char letter, struct call *call, struct field *field)
{
    switch (letter) {
    case 'I':
    case 'X': read_integers(bytes, field); break;
    case 'T':
    case 'Q': read_ids(bytes, letter, field); break;
    case 'f': {
        struct bytes text = take_bytes(bytes, (uint64_t)read_length(bytes, 1));
        field->array = need((size_t)(text.end - text.at) + 1, 1);
        memcpy(field->array, text.at, (size_t)(text.end - text.at));
        break;
    }
    case 'C': read_membership(bytes, call, field); break;
    case 'Z': read_completed(bytes, call); break;
    case 'z':
        if ((call->matched = read_signed(bytes) == 1)) {
            call->source = read_signed(bytes);
            call->tag = read_signed(bytes);
        }
        break;
    case 'a':
    case 'i':
    case 'k':
    case 'r':
    case 'x': field->value = read_signed(bytes); break;
    default: field->value = read_id(bytes, letter);
    }
}

/* Whether a value needs MPI_Count. */
static bool has_large_counts(const struct call *call)
{
    for (int i = 0; i < call->routine->count; i++) {
        const struct parameter *parameter = &call->routine->parameters[i];
        const struct field *field = &call->fields[i];
        bool array = parameter->shape == INTEGERS && parameter->letter == 'I';
        if (parameter->letter == 'i' && strstr(parameter->name, "count") &&
            (field->value > INT_MAX || field->value < INT_MIN))
            return true;
        for (int64_t k = 0; array && k < field->value; k++)
            if (field->array[k] > INT_MAX || field->array[k] < INT_MIN)
                return true;
    }
    return false;
}

/* Calls with large counts are of a routine of their own, made when the first one is read. */
static bool take_large(struct call *call)
{
    static struct routine *large[256];
    ptrdiff_t at = call->routine - record.routines;
    if (at >= 256)
        return refuse_record("it has too many routines");
    if (!large[at]) {
        large[at] = need(1, sizeof **large);
        memcpy(large[at]->name, call->routine->name, sizeof large[at]->name);
        large[at]->base = call->routine;
        memcpy(large[at]->fields, call->routine->fields, sizeof large[at]->fields);
        if (!bind_routine(large[at], true) || !large[at]->function)
            return refuse_record("it has counts beyond 2^31, which this MPI has no calls for");
    }
    call->routine = large[at];
    return true;
}

int64_t field_of(const struct call *call, const char *name, int64_t otherwise)
{
    int at = parameter_of(call->routine, name);
    return at < 0 || !call->routine->parameters[at].letter ? otherwise : call->fields[at].value;
}

/* Whether a message or a reduction has items of its only datatype. */
static bool is_data(const struct call *call, const char *name)
{
    bool peer = field_of(call, "dest", 0) != RANK_OF_NULL && field_of(call, "source", 0) != RANK_OF_NULL;
    return peer && !strcmp(name, "datatype") && field_of(call, "count", 0) > 0;
}

/* That the objects which a call is given were made by calls of the record; of one that commits
 * or frees an unknown object nothing is left to do. */
static bool know_inputs(struct call *call)
{
    static char problem[160];
    const char *what = NULL, *name = call->routine->name;
    for (int i = 0; i < call->routine->count && !what; i++) {
        const struct parameter *parameter = &call->routine->parameters[i];
        if (call->fields[i].value || !strchr("cgwt", parameter->letter) || !parameter->letter)
            continue;
        what = parameter->letter == 'c'   ? "communicator"
               : parameter->letter == 'g' ? "group"
               : parameter->letter == 'w' ? "window"
               : call->routine->duty == OBJECT || is_data(call, parameter->name) ? "datatype"
                                                                                 : NULL;
    }
    call->stray = what && (ends_with(name, "_free") || one_of(name, " Comm_disconnect Type_commit "));
    if (!what || call->stray)
        return true;
    snprintf(problem, sizeof problem, "%s, for no call that is recorded made its %s", name, what);
    return refuse_record(problem);
}

bool read_call(struct bytes *bytes, struct call *call)
{
    uint64_t number = read_unsigned(bytes);
    if (bytes->bad || number >= record.routine_count)
        return refuse_record("a call is of no routine");
    struct routine *routine = call->routine = &record.routines[number];
    call->generation = UINT64_MAX;
    if (one_of(routine->name, " Finalize Abort Pcontrol "))
        return true; /* marks: nothing but the gap before them counts */
    if (!routine->function && !bind_routine(routine, false))
        return refuse_record(routine->name);
    if (!routine->function)
        return refuse_record(routine->name);
    for (int i = 0; routine->fields[i]; i++)
        read_field(bytes, routine->fields[i], call, &call->fields[routine->places[i]]);
    if (bytes->bad || bytes->at != bytes->end)
        return refuse_record("a call is cut short or too long");
    if (!record.problem && !know_inputs(call))
        return false;
    return record.problem ? false : has_large_counts(call) ? take_large(call) : true;
}

/* Only a collective has its data in place; elsewhere the address is one that nothing is at. */
bool in_place(const struct call *call, int at)
{
    return call->fields[at].value == 1 && !call->routine->one_sided && !call->routine->p2p;
}

const struct field *array_of(const struct call *call, const char *name)
{
    int at = parameter_of(call->routine, name);
    return at < 0 || !call->routine->parameters[at].letter ? NULL : &call->fields[at];
}
