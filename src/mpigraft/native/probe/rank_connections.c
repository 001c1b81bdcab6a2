/* Which of the ranks' connections lead to ranks, and what these carried.
 *
 * A connection is between ranks when two of them hold its two ends; daemons (PMIx, PRRTE, hydra)
 * hold one end themselves. Each rank sends the ends that it holds to a rank that the addresses
 * choose, which finds the pairs and answers. A list of all ends on rank 0 was rejected: after an
 * all-to-all that is the square of the ranks.
 */
#include <limits.h>
#include <stdint.h>

#include "probe.h"

/* ---- whose ends meet ---- */

struct end {
    uint64_t key;  /* of the connection, the same at both ends */
    uint64_t host; /* of its holder; in the answer: of the other end's */
    int rank;      /* its holder; in the answer: the other end's, or NOBODY */
    int side;      /* which of the two ends it is */
    int place;     /* of the connection in the holder's list */
};

static int compare_endpoints(const struct endpoint *one, const struct endpoint *other)
{
    int by_address = memcmp(one->address, other->address, sizeof one->address);
    return one->family != other->family ? one->family - other->family
           : by_address                 ? by_address
                                        : memcmp(&one->port, &other->port, sizeof one->port);
}

static uint64_t mixed_endpoint(uint64_t hash, const struct endpoint *end)
{
    hash = mixed(hash, &end->family, sizeof end->family);
    hash = mixed(hash, end->address, sizeof end->address);
    return mixed(hash, &end->port, sizeof end->port);
}

static bool loopback(const struct endpoint *end)
{
    static const unsigned char six[16] = {[15] = 1};
    return end->family == AF_INET ? end->address[0] == 127
                                  : !memcmp(end->address, six, sizeof six);
}

/* Loopback addresses mean another thing in each network, so its number is part of the key. */
static struct end end_of(const struct probe *probe, const struct connection *connection, int place)
{
    const struct endpoint *one = &connection->local, *other = &connection->peer;
    int side = compare_endpoints(one, other) > 0;
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    if (loopback(one) || loopback(other))
        hash = mixed(hash, &probe->place.network, sizeof probe->place.network);
    hash = mixed_endpoint(mixed_endpoint(hash, side ? other : one), side ? one : other);
    return (struct end){hash, probe->place.host, probe->rank, side, place};
}

static int by_key(const void *one, const void *other)
{
    const struct end *a = one, *b = other;
    return a->key != b->key     ? (a->key < b->key ? -1 : 1)
           : a->side != b->side ? a->side - b->side
                                : (a->rank > b->rank) - (a->rank < b->rank);
}

/* Turn each of `count` ends into the answer for its holder, in the order in which they came. */
static void answer_ends(struct end *ends, int count)
{
    struct end *sorted = need((size_t)count, sizeof *sorted);
    for (int i = 0; i < count; i++) {
        sorted[i] = ends[i];
        sorted[i].place = i;
    }
    qsort(sorted, (size_t)count, sizeof *sorted, by_key);
    for (int first = 0, last; first < count; first = last) {
        for (last = first; last < count && sorted[last].key == sorted[first].key;)
            last++;
        const struct end *low = &sorted[first], *high = &sorted[last - 1];
        bool pair = low->side != high->side;
        for (int i = first; i < last; i++) {
            const struct end *other = sorted[i].side ? low : high;
            struct end *answer = &ends[sorted[i].place];
            answer->rank = pair ? other->rank : NOBODY;
            answer->host = pair ? other->host : 0;
        }
    }
    free(sorted);
}

/* How many bytes go where, and where those of each rank begin; returns their sum. */
static int begins(const int *bytes, int size, int *begin)
{
    int sum = 0;
    for (int rank = 0; rank < size; rank++) {
        begin[rank] = sum;
        sum += bytes[rank];
    }
    return sum;
}

/* Ends with an unknown peer, bucket by bucket of the ranks that answer for them. */
static struct end *open_ends(const struct probe *probe, int *bytes, int *begin)
{
    const struct sockets *own = &probe->sockets;
    int *next = need((size_t)probe->size, sizeof *next);
    struct end *ends = need(own->count, sizeof *ends);
    for (int fill = 0; fill < 2; fill++) {
        for (size_t i = 0; i < own->count; i++) {
            if (own->all[i].class != NO_RANK || own->all[i].walk != own->walk)
                continue;
            struct end end = end_of(probe, &own->all[i], (int)i);
            int owner = (int)(end.key % (uint64_t)probe->size);
            if (fill)
                ends[begin[owner] / (int)sizeof end + next[owner]++] = end;
            else
                bytes[owner] += (int)sizeof end;
        }
        begins(bytes, probe->size, begin);
    }
    free(next);
    return ends;
}

/* Who keeps the other end of a connection, for all that have come since this was last done. */
void match_connections(struct probe *probe)
{
    struct sockets *own = &probe->sockets;
    int fresh = 0, any;
    size_t size = (size_t)probe->size;
    for (size_t i = 0; i < own->count; i++)
        fresh |= !own->all[i].tried;
    OK(MPI_Allreduce(&fresh, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    if (!any)
        return;
    int *bytes = need(4 * size, sizeof *bytes), *begin = bytes + size;
    int *bytes_in = bytes + 2 * size, *begin_in = bytes + 3 * size;
    struct end *ends = open_ends(probe, bytes, begin);
    OK(MPI_Alltoall(bytes, 1, MPI_INT, bytes_in, 1, MPI_INT, MPI_COMM_WORLD));
    int arriving = begins(bytes_in, probe->size, begin_in);
    struct end *theirs = need((size_t)arriving, 1);
    OK(MPI_Alltoallv(ends, bytes, begin, MPI_BYTE, theirs, bytes_in, begin_in, MPI_BYTE,
                     MPI_COMM_WORLD));
    answer_ends(theirs, arriving / (int)sizeof *theirs);
    OK(MPI_Alltoallv(theirs, bytes_in, begin_in, MPI_BYTE, ends, bytes, begin, MPI_BYTE,
                     MPI_COMM_WORLD));
    int count = (begin[size - 1] + bytes[size - 1]) / (int)sizeof *ends;
    for (int i = 0; i < count; i++)
        if (ends[i].rank != NOBODY)
            own->all[ends[i].place].class = ends[i].rank == probe->rank       ? SELF
                                            : ends[i].host == probe->place.host ? NEAR
                                                                                : FAR;
    for (size_t i = 0; i < own->count; i++)
        own->all[i].tried = true;
    free(theirs);
    free(ends);
    free(bytes);
}

/* ---- what they carried ---- */

/* The place of a connection's interface in the list, asked once. */
static int place_of_interface(const struct probe *probe, struct connection *connection)
{
    char name[IF_NAMESIZE] = "";
    if (connection->interface >= 0 || !interface_of(probe->routes, connection, name))
        return connection->interface;
    for (int i = 0; i < probe->interfaces.count; i++)
        if (!strcmp(probe->interfaces.wire[i].name, name))
            connection->interface = i;
    return connection->interface;
}

/* What this rank's connections carried; `through` is by interface, for classes of `due` alone. */
static struct shares own_shares(struct probe *probe, unsigned due, long long *through)
{
    struct sockets *own = &probe->sockets;
    struct shares shares = {.gap = own->gap};
    for (size_t i = 0; i < own->count; i++) {
        struct connection *one = &own->all[i];
        if (one->walk != own->walk)
            continue;
        long long sent = one->sent - one->sent_before;
        shares.sent[one->class] += sent;
        shares.received[one->class] += one->received - one->received_before;
        int place = due & 1u << one->class ? place_of_interface(probe, one) : -1;
        if (place >= 0)
            through[place] += sent;
    }
    return shares;
}

/* Add up the shares of all ranks, on rank 0, and by interface into `wires` on readers. `each` is
 * what this rank had to send: 0 where that is not its own alone. */
struct shares shares_of_all(struct probe *probe, unsigned due, long long each,
                            struct wires *wires)
{
    long long through[MOST_WIRES] = {0}, network[MOST_WIRES] = {0};
    struct shares own = own_shares(probe, due, through), all = {0};
    OK(MPI_Reduce(own.sent, all.sent, PEER_CLASSES, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD));
    OK(MPI_Reduce(own.received, all.received, PEER_CLASSES, MPI_LONG_LONG, MPI_SUM, 0,
                  MPI_COMM_WORLD));
    OK(MPI_Reduce(through, network, MOST_WIRES, MPI_LONG_LONG, MPI_SUM, 0, probe->network));
    for (int i = 0; probe->reads_interfaces && i < probe->interfaces.count; i++)
        for (int k = 0; k < wires->count; k++)
            if (wires->wire[k].counter == NETDEV &&
                !strcmp(wires->wire[k].name, probe->interfaces.wire[i].name))
                wires->wire[k].own = network[i];
    long long sent = 0;
    for (int class = 0; class < PEER_CLASSES; class++)
        if (due & 1u << class)
            sent += own.sent[class];
    long long mine[] = {each, each ? sent : 0, each ? -sent : -LLONG_MAX, own.gap}, most[4];
    OK(MPI_Reduce(mine, most, 4, MPI_LONG_LONG, MPI_MAX, 0, MPI_COMM_WORLD));
    all.each = most[0];
    all.most = most[1];
    all.least = most[0] ? -most[2] : 0;
    all.gap = (enum gap)most[3];
    return all;
}

/* `"sockets":{"gap":"","no-rank":[0,0],"on-node":[SENT,RECEIVED],...,"through":{"e0":SENT}}` */
void print_shares(const struct shares *shares, const struct wires *wires)
{
    static const char *const names[] = {"no-rank", "self", "on-node", "off-node"};
    fputs("\"sockets\":{\"gap\":", stdout);
    json_string(stdout, GAPS[shares->gap]);
    for (int class = 0; class < PEER_CLASSES; class++)
        printf(",\"%s\":[%lld,%lld]", names[class], shares->sent[class], shares->received[class]);
    printf(",\"each\":%lld,\"least\":%lld,\"most\":%lld,", shares->each, shares->least,
           shares->most);
    print_by_name("through", wires, offsetof(struct wire, own), false);
    putchar(',');
    print_by_name("lacking", wires, offsetof(struct wire, lacking), false);
    putchar('}');
}
