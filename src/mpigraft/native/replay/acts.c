/* After calls that made an object: what it is here, and that it is what the record says. */
#include "replay.h"

/* What is prepared before a call and verified after it: buffers, and with --check their content. */

/* Buffers of one-sided calls, which the MPI may use until the next synchronization. */
static struct area *one_sided_area(int side, struct span span)
{
    static struct area *own[MOST_BUFFERS];
    if (!own[side] || own[side]->bytes < (size_t)(span.high - span.low))
        own[side] = take_area(span);
    return own[side];
}

void take_buffers(struct act *act)
{
    struct call *call = act->call;
    describe_buffers(call);
    for (int i = 0; i < MOST_BUFFERS; i++) {
        act->areas[i] = NULL;
        act->buffers[i] = NULL;
        if (call->buffers[i] < 0 || in_place(call, call->buffers[i]))
            continue;
        struct span span = call->spans[i];
        struct area *area = call->routine->one_sided ? one_sided_area(i, span) : take_area(span);
        act->areas[i] = call->routine->one_sided ? NULL : area;
        act->buffers[i] = area->memory - span.low;
    }
}

/* ---- types and communicators of requests ---- */

static void keep_object(struct act *act, bool is_type, int64_t id)
{
    for (const struct kept *one = act->kept; one; one = one->next)
        if (one->is_type == is_type && one->id == id)
            return;
    if (id <= 0 || (is_type && type_of(id)->handle == MPI_DATATYPE_NULL))
        return; /* it is predefined, or there is none */
    struct kept *one = need(1, sizeof *one);
    *one = (struct kept){.next = act->kept, .is_type = is_type, .id = id};
    if (is_type) {
        one->type = *type_of(id);
        OWN(PMPI_Type_dup(one->type.handle, &one->type.handle));
    } else {
        one->comm = *comm_of(id);
        one->comm.handle = MPI_COMM_WORLD; /* packs as any other does */
    }
    act->kept = one;
}

void keep_objects(struct act *act)
{
    const struct call *call = act->call;
    for (int i = 0; i < call->routine->count; i++) {
        const struct field *field = &call->fields[i];
        char letter = call->routine->parameters[i].letter;
        if (letter == 't' || letter == 'c')
            keep_object(act, letter == 't', field->value);
        for (int64_t k = 0; letter == 'T' && k < field->value; k++)
            keep_object(act, true, field->array[k]);
    }
}

/* Put them in the place of those that have their numbers now; once more: take them out again. */
void swap_objects(const struct act *act)
{
    for (struct kept *one = act->kept; one; one = one->next)
        if (one->is_type) {
            struct datatype now = *type_of(one->id);
            *type_of(one->id) = one->type;
            one->type = now;
        } else {
            struct communicator now = *comm_of(one->id);
            *comm_of(one->id) = one->comm;
            one->comm = now;
        }
}

static void free_kept(struct act *act)
{
    while (act->kept) {
        struct kept *one = act->kept;
        act->kept = one->next;
        if (one->is_type)
            OWN(PMPI_Type_free(&one->type.handle));
        free(one);
    }
}

void free_buffers(struct act *act)
{
    free_kept(act);
    for (int i = 0; i < MOST_BUFFERS; i++) {
        free_area(act->areas[i]);
        act->areas[i] = NULL;
    }
}

/* ---- what is checked ---- */

static bool sends_message(const struct call *call)
{
    return call->routine->p2p && field_of(call, "dest", -1) >= 0 && call->routine->name[0] != 'P';
}

static bool receives_message(const struct call *call)
{
    return call->routine->p2p && parameter_of(call->routine, "source") >= 0 && call->buffers[0] >= 0;
}

static int receiving_side(const struct call *call)
{
    return call->buffers[1] >= 0 ? 1 : 0;
}

static int64_t tag_sent(const struct call *call)
{
    return field_of(call, "sendtag", field_of(call, "tag", 0));
}

static void poison(struct act *act, int side)
{
    if (act->areas[side])
        memset(act->areas[side]->memory, 0xA5, act->areas[side]->bytes);
}

static void prepare_receive(struct act *act, struct communicator *comm, const struct call *call)
{
    if (act->source < 0 || act->tag < 0)
        return;
    act->number = message_number(comm, false, act->source, act->tag);
    if (call->routine->duty == TRAFFIC && parameter_of(call->routine, "dest") < 0)
        poison(act, 0);
    if (call->buffers[1] >= 0)
        poison(act, 1);
}

static void prepare_collective(struct act *act, struct communicator *comm)
{
    struct call *call = act->call;
    const char *stem = stem_of(call->routine->name);
    uint64_t number = ++comm->collectives;
    if (among_neighbors(call->routine->name) || call->buffers[0] < 0)
        return;
    bool first_in_place = call->fields[call->buffers[0]].value == 1;
    if (call->buffers[1] >= 0)
        poison(act, 1);
    else if (!strcmp(stem, "bcast"))
        poison(act, 0);
    if (moves_data(stem)) {
        act->number = number;
        fill_collective(call, stem, comm, number, act->buffers);
    } else if (has_known_sum(call, stem) && (!first_in_place || call->buffers[1] >= 0)) {
        act->number = number;
        fill_sum(call, comm, number, act->buffers);
    }
}

bool has_data(const struct call *call)
{
    return call->routine->duty == TRAFFIC && call->buffers[0] >= 0;
}

/* Before the call, or when a persistent one is started. */
void prepare_data(struct act *act)
{
    struct call *call = act->call;
    struct communicator *comm = comm_of(field_of(call, "comm", 0));
    act->number = 0;
    if (!checks.on || call->routine->duty != TRAFFIC || !comm->key || comm->far)
        return;
    if (!call->routine->p2p) {
        prepare_collective(act, comm);
        return;
    }
    if (sends_message(call)) {
        int64_t dest = field_of(call, "dest", -1), tag = tag_sent(call);
        uint64_t number = message_number(comm, true, dest, tag);
        blocks_of_buffer(call, call->routine->parameters[call->buffers[0]].name);
        if (blocks.count)
            fill_block(act->buffers[0], blocks.items, comm, seed_of(comm, number, comm->rank, dest, tag));
    }
    if (receives_message(call))
        prepare_receive(act, comm, call);
}

static void verify_message(const struct act *act, const struct communicator *comm, MPI_Status *status)
{
    const struct call *call = act->call;
    int side = receiving_side(call), bytes = 0, cancelled = 0;
    OWN(PMPI_Test_cancelled(status, &cancelled));
    OWN(PMPI_Get_count(status, MPI_BYTE, &bytes));
    blocks_of_buffer(call, call->routine->parameters[call->buffers[side]].name);
    if (cancelled || !blocks.count)
        return;
    uint64_t seed = seed_of(comm, act->number, act->source, comm->rank, act->tag);
    int64_t where = difference(act->buffers[side], blocks.items, comm, seed,
                               bytes == MPI_UNDEFINED ? INT64_MAX : bytes);
    if (where >= 0)
        report_difference(call->routine->name, act->source, where);
    else
        checks.right++;
}

/* After the call, or when it is complete. */
void verify_data(const struct act *act, MPI_Status *status)
{
    const struct call *call = act->call;
    if (!checks.on || !has_data(call))
        return;
    struct communicator *comm = comm_of(field_of(call, "comm", 0));
    bool takes = !call->routine->p2p || receives_message(call) ||
                 parameter_of(call->routine, "message") >= 0;
    if (!act->number) {
        checks.unchecked += takes;
        return;
    }
    if (call->routine->p2p) {
        verify_message(act, comm, status);
        return;
    }
    const char *stem = stem_of(call->routine->name);
    if (moves_data(stem))
        verify_collective(call, stem, comm, act->number, act->buffers);
    else
        verify_sum(call, stem, comm, act->number, act->buffers);
}

static int world_rank_of_first(const struct communicator *comm)
{
    int first = 0, world = 0;
    MPI_Group group, all;
    OWN(PMPI_Comm_group(comm->handle, &group));
    OWN(PMPI_Comm_group(MPI_COMM_WORLD, &all));
    OWN(PMPI_Group_translate_ranks(group, 1, &first, all, &world));
    OWN(PMPI_Group_free(&group));
    OWN(PMPI_Group_free(&all));
    return world;
}

/* The same name for a communicator on all its ranks. */
static void agree_on_key(struct communicator *comm)
{
    if (!checks.on || comm->far)
        return;
    uint64_t key = mix((uint64_t)comm->world + 3, ++checks.keys) | 1;
    OWN(PMPI_Bcast(&key, 1, MPI_UINT64_T, 0, comm->handle));
    comm->key = key;
}

static void know_comm(const struct call *call, int64_t id)
{
    struct communicator *comm = comm_of(id);
    if ((comm->handle == MPI_COMM_NULL) != (id == 0))
        DIE("MPI_%s gave %s communicator, unlike the record", call->routine->name, id ? "no" : "a");
    if (!id)
        return;
    describe_comm(comm);
    if (comm->size != call->made.size || comm->rank != call->made.rank ||
        world_rank_of_first(comm) != call->made.first)
        DIE("MPI_%s gave rank %d of %d, and the record has rank %lld of %lld", call->routine->name,
            comm->rank, comm->size, (long long)call->made.rank, (long long)call->made.size);
    agree_on_key(comm);
}

static void know_window(const struct call *call, int64_t id)
{
    struct window *window = window_of(id);
    MPI_Group group;
    int ranks, unit = (int)field_of(call, "disp_unit", 1);
    MPI_Aint size = (MPI_Aint)field_of(call, "size", 0);
    MPI_Comm comm = comm_of(field_of(call, "comm", 0))->handle;
    OWN(PMPI_Win_get_group(window->handle, &group));
    OWN(PMPI_Group_size(group, &ranks));
    OWN(PMPI_Group_free(&group));
    free(window->sizes), free(window->units);
    window->sizes = need((size_t)ranks, sizeof *window->sizes);
    window->units = need((size_t)ranks, sizeof *window->units);
    window->ranks = ranks;
    OWN(PMPI_Allgather(&size, 1, MPI_AINT, window->sizes, 1, MPI_AINT, comm));
    OWN(PMPI_Allgather(&unit, 1, MPI_INT, window->units, 1, MPI_INT, comm));
}

/* That a one-sided call stays in the memory that its target exposes. */
void check_target(const struct call *call)
{
    const struct window *window = window_of(field_of(call, "win", 0));
    int64_t target = field_of(call, "target_rank", -1), count = field_of(call, "target_count", 1);
    const struct datatype *type = type_of(field_of(call, "target_datatype", field_of(call, "datatype", 0)));
    if (target < 0 || target >= window->ranks || !count || parameter_of(call->routine, "target_disp") < 0)
        return;
    int64_t from = field_of(call, "target_disp", 0) * window->units[target] + (int64_t)type->true_lb;
    int64_t to = from + (count - 1) * (int64_t)type->extent + (int64_t)type->true_extent;
    if (from < 0 || to > window->sizes[target])
        DIE("MPI_%s of the record reaches bytes %lld to %lld of a window of %lld", call->routine->name,
            (long long)from, (long long)to, (long long)window->sizes[target]);
}

/* The memory of MPI_Win_create; freed with the window. */
char *window_memory(const struct call *call)
{
    struct window *window = window_of(field_of(call, "win", 0));
    int64_t size = field_of(call, "size", 0);
    if (size < 0 || size > LARGEST_AREA)
        DIE("the record has a window of %lld bytes", (long long)size);
    free(window->memory);
    window->memory = need((size_t)size + 1, 1);
    return window->memory;
}

/* A split that gives the communicators of the record, on any nodes; the ticks that
 * it took. */
uint64_t split_as_recorded(const struct call *call)
{
    int at = parameter_of(call->routine, "newcomm");
    int64_t id = call->fields[at].value;
    MPI_Comm comm = comm_of(field_of(call, "comm", 0))->handle, made;
    uint64_t from = ticks();
    OK(MPI_Comm_split(comm, id ? (int)call->made.first : MPI_UNDEFINED, (int)call->made.rank, &made));
    uint64_t took = ticks() - from;
    comm_of(id)->handle = made;
    know_comm(call, id);
    return took;
}

/* What came back of a call: objects that are known from now on. */
void know_objects(const struct call *call, bool complete)
{
    for (int i = 0; i < call->routine->count; i++) {
        int64_t id = call->fields[i].value;
        switch (call->routine->parameters[i].letter) {
        case 'A': describe_type(type_of(id)); break;
        case 'C':
            if (complete)
                know_comm(call, id);
            break;
        case 'E': know_window(call, id); break;
        default: break;
        }
    }
    if (!strcmp(call->routine->name, "Win_free")) {
        struct window *window = window_of(field_of(call, "win", 0));
        free(window->memory);
        window->memory = NULL;
    }
}
