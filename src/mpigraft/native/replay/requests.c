/* Requests: what a wildcard will match, and calls that complete or start them. */
#include "replay.h"

enum { LOOK_AHEAD = 1 << 20 }; /* calls */

/* The request array of a call that completes or starts some; NULL: it has none. */
const struct field *requests_of(const struct call *call)
{
    for (int i = 0; i < call->routine->count; i++)
        if (call->routine->parameters[i].letter == 'Q')
            return &call->fields[i];
    return NULL;
}

int64_t single_request(const struct call *call)
{
    for (int i = 0; i < call->routine->count; i++)
        if (call->routine->parameters[i].letter == 'q')
            return call->fields[i].value;
    return 0;
}

/* Whether a call completed what is at `position`; all of them, if it is no Waitany or Waitsome. */
static bool completes(const struct call *call, int64_t position)
{
    for (int i = 0; i < call->routine->count; i++) {
        char letter = call->routine->parameters[i].letter;
        const struct field *field = &call->fields[i];
        if (letter == 'x')
            return field->value == position;
        for (int64_t k = 0; letter == 'X' && k < field->value; k++)
            if (field->array[k] == position)
                return true;
        if (letter == 'X')
            return false;
    }
    return true;
}

/* What request `id`, made now, has matched when it is completed; false: the record does not say.
 * A source below 0: it was cancelled. */
bool look_ahead(struct cursor cursor, int64_t id, int64_t *source, int64_t *tag)
{
    for (long i = 0; i < LOOK_AHEAD; i++) {
        struct node *node = next_node(&cursor);
        if (!node)
            return false;
        const struct call *call = node->call;
        if (single_request(call) == id && strcmp(call->routine->name, "Cancel") != 0)
            return false;
        const struct field *requests = requests_of(call);
        for (int64_t k = 0; requests && k < requests->value; k++) {
            if (requests->array[k] != id || !completes(call, k))
                continue;
            for (int m = 0; m < call->completed_count; m++)
                if (call->completed[m].position == k) {
                    *source = call->completed[m].source;
                    *tag = call->completed[m].tag;
                    return true;
                }
            return false;
        }
    }
    return false;
}

static void complete_request(int64_t id, MPI_Status *status)
{
    struct request *request = &objects.requests[id];
    if (!request->active)
        return;
    swap_objects(&request->act);
    verify_data(&request->act, status);
    swap_objects(&request->act);
    request->active = false;
    if (request->persistent)
        return;
    request->live = false;
    request->handle = MPI_REQUEST_NULL;
    free_buffers(&request->act);
    if (request->act.call->routine->duty == OBJECT)
        know_objects(request->act.call, true);
}

/* Whether any one of its requests completes a call: which one is timing's. */
bool takes_any(const struct call *call)
{
    for (int i = 0; i < call->routine->count; i++) {
        char letter = call->routine->parameters[i].letter;
        const struct field *field = &call->fields[i];
        if (letter == 'x' || letter == 'X')
            return letter == 'x' ? field->value == ANY_OF_THEM
                                 : field->value == 1 && field->array[0] == ANY_OF_THEM;
    }
    return false;
}

/* Put the requests that may complete a call where it finds them; how many it waits for. */
int64_t load_requests(const struct call *call, const struct field *requests, bool none)
{
    int64_t active = 0;
    bool any = takes_any(call);
    for (int64_t i = 0; i < requests->value; i++) {
        int64_t id = requests->array[i];
        struct request *request = &objects.requests[id > 0 ? id : 0];
        bool due = !none && id > 0 && request->active && (any ? !request->wild : completes(call, i));
        scratch.requests[i] = due ? request->handle : MPI_REQUEST_NULL;
        active += due;
        if (!any && completes(call, i))
            request->early = request->owed = false;
    }
    return any && active ? 1 : active;
}

/* Whether one of them was complete here before it was in the program. */
bool take_owed(const struct field *requests)
{
    for (int64_t i = 0; i < requests->value; i++)
        if (requests->array[i] > 0 && objects.requests[requests->array[i]].owed) {
            objects.requests[requests->array[i]].owed = false;
            return true;
        }
    return false;
}

bool has_early(const struct field *requests)
{
    for (int64_t i = 0; i < requests->value; i++)
        if (requests->array[i] > 0 && objects.requests[requests->array[i]].early)
            return true;
    return false;
}

/* Of those that are due, the ones that `scratch.indices` names. Of several that a call for any one
 * completed, the calls that follow in the program have less to wait for. */
static int64_t complete_some(const struct field *requests, int64_t some, bool any)
{
    for (int64_t i = 0; i < some; i++) {
        int64_t at = scratch.indices[i];
        if (at < 0 || at >= requests->value)
            continue;
        struct request *request = &objects.requests[requests->array[at]];
        request->handle = scratch.requests[at];
        complete_request(requests->array[at], &scratch.statuses[i]);
        request->early = any;
        request->owed = any && i > 0;
    }
    return some;
}

/* Call until as much is complete as was in the program; the ticks that it took. */
uint64_t complete_requests(const struct call *call, const word *words, int64_t due)
{
    const struct field *requests = requests_of(call);
    bool some = parameter_of(call->routine, "outcount") >= 0;
    bool one = parameter_of(call->routine, "indx") >= 0, flag = parameter_of(call->routine, "flag") >= 0;
    bool any = takes_any(call);
    uint64_t took = 0;
    for (int64_t done = 0;;) {
        uint64_t from = ticks();
        OK(call_words(call->routine, words));
        took += ticks() - from;
        if (some) {
            int count = number_of(call, "outcount");
            done += count == MPI_UNDEFINED ? due : complete_some(requests, count, any);
        } else if (one && (!flag || number_of(call, "flag"))) {
            scratch.indices[0] = number_of(call, "indx");
            done += due ? complete_some(requests, 1, any) : 0;
        } else if (!one && (!flag || number_of(call, "flag"))) {
            for (int64_t i = 0; i < requests->value; i++)
                complete_request(requests->array[i], &scratch.statuses[i]);
            done = due;
        }
        if (done >= due)
            return took;
    }
}

/* The program had completed what it makes or starts once more; here another one was complete
 * instead, and a call for any one of them has one less to wait for. */
void finish_former(int64_t id)
{
    struct request *request = &objects.requests[id];
    MPI_Status status;
    if (request->active && !request->wild) {
        OWN(PMPI_Wait(&request->handle, &status));
        complete_request(id, &status);
        for (int64_t i = 1; i <= objects.most[REQUESTS_OF]; i++)
            if (i != id && objects.requests[i].early && !objects.requests[i].owed) {
                objects.requests[i].owed = true;
                break;
            }
    }
    request->early = request->owed = false;
}

/* Whether a request that the program cancelled was complete nevertheless: then it is here too. */
bool cancelled_late(struct cursor cursor, const struct call *call)
{
    int64_t source = 0, tag = 0;
    return !strcmp(call->routine->name, "Cancel") &&
           look_ahead(cursor, single_request(call), &source, &tag) && source >= 0;
}

uint64_t started_bytes; /* bytes that a call starts to send */

static void start_request(int64_t id)
{
    struct request *request = &objects.requests[id];
    started_bytes += field_of(request->act.call, "dest", -1) >= 0 ? request->act.call->bytes : 0;
    finish_former(id);
    request->active = true;
    swap_objects(&request->act);
    prepare_data(&request->act);
    swap_objects(&request->act);
}

/* MPI_Start, Startall, Request_free, Cancel, Pready: false: of none that is here. */
bool prepare_requests(const struct call *call, word *words)
{
    const struct field *requests = requests_of(call);
    bool starts = starts_with(call->routine->name, "Start");
    int64_t single = single_request(call), count = 0;
    if (!requests) {
        bool live = single > 0 && objects.requests[single].live;
        if (live && starts)
            start_request(single);
        return live;
    }
    for (int64_t i = 0; i < requests->value; i++) {
        int64_t id = requests->array[i];
        if (id <= 0 || !objects.requests[id].live)
            continue;
        scratch.requests[count++] = objects.requests[id].handle;
        start_request(id);
    }
    words[0] = (word)count;
    return count > 0;
}

/* Persistent requests keep their handles when they are started: Open MPI and MPICH never change
 * them. One that is freed while it is active keeps its buffers to the end. */
void forget_request(int64_t id)
{
    struct request *request = &objects.requests[id];
    if (!request->active)
        free_buffers(&request->act);
    request->live = request->active = false;
    request->handle = MPI_REQUEST_NULL;
}

/* Tags that this MPI does not permit: all tags of the record get other numbers, from 0, the same on
 * all ranks. What matches what stays as it was. */

struct tags {
    int64_t *items;
    int count, room;
};

static int compare_tags(const void *one, const void *other)
{
    int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
    return (a > b) - (a < b);
}

static void keep_once(struct tags *tags)
{
    int kept = 0;
    if (tags->count)
        qsort(tags->items, (size_t)tags->count, sizeof *tags->items, compare_tags);
    for (int i = 0; i < tags->count; i++)
        if (!kept || tags->items[i] != tags->items[kept - 1])
            tags->items[kept++] = tags->items[i];
    tags->count = kept;
}

static void add_tag(struct tags *tags, int64_t *tag)
{
    if (*tag < 0) /* any */
        return;
    if (tags->count == tags->room) {
        keep_once(tags);
        if (2 * tags->count >= tags->room)
            tags->room = 2 * tags->room + 256;
        tags->items = realloc(tags->items, (size_t)tags->room * sizeof *tags->items);
        if (!tags->items)
            DIE("out of memory");
    }
    tags->items[tags->count++] = *tag;
}

/* NEVER_SENT stays free: it is for receives that get nothing. */
static void change_tag(struct tags *tags, int64_t *tag)
{
    const int64_t *at = *tag < 0 ? NULL : bsearch(tag, tags->items, (size_t)tags->count,
                                                  sizeof *tag, compare_tags);
    if (at)
        *tag = at - tags->items + (at - tags->items >= NEVER_SENT);
}

static void each_tag(struct tags *tags, void act(struct tags *, int64_t *))
{
    for (uint64_t i = 0; i < record.call_count; i++) {
        struct call *call = &record.calls[i];
        for (int k = 0; k < call->routine->count; k++)
            if (call->routine->parameters[k].letter == 'k')
                act(tags, &call->fields[k].value);
        if (call->matched)
            act(tags, &call->tag);
        for (int k = 0; k < call->completed_count; k++)
            act(tags, &call->completed[k].tag);
    }
}

/* The tags of all ranks, each once. */
static struct tags gather_tags(const struct tags *own, int size)
{
    struct tags all = {NULL, 0, 0};
    int *counts = need((size_t)size, sizeof *counts), *places = need((size_t)size, sizeof *places);
    OWN(PMPI_Allgather(&own->count, 1, MPI_INT, counts, 1, MPI_INT, MPI_COMM_WORLD));
    for (int i = 0; i < size; i++) {
        places[i] = all.count;
        all.count += counts[i];
    }
    all.items = need((size_t)all.count, sizeof *all.items);
    OWN(PMPI_Allgatherv(own->items, own->count, MPI_INT64_T, all.items, counts, places, MPI_INT64_T,
                        MPI_COMM_WORLD));
    free(counts), free(places);
    keep_once(&all);
    return all;
}

/* What is wrong with them; NULL: nothing. */
const char *permit_tags(int size)
{
    struct tags own = {NULL, 0, 0};
    int there = 0, *bound = NULL;
    int64_t most = 0, largest = 0;
    OWN(PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &there));
    each_tag(&own, add_tag);
    keep_once(&own);
    most = own.count ? own.items[own.count - 1] : 0;
    OWN(PMPI_Allreduce(&most, &largest, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD));
    const char *problem = NULL;
    if (there && largest > *bound) {
        struct tags all = gather_tags(&own, size);
        problem = all.count < *bound ? NULL : "it has more tags than this MPI permits";
        if (!problem)
            each_tag(&all, change_tag);
        free(all.items);
    }
    free(own.items);
    return problem;
}
