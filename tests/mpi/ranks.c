/* A program of MPI that does what its arguments say: a user's job in small. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int asked(int argc, char **argv, const char *word)
{
    return argc > 1 && !strcmp(argv[1], word);
}

int main(int argc, char **argv)
{
    int rank, size, code = 0;
    const char *word = argc > 2 ? argv[2] : "0";
    if (asked(argc, argv, "never"))
        return atoi(word);
    if (asked(argc, argv, "instead"))
        return system(word) != 0;
    if (asked(argc, argv, "before"))
        code = system(word) != 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (asked(argc, argv, "sleep")) {
        printf("ready %d\n", rank);
        fflush(stdout);
        sleep((unsigned)atoi(word));
    }
    if (asked(argc, argv, "read") && !rank) {
        char line[256];
        for (int left = atoi(word); left > 0 && fgets(line, sizeof line, stdin); left--)
            fputs(line, stdout);
    }
    if (asked(argc, argv, "lines") && !rank)
        for (int i = 0; i < atoi(word); i++)
            printf("line %d\n", i);
    if (asked(argc, argv, "env"))
        printf("%s=%s\n", word, getenv(word) ? getenv(word) : "(none)");
    if (asked(argc, argv, "die") && rank == atoi(word))
        raise(SIGKILL);
    if (asked(argc, argv, "after") && !rank)
        code = system(word) != 0;
    if (asked(argc, argv, "code"))
        code = atoi(word);
    printf("rank %d of %d\n", rank, size);
    MPI_Finalize();
    return code;
}
