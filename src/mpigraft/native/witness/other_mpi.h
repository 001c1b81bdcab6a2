/* A child of MPI_Comm_spawn that enters another MPI than its parents' never joins them, and they wait
 * for it: the job is ended, before the child starts, or before it enters. */
#ifndef MPIGRAFT_WITNESS_OTHER_MPI_H
#define MPIGRAFT_WITNESS_OTHER_MPI_H

#include <stdbool.h>

#include "../preload/next_mpi.h"

function real_or_end(const char *name);

/* A handle is an int in MPICH's ABI and a pointer in Open MPI's and in the standard one. Each
 * is passed as what it is: the two differ in the registers' upper halves. */
enum abi { INTS, POINTERS };

struct mpi {
    enum abi abi;
    void *world, *none; /* communicators: MPI_COMM_WORLD, MPI_COMM_NULL */
    void *no_info;      /* MPI_INFO_NULL */
};

void *handle_of(unsigned number);
struct mpi which_mpi(void);
int ask_int(const char *name, struct mpi mpi, void *handle);
bool ask_info(struct mpi mpi, void *info, const char *key, char *value, int length);

enum { SPAWN_PATH = 4096, REFUSED = 4 };

void refuse(const char *code, const char *why, const char *what);
void loader_in(int file, char *name);
void refuse_other_mpi(int file, const char *command);
void refuse_opened_mpi(void);

/* ---- spawning.c ---- */

/* Handles pass through a register whole, whether they are ints or pointers. */
typedef int spawn_one(const char *, char **, int, void *, int, void *, void *, int *);

typedef int spawn_many(int, char **, char ***, const int *, void *, int, void *, void *, int *);

int spawn_by(function call, const char *command, char **arguments, int most, void *info, int root,
             void *comm, void *between, int *codes);
int spawn_many_by(function call, int count, char **commands, char ***arguments, const int *most,
                  void *infos, int root, void *comm, void *between, int *codes);

#endif
