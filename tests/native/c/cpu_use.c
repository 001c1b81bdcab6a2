/* Says who used the CPUs of ranks: BEFORE AFTER SECONDS, files like /proc/stat, and of each rank
 * its CPUs as 0,1 and its CPU seconds and switches as 0,1:SECONDS:SWITCHES. */
#include <stdlib.h>

#include "../../../src/mpigraft/native/common/conditions.c"

const char program_name[] = "cpu_use";

int main(int argc, char **argv)
{
    static struct cpu_time before[CPU_SETSIZE], after[CPU_SETSIZE];
    static struct rank_use rank[64];
    int count = argc - 4;
    if (count < 0 || count > 64)
        return 2;
    read_cpu_times(argv[1], before);
    read_cpu_times(argv[2], after);
    for (int i = 0; i < count; i++) {
        char *at = argv[4 + i];
        for (; *at != ':'; at += *at == ',')
            CPU_SET((size_t)strtol(at, &at, 10), &rank[i].cpus);
        rank[i].seconds = strtod(at + 1, &at);
        rank[i].switches = strtol(at + 1, &at, 10);
    }
    struct node_use node = use_of_node(rank, count, atof(argv[3]), before, after);
    printf("%d %d %.4g %.4g %.4g %.4g %ld\n", node.ranks, node.cpus, node.busy, node.steal,
           node.own, node.others, node.switches);
    return use_of_rank().seconds < 0;
}
