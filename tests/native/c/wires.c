/* Reads what hosts counted, `HOST NAME COUNTER SENT OWN` a line, and prints what that is together:
 * `NAME SENT LEAST OWN LACKING` a line. */
#include <stdlib.h>

#include "../../../src/mpigraft/native/probe/network_counters.c"

enum { MOST_HOSTS = 16 };

int main(void)
{
    static struct wires hosts[MOST_HOSTS];
    char name[48];
    int host, counter, most = 0;
    long long sent, own;
    while (scanf("%d %47s %d %lld %lld", &host, name, &counter, &sent, &own) == 5) {
        struct wires *wires = &hosts[host % MOST_HOSTS];
        add_wire(wires, name, counter, sent);
        wires->wire[wires->count - 1].own = own;
        most = host + 1 > most ? host + 1 : most;
    }
    struct wires total = wires_of_all(hosts, most);
    for (int i = 0; i < total.count; i++) {
        const struct wire *wire = &total.wire[i];
        printf("%s %lld %lld %lld %lld\n", wire->name, wire->sent, wire->least, wire->own,
               wire->lacking);
    }
    return 0;
}
