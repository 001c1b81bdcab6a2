/* entries MODE: ways into MPI, out of it and past it, and calls of several threads. */
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, STEPS = 200, BLOCK = 1 << 20 };
static char from[8 * BLOCK], to[8 * BLOCK];
static int rank, ranks;
static pthread_barrier_t gate;

/* While the main thread pauses the counting, the others wait in a call and make more. */
static void *receive(void *argument)
{
    int number = *(int *)argument, value;
    for (int i = 0; i < STEPS; i++)
        MPI_Sendrecv(&number, 1, MPI_INT, rank, number, &value, 1, MPI_INT, rank, number,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    pthread_barrier_wait(&gate);
    MPI_Recv(&value, 1, MPI_INT, rank, number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(&value, 1, MPI_INT, rank, number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return NULL;
}

static void use_threads(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS], level;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pthread_barrier_init(&gate, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, receive, &numbers[i]);
    }
    pthread_barrier_wait(&gate);
    for (int times = 0; times < 2; times++) {
        MPI_Pcontrol(0);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < STEPS * STEPS; i++)
            MPI_Iprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &level, MPI_STATUS_IGNORE);
        MPI_Pcontrol(1);
        for (int i = 0; i < THREADS; i++)
            MPI_Send(&i, 1, MPI_INT, rank, i, MPI_COMM_WORLD);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    MPI_Finalize();
}

/* One after the other, and one in the other; all but the first are of no world that is counted. */
static void use_sessions(void)
{
    MPI_Session sessions[2];
    MPI_Group group;
    MPI_Comm comm;
    for (int i = 0; i < 2; i++)
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &sessions[i]);
    MPI_Session_finalize(&sessions[1]);
    MPI_Group_from_session_pset(sessions[0], "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "a", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    for (int i = 0; i < STEPS; i++)
        MPI_Barrier(comm);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&sessions[0]);
#ifndef OPEN_MPI /* 5.0.11 corrupts its memory: one that begins after all have ended */
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &sessions[0]);
    MPI_Session_finalize(&sessions[0]);
#endif
}

/* What persistent requests send is known, though they were made while nothing was counted. */
static void pause_first(void)
{
    MPI_Request requests[2];
    MPI_Comm comm;
    MPI_Init(NULL, NULL);
    MPI_Pcontrol(0);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Recv_init(to, 100, MPI_BYTE, rank, 0, comm, &requests[0]);
    MPI_Send_init(from, 100, MPI_BYTE, rank, 0, comm, &requests[1]);
    MPI_Pcontrol(1);
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPI_Finalize();
}

/* More requests than a table of fixed size has, and those that were freed. */
static void use_many_requests(void)
{
    enum { MANY = 6000 };
    static MPI_Request requests[2 * MANY];
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int times = 0; times < 2; times++) {
        for (int i = 0; i < MANY; i++) {
            MPI_Recv_init(to, 8, MPI_BYTE, rank, i, MPI_COMM_WORLD, &requests[2 * i]);
            MPI_Send_init(from, 8, MPI_BYTE, rank, i, MPI_COMM_WORLD, &requests[2 * i + 1]);
        }
        MPI_Startall(2 * MANY, requests);
        MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 2 * MANY; i++)
            MPI_Request_free(&requests[i]);
    }
    MPI_Finalize();
}

/* Everyone sends to the last rank alone; and a small message and a large one start together. */
static void send_to_last(void)
{
    int outs[8] = {0}, ins[8] = {0}, places[8];
    MPI_Request requests[4];
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    outs[ranks - 1] = rank == ranks - 1 ? 0 : BLOCK;
    for (int i = 0; i < ranks; i++) {
        ins[i] = rank == ranks - 1 && i != rank ? BLOCK : 0;
        places[i] = i * BLOCK;
    }
    MPI_Alltoallv(from, outs, places, MPI_BYTE, to, ins, places, MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; i < 2; i++) {
        int size = i ? BLOCK : 8;
        MPI_Send_init(from, size, MPI_BYTE, rank, i, MPI_COMM_WORLD, &requests[i]);
        MPI_Recv_init(to, size, MPI_BYTE, rank, i, MPI_COMM_WORLD, &requests[2 + i]);
    }
    MPI_Startall(4, requests);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    MPI_Finalize();
}

/* The largest tags that this MPI permits, and buffers of one-sided calls. */
static void use_window(void)
{
    int *memory, old = -1, one = 1, zero = 0, there = 0, *bound = NULL;
    MPI_Win window;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    *memory = 0;
    MPI_Win_fence(0, window);
    MPI_Compare_and_swap(&one, &zero, &old, MPI_INT, 0, 0, window);
    MPI_Win_fence(0, window);
    MPI_Put(MPI_IN_PLACE, 0, MPI_INT, 0, 0, 0, MPI_INT, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &there);
    for (int i = 0; i < 3; i++)
        MPI_Sendrecv(&one, 1, MPI_INT, rank, *bound - i, &old, 1, MPI_INT, rank,
                     i ? *bound - i : MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
}

/* Of two threads one waits for the other: one thread cannot make their calls. */
static void *take_message(void *nothing)
{
    int value;
    (void)nothing;
    MPI_Recv(&value, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return NULL;
}

static void need_two_threads(void)
{
    pthread_t thread;
    int level;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 16; i++) {
        pthread_create(&thread, NULL, take_message, NULL);
        MPI_Ssend(&level, 1, MPI_INT, rank, 0, MPI_COMM_WORLD);
        pthread_join(thread, NULL);
    }
    MPI_Finalize();
}

/* Which functions of MPI a program has, as mpi4py asks. */
static void look_up(int count, char **names)
{
    void *all = dlopen(NULL, RTLD_LAZY);
    for (int i = 0; i < count; i++)
        printf("%s %d %d %d\n", names[i], dlsym(RTLD_DEFAULT, names[i]) != NULL,
               dlsym(all, names[i]) != NULL, dlerror() != NULL);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (!strcmp(mode, "threads"))
        use_threads();
    else if (!strcmp(mode, "sessions"))
        use_sessions();
    else if (!strcmp(mode, "pause"))
        pause_first();
    else if (!strcmp(mode, "requests"))
        use_many_requests();
    else if (!strcmp(mode, "last"))
        send_to_last();
    else if (!strcmp(mode, "window"))
        use_window();
    else if (!strcmp(mode, "two"))
        need_two_threads();
    else if (!strcmp(mode, "names"))
        look_up(argc - 2, argv + 2);
    else { /* leaves without MPI_Finalize */
        MPI_Init(&argc, &argv);
        MPI_Barrier(MPI_COMM_WORLD);
        (!strcmp(mode, "_exit") ? _exit : !strcmp(mode, "quick") ? quick_exit : exit)(0);
    }
    return 0;
}
