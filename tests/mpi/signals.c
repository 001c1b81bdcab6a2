/* A program of MPI that prints each signal that it gets, and ends a second after SIGTERM. */
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
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    sigprocmask(SIG_BLOCK, &set, NULL);
    printf("ready %d\n", rank);
    fflush(stdout);
    for (int number = 0; number != SIGTERM;) {
        number = sigwaitinfo(&set, NULL);
        printf("rank %d got %d\n", rank, number);
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
