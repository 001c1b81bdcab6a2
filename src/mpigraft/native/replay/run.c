/* The replay of a rank: each call of the record, after the gap that the program had before it. */
#include <pthread.h>

#include "replay.h"

struct run run;

/* Only those: "Alltoallv", "p2p", "onesided"; NULL: all. */
static bool is_chosen(const struct routine *routine, const char *only)
{
    char list[512], family[32];
    snprintf(list, sizeof list, " %s ", only);
    for (char *at = list; *at; at++)
        *at = *at == ',' ? ' ' : *at;
    snprintf(family, sizeof family, "%s", routine->p2p ? "p2p" : routine->one_sided ? "onesided" : "-");
    return one_of(routine->name, list) || one_of(family, list);
}

/* A routine of messages between two ranks counts for all of them, since they need each other. */
bool choose_calls(const char *only)
{
    const char *family = NULL;
    bool any = false;
    for (uint64_t i = 0; only && i < record.call_count; i++) {
        const struct routine *routine = record.calls[i].routine;
        if (is_chosen(routine, only) && routine->duty == TRAFFIC)
            family = routine->p2p ? "p2p" : routine->one_sided ? "onesided" : family;
    }
    for (uint64_t i = 0; i < record.call_count; i++) {
        const struct routine *routine = record.calls[i].routine;
        bool chosen = !only || is_chosen(routine, only) || (family && is_chosen(routine, family));
        record.calls[i].chosen = chosen;
        any |= chosen && routine->duty == TRAFFIC;
    }
    return !only || any;
}

static void wait_for_gap(struct node *node)
{
    if (!run.began)
        return;
    uint64_t gap = (uint64_t)((double)next_gap(node) * walk.scale);
    uint64_t from = checks.on ? ticks() : run.before;
    while (ticks() - from < gap)
        ;
}

/* Nothing goes to MPI_PROC_NULL and comes from it; what is only made ready moves when it starts. */
static uint64_t counted_bytes(const struct call *call)
{
    const struct routine *routine = call->routine;
    const char *peer = parameter_of(routine, "dest") >= 0     ? "dest"
                       : parameter_of(routine, "source") >= 0 ? "source"
                       : parameter_of(routine, "root") >= 0   ? "root"
                                                              : "target_rank";
    int64_t message = field_of(call, "message", 0);
    bool none = message > 0 && message_of(message)->source == RANK_OF_NULL;
    return routine->persistent || none || field_of(call, peer, 0) == RANK_OF_NULL ? 0 : call->bytes;
}

static void count_call(const struct call *call, uint64_t took)
{
    __atomic_store_n(&run.current, NULL, __ATOMIC_RELEASE);
    if (!run.began && call->routine->duty != OBJECT)
        return;
    struct routine *routine = call->routine->base ? call->routine->base : call->routine;
    routine->calls++;
    routine->ticks += took;
    routine->bytes += counted_bytes(call);
}

/* The place of a parameter that may be a wildcard; -1: it is none. */
static int wild_parameter(const struct call *call, bool tag)
{
    int at = parameter_of(call->routine, tag ? "recvtag" : "source");
    at = at < 0 && tag && parameter_of(call->routine, "source") >= 0 ? parameter_of(call->routine, "tag") : at;
    return at;
}

/* Source and tag of what is received: as they are given, or as they were matched. */
static void settle_source(struct act *act, word *words)
{
    const struct call *call = act->call;
    int source = wild_parameter(call, false), tag = wild_parameter(call, true);
    if (source < 0 || tag < 0 || !call->routine->p2p)
        return;
    act->source = call->fields[source].value;
    act->tag = call->fields[tag].value;
    if (act->source != RANK_ANY && act->tag != -1)
        return;
    int64_t from = call->source, with = call->tag;
    int made = parameter_of(call->routine, "request");
    bool known = call->matched ||
                 (made >= 0 && !call->routine->persistent &&
                  look_ahead(run.cursor, call->fields[made].value, &from, &with));
    if (known && from < 0) /* cancelled: it is to match no message of another receive */
        words[tag] = NEVER_SENT;
    if (!known || from < 0)
        return;
    words[source] = (word)from, words[tag] = (word)with;
    act->source = from, act->tag = with;
}

/* Whether it receives from any source, or of any tag. */
static bool asks_for_any(const struct call *call)
{
    int source = wild_parameter(call, false), tag = wild_parameter(call, true);
    return (source >= 0 && call->fields[source].value == RANK_ANY) ||
           (source >= 0 && tag >= 0 && call->fields[tag].value == -1);
}

static void finish_formers(const struct call *call)
{
    for (int i = 0; i < call->routine->count; i++)
        if (call->routine->parameters[i].letter == 'H' && call->fields[i].value > 0)
            finish_former(call->fields[i].value);
}

/* A request or a message that the call made keeps what belongs to it. */
static bool keep_act(struct act *act)
{
    const struct call *call = act->call;
    for (int i = 0; i < call->routine->count; i++) {
        char letter = call->routine->parameters[i].letter;
        int64_t id = call->fields[i].value;
        if (letter == 'G' && id > 0) {
            struct message *message = message_of(id);
            message->comm = comm_of(field_of(call, "comm", 0));
            message->source = act->source, message->tag = act->tag;
        }
        if (letter == 'H' && id > 0) {
            struct request *request = &objects.requests[id];
            request->live = true;
            request->persistent = call->routine->persistent;
            request->active = !call->routine->persistent;
            request->wild = asks_for_any(call);
            request->act = *act;
            if (checks.on && has_data(call) && (request->persistent || act->number))
                keep_objects(&request->act);
            return true;
        }
    }
    return false;
}

/* One call of the program; those that wait for a message or an epoch are repeated until it is
 * there. */
static uint64_t time_call(struct node *node, const word *words)
{
    const struct call *call = node->call;
    wait_for_gap(node);
    __atomic_store_n(&run.current, call, __ATOMIC_RELEASE);
    uint64_t from = ticks();
    do
        OK(call_words(call->routine, words));
    while (call->routine->repeats && !number_of(call, "flag"));
    return ticks() - from;
}

static void make_traffic(struct node *node)
{
    word words[MOST_PARAMETERS] = {0};
    struct call *call = node->call;
    struct act act = {.call = call, .source = -1, .tag = -1};
    finish_formers(call);
    if (!strcmp(call->routine->name, "Win_create")) {
        describe_buffers(call);
        act.buffers[0] = window_memory(call);
        call->buffers[0] = parameter_of(call->routine, "base");
    } else
        take_buffers(&act);
    load_words(call, act.buffers, words);
    settle_source(&act, words);
    if (!call->routine->persistent)
        prepare_data(&act);
    if (call->routine->one_sided)
        check_target(call);
    count_call(call, time_call(node, words));
    run.before = ticks();
    bool kept = keep_act(&act);
    if (!kept) {
        verify_data(&act, scratch.statuses);
        free_buffers(&act);
    }
    if (call->routine->duty == OBJECT)
        know_objects(call, !kept);
}

/* Whether the number of its calls does not depend on timing. */
static bool is_counted(const struct call *call)
{
    return starts_with(call->routine->name, "Wait") && strcmp(call->routine->name, "Waitsome");
}

static void make_completion(struct node *node)
{
    word words[MOST_PARAMETERS] = {0};
    struct call *call = node->call;
    const struct field *requests = requests_of(call);
    bool completing = starts_with(call->routine->name, "Wait") || starts_with(call->routine->name, "Test");
    load_words(call, (char *[MOST_BUFFERS]){NULL}, words);
    if (completing) {
        bool named = false, early = has_early(requests);
        for (int64_t i = 0; i < requests->value; i++)
            named |= requests->array[i] != 0;
        bool owed = takes_any(call) && take_owed(requests);
        int64_t due = load_requests(call, requests, owed);
        if (due || !named || (early && is_counted(call))) {
            wait_for_gap(node);
            __atomic_store_n(&run.current, call, __ATOMIC_RELEASE);
            count_call(call, complete_requests(call, words, due));
        } else if (early)
            wait_for_gap(node); /* what it waited for was complete before */
        else
            return; /* what it waited for is left out */
    } else {
        started_bytes = 0;
        if (cancelled_late(run.cursor, call) || !prepare_requests(call, words))
            return;
        call->bytes = started_bytes;
        count_call(call, time_call(node, words));
        if (!strcmp(call->routine->name, "Request_free"))
            forget_request(single_request(call));
    }
    run.before = ticks();
}

static void make_split(struct node *node)
{
    wait_for_gap(node);
    count_call(node->call, split_as_recorded(node->call));
    run.before = ticks();
}

/* Of what is before a phase, messages between two ranks are sent too: one may be under way when the
 * phase begins, and no rank knows of its own which. So are requests that it may start. */
static void make_call(struct node *node)
{
    const struct call *call = node->call;
    bool all = run.events++ >= run.part.first;
    switch (call->routine->duty) {
    case OBJECT:
        if (starts_with(call->routine->name, "Comm_split_type"))
            make_split(node);
        else if (!call->stray)
            make_traffic(node);
        break;
    case TRAFFIC:
        if ((all || call->routine->p2p || call->routine->persistent) && call->chosen)
            make_traffic(node);
        break;
    case COMPLETION: make_completion(node); break;
    default:
        if (all)
            wait_for_gap(node);
        run.before = ticks();
    }
}

/* From the first call that is made to the last; objects are made before it, off the clock. */
void run_record(void)
{
    struct node *node;
    bool started = false;
    while (run.events < run.part.last && (node = next_node(&run.cursor))) {
        if (!started && run.events >= run.part.first) {
            OWN(PMPI_Barrier(MPI_COMM_WORLD));
            run.began = run.before = ticks();
            started = true;
        }
        make_call(node);
    }
    run.ended = ticks();
    if (!started)
        DIE("the record has no call from number %llu on", (unsigned long long)run.part.first);
}

/* What was not complete where a record or a phase ends. */
void drop_requests(void)
{
    for (int64_t i = 1; i <= objects.most[REQUESTS_OF]; i++) {
        struct request *request = &objects.requests[i];
        if (!request->active || !request->act.call->routine->p2p)
            continue;
        if (parameter_of(request->act.call->routine, "source") >= 0)
            OWN(PMPI_Cancel(&request->handle));
        OWN(PMPI_Request_free(&request->handle));
    }
}

/* Whether this rank waits in a call for longer than the whole program ran: a record of several
 * threads may need two of its calls at once. Then the replay ends, and says where. */

enum { LEAST_WAIT_S = 60, LONGER = 3 }; /* than the program */

static struct {
    double limit_s;
    bool ends; /* the replay; else it only tells */
} watch;

static void *watch_calls(void *nothing)
{
    (void)nothing;
    uint64_t number = 0;
    struct moment since = moment_now();
    for (;;) {
        nanosleep(&(struct timespec){0, 200 * 1000 * 1000}, NULL);
        const struct call *call = __atomic_load_n(&run.current, __ATOMIC_ACQUIRE);
        if (!call || number != run.events) {
            number = run.events;
            since = moment_now();
            continue;
        }
        double waited_s = 1e-9 * (double)(moment_now().ns - since.ns);
        if (waited_s < watch.limit_s)
            continue;
        fprintf(stderr,
                PROGRAM ": rank %d waits in MPI_%s, call %llu of its record, for %.0f s%s\n", speaker,
                call->routine->name, (unsigned long long)number, waited_s,
                watch.ends ? ": the record has calls of several threads, which one thread may not be "
                             "able to repeat; the replay ends"
                           : "");
        if (watch.ends)
            _exit(EXIT_RUNTIME);
        return NULL;
    }
}

/* `run_s`: of the program, with the gaps that are made. */
void start_watch(double run_s, double patience_s)
{
    static pthread_t thread;
    watch.ends = record.threads;
    watch.limit_s = patience_s > 0 ? patience_s : LEAST_WAIT_S + LONGER * run_s;
    if (pthread_create(&thread, NULL, watch_calls, NULL))
        fprintf(stderr, PROGRAM ": no thread to watch the calls\n");
}
