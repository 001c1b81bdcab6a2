/* A program with known counts; its argument says how it ends. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PART = 64, MOST = 16 };

static char from[MOST * PART], to[MOST * PART];

__attribute__((noinline)) void exchange(int size)
{
    int counts[MOST], places[MOST];
    for (int i = 0; i < size; i++) {
        counts[i] = PART;
        places[i] = i * PART;
    }
    MPI_Alltoallv(from, counts, places, MPI_CHAR, to, counts, places, MPI_CHAR, MPI_COMM_WORLD);
    __asm__ volatile("" ::: "memory");
}

/* Calls that never repeat, and what the process has taken of memory then. */
static void make_unlike_calls(long many)
{
    unsigned seed = 1;
    for (long i = 0; i < many; i += 3) {
        MPI_Request request;
        int count = rand_r(&seed) % (MOST * PART), tag = rand_r(&seed) % 1000;
        MPI_Irecv(to, MOST * PART, MPI_CHAR, 0, tag, MPI_COMM_SELF, &request);
        MPI_Send(from, count, MPI_CHAR, 0, tag, MPI_COMM_SELF);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("peak %ld KiB\n", usage.ru_maxrss);
}

/* Messages that are received in a later phase than they are asked for or sent, and requests that an
 * earlier one made. */
static void send_across(int rank, int size)
{
    enum { LARGE = 1 << 22 };
    char *own = calloc(2, LARGE);
    int up = (rank + 1) % size, down = (rank + size - 1) % size;
    MPI_Request early, kept[2];
    MPI_Send_init(own, 10, MPI_CHAR, up, 5, MPI_COMM_WORLD, &kept[0]);
    MPI_Recv_init(own + LARGE, 10, MPI_CHAR, down, 5, MPI_COMM_WORLD, &kept[1]);
    MPI_Irecv(own + LARGE, LARGE, MPI_CHAR, down, 3, MPI_COMM_WORLD, &early);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol(1);
    MPI_Send(own, LARGE, MPI_CHAR, up, 3, MPI_COMM_WORLD);
    MPI_Wait(&early, MPI_STATUS_IGNORE);
    MPI_Startall(2, kept);
    MPI_Waitall(2, kept, MPI_STATUSES_IGNORE);
    MPI_Isend(own, LARGE, MPI_CHAR, up, 4, MPI_COMM_WORLD, &early);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol(1);
    MPI_Recv(own + LARGE, LARGE, MPI_CHAR, down, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&early, MPI_STATUS_IGNORE);
    MPI_Request_free(&kept[0]);
    MPI_Request_free(&kept[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    free(own);
}

int main(int argc, char **argv)
{
    int rank, size;
    const char *how = argc > 1 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 10; i++)
        exchange(size);
    for (int i = 0; i < 20; i++) {
        double one = 1, sum;
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    if (!strcmp(how, "unlike"))
        make_unlike_calls(1000000);
    if (!strcmp(how, "refused")) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Bcast(from, -1, MPI_CHAR, 0, MPI_COMM_WORLD);
    }
    if (!strcmp(how, "dynamic")) {
        MPI_Win window;
        MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        MPI_Win_fence(0, window);
        MPI_Win_free(&window);
    }
    if (!strcmp(how, "pcontrol")) {
        MPI_Comm other;
        MPI_Pcontrol(0);
        exchange(size);
        MPI_Comm_dup(MPI_COMM_WORLD, &other);
        MPI_Barrier(other);
        MPI_Comm_free(&other);
        MPI_Pcontrol(-1);
        usleep(200000);
        MPI_Pcontrol(1);
        exchange(size);
    }
    if (!strcmp(how, "across"))
        send_across(rank, size);
    puts("done");
    fflush(stdout);
    if (*how && strcmp(how, "pcontrol") && strcmp(how, "across"))
        usleep(200000); /* MPICH's launcher drops what a rank printed just before another aborts */
    if (!strcmp(how, "exit"))
        exit(3);
    if (!strcmp(how, "abort"))
        MPI_Abort(MPI_COMM_WORLD, 7);
    if (!strcmp(how, "segv"))
        raise(SIGSEGV);
    if (!strcmp(how, "hang")) {
        if (!rank)
            pause();
        MPI_Recv(to, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
