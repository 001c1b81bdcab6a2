/* signals [stubborn]: a program of MPI that prints each signal that it gets, and ends at SIGTERM;
 * a stubborn one ends at none. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const int numbers[] = {SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGTERM};
    sigset_t set;
    int rank;
    sigemptyset(&set);
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&set, numbers[i]);
    if (argc > 1) {
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGQUIT);
    }
    /* Before MPI starts threads of its own (UCX does): one that blocks nothing would get them. */
    sigprocmask(SIG_BLOCK, &set, NULL);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("ready %d\n", rank);
    fflush(stdout);
    for (int number = 0; argc > 1 || number != SIGTERM;) {
        number = sigwaitinfo(&set, NULL);
        printf("rank %d got %d\n", rank, number);
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
