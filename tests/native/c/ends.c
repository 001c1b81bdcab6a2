/* Reads ends of connections, `KEY HOST RANK SIDE` a line, and prints the answer to each: the rank
 * and the host of the other end. */
#include "../../../src/mpigraft/native/probe/rank_connections.c"

const char program_name[] = "ends";

int main(void)
{
    static struct end ends[4096];
    int count = 0;
    unsigned long long key, host;
    while (count < 4096 &&
           scanf("%llu %llu %d %d", &key, &host, &ends[count].rank, &ends[count].side) == 4) {
        ends[count].key = key;
        ends[count].host = host;
        count++;
    }
    answer_ends(ends, count);
    for (int i = 0; i < count; i++)
        printf("%d %llu\n", ends[i].rank, (unsigned long long)ends[i].host);
    return 0;
}
