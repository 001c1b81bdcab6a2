/* What MPI_T says in integers as words, and the values of its variables. */
#ifndef MPIGRAFT_QUERY_MPI_T_NAMES_H
#define MPIGRAFT_QUERY_MPI_T_NAMES_H

#include <mpi.h>
#include <stdbool.h>

enum { NAME_ROOM = 4096, TEXT_ROOM = 1 << 16 };

struct word {
    int value;
    const char *text;
};

extern const struct word BINDINGS[], SCOPES[], VERBOSITIES[], CLASSES[];

const char *word(const struct word *words, int value);

/* How one element of a value is kept. The standard lets variables have these and no others. */
enum form { OTHER, INTEGER, UNSIGNED, REAL, CHARACTERS };

struct type {
    const char *name;
    enum form form;
    size_t bytes;
};

struct type type_of(MPI_Datatype datatype);
void field(const char *name, const char *text);
unsigned char *room(struct type type, int count);
void *object(int binding, bool initialised, bool *there);
void print_control(int index, struct type type, void *bound);
void print_performance(int index, struct type type, void *bound, bool continuous);

#endif
