/* mpigraft-spawn: whether this launcher lets ranks start others.
 *
 *     mpigraft-spawn [multiple | COMMAND]
 *
 * All ranks together start two more of this program, or of COMMAND, with MPI_Comm_spawn or
 * MPI_Comm_spawn_multiple, and add up numbers of both sides over the intercommunicator. Rank 0 prints one line of JSON when
 * the sums are right, with how many of the children saw MPIGRAFT_MARK and OMPI_MCA_mpigraft_mark
 * (what only ranks were given need not reach what they start), and which libmpi the first child has
 * mapped. A launcher that cannot spawn ends the program with the MPI's own error. */
#include <string.h>
#include <unistd.h>

#include "../common/check.h"
#include "../common/json.h"

const char program_name[] = "mpigraft-spawn";

enum { CHILDREN = 2, PATH_ROOM = 4096 };

/* 1 + 2 + ... + n */
static int sum_to(int n)
{
    return n * (n + 1) / 2;
}

/* Each side gives something and gets the sum of what the other gave. */
static int sum_over(MPI_Comm between, int given)
{
    int sum = 0;
    OK(MPI_Allreduce(&given, &sum, 1, MPI_INT, MPI_SUM, between));
    return sum;
}

static char word[] = "with a blank"; /* which children are given */

/* The path of the libmpi of this process; empty where it is linked in. */
static void find_libmpi(char path[PATH_ROOM])
{
    char line[PATH_ROOM + 256];
    FILE *maps = fopen("/proc/self/maps", "re");
    *path = 0;
    while (maps && !*path && fgets(line, sizeof line, maps)) {
        const char *file = strchr(line, '/'), *base = strrchr(line, '/');
        if (file && !strncmp(base, "/libmp", 6) && strncmp(base, "/libmpigraft", 12))
            snprintf(path, PATH_ROOM, "%.*s", (int)strcspn(file, "\n"), file);
    }
    if (maps)
        fclose(maps);
}

static void be_child(MPI_Comm parents, int argc, char **argv)
{
    int many, rank;
    char path[PATH_ROOM];
    if (argc != 2 || strcmp(argv[1], word))
        DIE("my arguments are not those that my parents gave");
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    int sum = sum_over(parents, rank + 1);
    sum_over(parents, getenv("MPIGRAFT_MARK") != NULL);
    sum_over(parents, getenv("OMPI_MCA_mpigraft_mark") != NULL);
    OK(MPI_Comm_remote_size(parents, &many));
    if (sum != sum_to(many))
        DIE("%d parents gave %d, not %d", many, sum, sum_to(many));
    find_libmpi(path);
    if (!rank)
        OK(MPI_Send(path, PATH_ROOM, MPI_CHAR, 0, 0, parents));
    OK(MPI_Comm_disconnect(&parents));
}

static void spawn(char *self, int multiple, MPI_Comm *children)
{
    int codes[CHILDREN], most[CHILDREN];
    char *arguments[] = {word, NULL}, *commands[CHILDREN], **lists[CHILDREN];
    MPI_Info infos[CHILDREN];
    for (int i = 0; i < CHILDREN; i++) {
        commands[i] = self;
        lists[i] = arguments;
        most[i] = 1;
        infos[i] = MPI_INFO_NULL;
    }
    if (multiple)
        OK(MPI_Comm_spawn_multiple(CHILDREN, commands, lists, most, infos, 0, MPI_COMM_WORLD,
                                   children, codes));
    else
        OK(MPI_Comm_spawn(self, arguments, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, children,
                          codes));
}

static void be_parent(const char *choice)
{
    int multiple = !strcmp(choice, "multiple");
    char self[PATH_ROOM] = "", path[PATH_ROOM];
    int rank, size, many;
    MPI_Comm children;
    if (*choice && !multiple)
        snprintf(self, sizeof self, "%s", choice);
    else if (readlink("/proc/self/exe", self, sizeof self - 1) <= 0)
        DIE("cannot find my own file");
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    speaker = rank;
    spawn(self, multiple, &children);
    int sum = sum_over(children, rank + 1);
    int marked = sum_over(children, 0);
    int set = sum_over(children, 0);
    OK(MPI_Comm_remote_size(children, &many));
    if (many != CHILDREN || sum != sum_to(CHILDREN))
        DIE("%d children gave %d, not %d", many, sum, sum_to(CHILDREN));
    if (!rank)
        OK(MPI_Recv(path, PATH_ROOM, MPI_CHAR, 0, 0, children, MPI_STATUS_IGNORE));
    OK(MPI_Comm_disconnect(&children));
    if (rank)
        return;
    printf("{\"mpigraft\":\"spawned\",\"parents\":%d,\"children\":%d,\"marked\":%d,\"set\":%d,"
           "\"libmpi\":",
           size, many, marked, set);
    json_string(stdout, path);
    puts("}");
}

int main(int argc, char **argv)
{
    MPI_Comm parents;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_get_parent(&parents));
    if (parents == MPI_COMM_NULL)
        be_parent(argc > 1 ? argv[1] : "");
    else
        be_child(parents, argc, argv);
    OK(MPI_Finalize());
    return fflush(stdout) ? EXIT_RUNTIME : 0;
}
