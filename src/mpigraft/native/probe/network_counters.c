/* What the networks of this host have sent, by the counters of the kernel and of drivers. */
#include <dirent.h>

#include "kernel.h"

static const char *const COUNTERS[] = {"netdev", "infiniband", "cxi telemetry"};

void add_wire(struct wires *wires, const char *name, int counter, long long sent)
{
    if (wires->count == MOST_WIRES)
        return;
    struct wire *wire = &wires->wire[wires->count++];
    snprintf(wire->name, sizeof wire->name, "%.*s", (int)sizeof wire->name - 1, name);
    wire->counter = counter;
    wire->sent = sent;
    wire->least = wire->own = wire->lacking = 0;
}

/* Bytes sent by each interface of this process's own network, not of what /sys was mounted for. */
static void read_interfaces(struct wires *wires)
{
    char line[512], name[64];
    long long sent;
    FILE *file = fopen("/proc/self/net/dev", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, " %63[^:]: %*d %*d %*d %*d %*d %*d %*d %*d %lld", name, &sent) == 2)
            add_wire(wires, name, NETDEV, sent);
    if (file)
        fclose(file);
}

/* One counter of the kernel; Slingshot's files read "value@time". */
static bool read_counter(const char *path, long long *value)
{
    FILE *file = fopen(path, "r");
    bool found = file && fscanf(file, "%lld", value) == 1;
    if (file)
        fclose(file);
    return found;
}

/* Networks that bypass the kernel's interfaces, by the files that their drivers keep. */
static const struct {
    const char *folder, *file;
    const char *suffix; /* of the wire's name */
    int unit;           /* bytes of one count */
    int counter;
} BYPASSING[] = {
    {"/sys/class/infiniband", "ports/1/counters/port_xmit_data", ":1", 4, INFINIBAND},
    {"/sys/class/infiniband", "ports/2/counters/port_xmit_data", ":2", 4, INFINIBAND},
    {"/sys/class/cxi", "device/telemetry/hni_sts_tx_ok_octets", "", 1, CXI_TELEMETRY},
};

static void read_bypassing(struct wires *wires)
{
    for (size_t i = 0; i < sizeof BYPASSING / sizeof *BYPASSING; i++) {
        DIR *devices = opendir(BYPASSING[i].folder);
        struct dirent *device;
        while (devices && (device = readdir(devices))) {
            char path[512], name[300];
            long long count;
            snprintf(path, sizeof path, "%s/%s/%s", BYPASSING[i].folder, device->d_name,
                     BYPASSING[i].file);
            snprintf(name, sizeof name, "%s%s", device->d_name, BYPASSING[i].suffix);
            if (device->d_name[0] != '.' && read_counter(path, &count))
                add_wire(wires, name, BYPASSING[i].counter, count * BYPASSING[i].unit);
        }
        if (devices)
            closedir(devices);
    }
}

/* Interfaces belong to a network namespace, and a machine may have many; devices belong to
 * the machine. Who reads for whom is the caller's to say. */
void read_wires(struct wires *wires, bool interfaces, bool devices)
{
    memset(wires, 0, sizeof *wires);
    if (interfaces)
        read_interfaces(wires);
    if (devices)
        read_bypassing(wires);
}

/* What was sent from `before` to `after`; an interface that came meanwhile counts from its start. */
struct wires wires_since(const struct wires *before, const struct wires *after)
{
    struct wires since = *after;
    for (int i = 0; i < since.count; i++)
        for (int k = 0; k < before->count; k++)
            if (!strcmp(since.wire[i].name, before->wire[k].name))
                since.wire[i].sent -= before->wire[k].sent;
    return since;
}

long long all_sent(const struct wires *wires)
{
    long long sent = 0;
    for (int i = 0; i < wires->count; i++)
        sent += wires->wire[i].sent;
    return sent;
}

/* `"counters":{"e0":"netdev","mlx5_0:1":"infiniband"}` */
void print_counters(const struct wires *wires)
{
    fputs("\"counters\":{", stdout);
    for (int i = 0; i < wires->count; i++) {
        fputs(i ? "," : "", stdout);
        json_string(stdout, wires->wire[i].name);
        printf(":\"%s\"", COUNTERS[wires->wire[i].counter]);
    }
    putchar('}');
}

/* `"TITLE":{"e0":1048576}`, a member of each wire; those of none only where `all` are wanted. */
void print_by_name(const char *title, const struct wires *wires, size_t member, bool all)
{
    printf("\"%s\":{", title);
    const char *between = "";
    for (int i = 0; i < wires->count; i++) {
        long long value;
        memcpy(&value, (const char *)&wires->wire[i] + member, sizeof value);
        if (!value && !all)
            continue;
        fputs(between, stdout);
        json_string(stdout, wires->wire[i].name);
        printf(":%lld", value);
        between = ",";
    }
    putchar('}');
}

bool counts(const struct wires *wires, int counter)
{
    for (int i = 0; i < wires->count; i++)
        if (wires->wire[i].counter == counter)
            return true;
    return false;
}

static long long sent_through(const struct wires *wires, const char *name)
{
    for (int i = 0; i < wires->count; i++)
        if (!strcmp(wires->wire[i].name, name))
            return wires->wire[i].sent;
    return 0;
}

/* What each of several hosts sent, added up by name. A host that reads such counters and lacks
 * the wire sent nothing through it. */
struct wires wires_of_all(const struct wires *all, int hosts)
{
    struct wires total = {0};
    for (int host = 0; host < hosts; host++)
        for (int i = 0; i < all[host].count; i++) {
            int k = 0;
            while (k < total.count && strcmp(total.wire[k].name, all[host].wire[i].name))
                k++;
            if (k == total.count)
                add_wire(&total, all[host].wire[i].name, all[host].wire[i].counter, 0);
            if (k == total.count)
                continue;
            const struct wire *one = &all[host].wire[i];
            long long lacking = one->own - one->sent;
            total.wire[k].sent += one->sent;
            total.wire[k].own += one->own;
            if (lacking > total.wire[k].lacking)
                total.wire[k].lacking = lacking;
        }
    for (int k = 0; k < total.count; k++) {
        struct wire *wire = &total.wire[k];
        wire->least = wire->sent;
        for (int host = 0; host < hosts; host++) {
            long long own = sent_through(&all[host], wire->name);
            if (own < wire->least && counts(&all[host], wire->counter))
                wire->least = own;
        }
    }
    return total;
}
