/* What mini-apps share: ranks, the clock of their parts, input from a seed, memory of messages. */
#ifndef MPIGRAFT_MINI_H
#define MPIGRAFT_MINI_H

#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/arguments.h"
#include "../common/check.h"
#include "../common/clock.h"
#include "../common/conditions.h"
#include "../common/memory.h"
#include "../common/statistics.h"
#include "../common/world.h"

enum form { FORM_PACKED, FORM_DERIVED };

struct mini_options {
    const char *app;
    const char *size, *local;   /* extents of the whole problem, or of the part of one rank */
    const char *partition;      /* file that says which rank owns what */
    const char *matrix;         /* its name in results */
    long long unknowns, fields, density, depth, every, io, percent, pme; /* of one mini-app or another */
    long long seed, steps, samples;
    double budget, serial;      /* milliseconds of samples; unknowns that rank 0 solves alone */
    int halo, buffers;
    bool no_validate, list, help;
};

enum { MOST_DIMENSIONS = 4 };

struct extents {
    int count;
    long long of[MOST_DIMENSIONS];
};

enum { MOST_PARTS = 8, HALO_TAG = 17 };

struct mini;

/* A mini-app is a row of a table. The loop, samples and output are shared. */
struct app {
    const char *name;
    const char *const *parts;             /* of an iteration's time; NULL ends them */
    const char *const *options;           /* that belong to it; NULL ends them */
    void *(*open)(struct mini *);         /* make the problem; DIE where it cannot be */
    long (*run)(struct mini *, void *);   /* one sample: returns its iterations */
    bool (*check)(struct mini *, void *); /* collective: whether its result is right */
    void (*close)(void *);
    bool forms;                           /* has --halo */
};

struct mini {
    const struct mini_options *options;
    const struct app *app;
    MPI_Comm comm;
    int rank, size;
    double part[MOST_PARTS]; /* seconds of this sample, on this rank */
    double mark;             /* when the last part ended */
    char label[320];         /* dirac,halo=packed: what its results are named by */
    const char *method;      /* how the problem was divided, for the name; NULL: nothing to say */
};

/* Values that messages are sent from or arrive in. On a GPU `mpi` is what MPI is given, and `host`
 * what the program computes with. */
struct wire {
    const struct memory *memory;
    double *host, *mpi;
    size_t count;
    bool spoiled; /* what arrives is wrong, and a check must see it */
};

struct complex {
    double real, imaginary;
};

struct fourier {
    int length;
    struct complex *root; /* exp(-2 pi i k / length) */
    struct complex *work; /* two lengths */
};

struct problem {
    struct extents lattice; /* of sites; none of a matrix from a file */
    long long sites;
    int unknowns;           /* of a site: rows of the matrix */
    int *owner;             /* of each site */
    const int64_t *start;   /* of rows, of a matrix from a file: else NULL */
    const int32_t *column;
    const double *value;
    const void *file;       /* what is mapped, and how long it is */
    size_t bytes;
};

/* What goes to one rank and comes from it, in sites. */
struct partner {
    int rank, first, count;    /* of what is sent, among `gives` */
    int ghost, ghosts;         /* of what is received, after the own sites */
    MPI_Datatype type;         /* of what is sent, in the vector; of `indexed` */
};

struct matrix {
    MPI_Comm comm;
    int own, ghosts, unknowns; /* sites, and rows of each */
    int rows;                  /* own x unknowns */
    int32_t *site;             /* number of each own site, then of each ghost */
    int64_t *start;            /* of each row */
    int64_t *outside;          /* where its columns of other ranks begin */
    int32_t *column;
    double *value;
    int partners;
    struct partner *partner;
    int32_t *gives;            /* own sites that are sent, by partner */
    struct wire outgoing;      /* packed */
    MPI_Request *requests;
};

enum { RECORD = 8, HALO_RECORD = 4 }; /* values: x, v, number and charge; x and number */

struct pulse {
    int dimension, *list, gives;  /* particles that go down */
    int ghost, takes;             /* those that come from above: the first, and how many */
    double shift;                 /* of what passes the border of the box */
};

/* Particles of this rank first, then copies of others': ghosts. */
struct domain {
    MPI_Comm comm;
    long long cells[3], begin[3], end[3]; /* of edge 1 */
    int parts[3], at[3], down[3], up[3], density;
    double low[3], high[3], edge[3];
    double reach, drift;          /* of pairs, and of a particle from migration to migration */
    int home, all, room;
    double *x, *v, *f, *origin, *charge; /* of the box: 3, 3, 3, 3 and 1 values */
    int *id;
    unsigned char *zone;          /* a bit for each dimension in which it is a ghost */
    struct pulse *pulse;
    int pulses;
    struct wire out, in;
};

/* Of particle i those from first[i] on to first[i + 1]. */
struct pair_list {
    int *first, *other;
    size_t room;
};

enum { MODES = 2, TURNS = 2 * MODES + 1, WAVES = (TURNS * TURNS * TURNS - 1) / 2 };

struct waves {
    int mode[WAVES][3];
    double weight[WAVES];
};

enum particle_part { PARTICLES_FORCE, PARTICLES_HALO, PARTICLES_MIGRATE, PARTICLES_REDUCE,
                     PARTICLES_PME };

enum { POTENTIAL, KINETIC, NUMBER, MOMENTUM, SUMS = MOMENTUM + 3 };

/* Between one rank that has particles and the one of PME that serves it; or that rank and all. */
struct service {
    int first, count;          /* ranks that it serves; of these one serves: `first` */
    int *particles, *place;    /* of each, and sums of them */
    struct wire x, charge, f;  /* each rank's forces end with a share of the energy */
    MPI_Request *request;
};

struct particles {
    struct domain domain;
    struct pair_list list;
    int workers, pme;
    MPI_Comm own;             /* ranks that have particles, or those of PME */
    bool works, serves;       /* both of one rank alone */
    struct service service;
    struct waves waves;
    struct wire share, whole; /* sums of charges, of a PME rank and of all */
    double sums[SUMS];        /* over all ranks, of the last step */
    long steps, every;
};

extern const struct app DIRAC, HALO, OCEAN, PARTICLES, TRANSPOSE;
extern const char program_name[];

/* mini.c */
void require_memory(const struct mini *mini, double bytes);
struct wire make_wire(const struct mini *mini, size_t count);
void free_wire(struct wire *wire);
bool all_agree(const struct mini *mini, bool right);
bool wrong(const struct mini *mini, const char *what, double got, double expected);

/* options.c */
bool was_given(const char *name);
struct mini_options parse_mini_options(int argc, char **argv);
void print_mini_help(void);
void make_label(struct mini *mini, int argc, char **argv);
long long volume(const struct extents *extents);
void divide_ranks(int ranks, const struct extents *extents, int *parts);
struct extents whole_extents(const struct mini_options *options, const struct extents *usual,
                             int ranks);

/* fourier.c */
struct complex turned(double part);
struct fourier make_fourier(int length);
void free_fourier(struct fourier *fourier);
void fourier_transform(const struct fourier *plan, struct complex *value, bool back);

/* problem.c */
void make_problem(struct mini *mini, struct problem *problem);
void free_problem(struct problem *problem);
int64_t sites_of(const struct problem *problem, long long site, int32_t *found);
int64_t most_sites(const struct problem *problem);
double entry_of(const struct mini *mini, const struct problem *problem, long long site, int i,
                int32_t other, int j);
double exact_value(const struct mini *mini, long long row);

/* sparse.c */
int *running_sums(const int *counts, int size);
struct matrix make_matrix(const struct mini *mini, const struct problem *problem, MPI_Comm comm,
                          int rank);
void free_matrix(struct matrix *matrix);
int start_exchange(struct matrix *matrix, const struct wire *x);
void end_exchange(struct matrix *matrix, const struct wire *x, int requests);
void multiply_own(const struct matrix *matrix, const double *x, double *y);
void add_ghosts(const struct matrix *matrix, const double *x, double *y);

/* domain.c */
long long number_of_all(const struct domain *d);
void *resized(void *memory, size_t count, size_t bytes);
void reserve_wire(const struct mini *mini, struct wire *wire, int values);
void free_domain(struct domain *d);
struct domain make_domain(const struct mini *mini, const struct extents *whole, MPI_Comm comm,
                          int rank, int ranks);
void first_state(const struct mini *mini, const struct domain *d, long long id, double *x,
                 double *v);
void start_domain(const struct mini *mini, struct domain *d);
void migrate(const struct mini *mini, struct domain *d);
void choose_halo(const struct mini *mini, struct domain *d);
void exchange_positions(struct domain *d);
void return_forces(struct domain *d);

/* forces.c */
void list_pairs(const struct domain *d, struct pair_list *list);
double add_pair_forces(const struct domain *d, const struct pair_list *list, double cutoff);
struct waves make_waves(const double *edge);
void add_charges(const struct waves *waves, const double *edge, const double *x,
                 const double *charge, int count, double *sums);
void add_wave_forces(const struct waves *waves, const double *edge, const double *x,
                     const double *charge, int count, const double *sums, double *f);
double wave_energy(const struct waves *waves, const double *sums);

/* service.c */
struct particles make_particles(const struct mini *mini, const struct extents *whole, int pme);
void free_particles(struct particles *p);
void give_positions(const struct mini *mini, struct particles *p, bool fresh);
double take_forces(struct particles *p);
void serve(struct mini *mini, struct particles *p, bool fresh);
double add_own_waves(struct particles *p);

/* The first of `extent` places that part `part` of `parts` has; that of the next ends it. */
static inline long long part_begins(long long extent, int parts, int part)
{
    return extent * part / parts;
}

/* The time since the last part ended was spent in this one. */
static inline void lap(struct mini *mini, int part)
{
    double time = now();
    mini->part[part] += time - mini->mark;
    mini->mark = time;
}

/* A number of 64 bits that looks random (splitmix64 by S. Vigna, public domain). */
static inline uint64_t scrambled(uint64_t x)
{
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

/* From -1 to 1; the same for the same key, whichever rank draws it. */
static inline double drawn(uint64_t key)
{
    return (double)(scrambled(key) >> 11) * 0x1p-52 - 1;
}

static inline uint64_t key_of(const struct mini *mini, uint64_t what, uint64_t which)
{
    return scrambled((uint64_t)mini->options->seed * 0x10001 + what) ^ (which << 8);
}

/* By Newton's method: our programs are linked without libm. */
static inline double square_root(double x)
{
    if (!(x > 0))
        return 0;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits >> 1) + UINT64_C(0x1FF7A3BEA91D9B1B); /* half of the exponent */
    double root;
    memcpy(&root, &bits, sizeof root);
    for (int i = 0; i < 6; i++)
        root = 0.5 * (root + x / root);
    return root;
}

static inline double distance(double a, double b)
{
    return a > b ? a - b : b - a;
}

/* Values from `first` on are about to be sent. */
static inline void send_from(const struct wire *wire, size_t first, size_t count)
{
    if (wire->mpi != wire->host && count)
        wire->memory->upload(wire->mpi + first, wire->host + first, count * sizeof(double));
}

/* Values from `first` on have arrived. */
static inline void arrived_at(const struct wire *wire, size_t first, size_t count)
{
    if (wire->mpi != wire->host && count)
        wire->memory->download(wire->host + first, wire->mpi + first, count * sizeof(double));
    if (wire->spoiled && count)
        wire->host[first + count / 2] += 0.001;
}

#endif
