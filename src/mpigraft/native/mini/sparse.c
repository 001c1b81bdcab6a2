/* A rank's rows of a sparse matrix: own columns first, then those of other ranks, whose values come
 * by messages in one of two forms. */
#include "mini.h"

/* ---- which sites ---- */

struct ghost {
    int owner;
    int32_t site;
};

static int by_owner(const void *left, const void *right)
{
    const struct ghost *a = left, *b = right;
    return a->owner != b->owner ? (a->owner > b->owner) - (a->owner < b->owner)
                                : (a->site > b->site) - (a->site < b->site);
}

/* Find own sites and ghosts; `local` becomes the place of each site here, or -1. */
static struct ghost *find_sites(const struct problem *problem, int rank, struct matrix *matrix,
                                int32_t *local, int32_t *found)
{
    long long room = 0;
    for (long long s = 0; s < problem->sites; s++) {
        local[s] = problem->owner[s] == rank ? matrix->own++ : -1;
        if (local[s] >= 0)
            room += sites_of(problem, s, found);
    }
    struct ghost *ghosts = need((size_t)room, sizeof *ghosts);
    for (long long s = 0; s < problem->sites; s++) {
        if (problem->owner[s] != rank)
            continue;
        int64_t count = sites_of(problem, s, found);
        for (int64_t k = 0; k < count; k++)
            if (local[found[k]] == -1) {
                local[found[k]] = -2; /* known, and without a place yet */
                ghosts[matrix->ghosts++] =
                    (struct ghost){problem->owner[found[k]], found[k]};
            }
    }
    qsort(ghosts, (size_t)matrix->ghosts, sizeof *ghosts, by_owner);
    matrix->site = need((size_t)(matrix->own + matrix->ghosts), sizeof *matrix->site);
    for (long long s = 0; s < problem->sites; s++)
        if (problem->owner[s] == rank)
            matrix->site[local[s]] = (int32_t)s;
    for (int g = 0; g < matrix->ghosts; g++) {
        local[ghosts[g].site] = matrix->own + g;
        matrix->site[matrix->own + g] = ghosts[g].site;
    }
    return ghosts;
}

/* ---- who sends what ---- */

/* Blocks of sites that follow each other, as one datatype over the whole vector. */
static MPI_Datatype make_type(const struct matrix *matrix, const struct partner *partner)
{
    int *lengths = need((size_t)partner->count, sizeof *lengths);
    int *places = need((size_t)partner->count, sizeof *places), blocks = 0;
    const int32_t *site = matrix->gives + partner->first;
    for (int i = 0; i < partner->count; i++) {
        if (i && site[i] == site[i - 1] + 1) {
            lengths[blocks - 1] += matrix->unknowns;
            continue;
        }
        lengths[blocks] = matrix->unknowns;
        places[blocks++] = site[i] * matrix->unknowns;
    }
    MPI_Datatype type;
    OK(MPI_Type_indexed(blocks, lengths, places, MPI_DOUBLE, &type));
    OK(MPI_Type_commit(&type));
    free(lengths);
    free(places);
    return type;
}

int *running_sums(const int *counts, int size)
{
    int *places = need((size_t)size + 1, sizeof *places);
    for (int r = 0; r < size; r++)
        places[r + 1] = places[r] + counts[r];
    return places;
}

/* Each rank says to each other whose sites it takes. */
static void find_partners(const struct mini *mini, struct matrix *matrix,
                          const struct ghost *ghosts, const int32_t *local)
{
    int size;
    OK(MPI_Comm_size(matrix->comm, &size));
    int *takes = need((size_t)size, sizeof *takes), *gives = need((size_t)size, sizeof *gives);
    int32_t *wanted = need((size_t)matrix->ghosts, sizeof *wanted);
    for (int g = 0; g < matrix->ghosts; g++) {
        takes[ghosts[g].owner]++;
        wanted[g] = ghosts[g].site;
    }
    OK(MPI_Alltoall(takes, 1, MPI_INT, gives, 1, MPI_INT, matrix->comm));
    int *from = running_sums(takes, size), *to = running_sums(gives, size);
    matrix->gives = need((size_t)to[size], sizeof *matrix->gives);
    OK(MPI_Alltoallv(wanted, takes, from, MPI_INT32_T, matrix->gives, gives, to, MPI_INT32_T,
                     matrix->comm));
    for (int i = 0; i < to[size]; i++)
        matrix->gives[i] = local[matrix->gives[i]];
    matrix->partner = need((size_t)size, sizeof *matrix->partner);
    for (int r = 0; r < size; r++) {
        if (!takes[r] && !gives[r])
            continue;
        struct partner *partner = &matrix->partner[matrix->partners++];
        *partner = (struct partner){r, to[r], gives[r], from[r], takes[r], MPI_DATATYPE_NULL};
        if (mini->options->halo == FORM_DERIVED && gives[r])
            partner->type = make_type(matrix, partner);
    }
    matrix->outgoing = make_wire(mini, (size_t)to[size] * (size_t)matrix->unknowns);
    matrix->requests = need(2 * (size_t)matrix->partners, sizeof *matrix->requests);
    free(takes);
    free(gives);
    free(from);
    free(to);
    free(wanted);
}

/* ---- rows ---- */

static void add_columns(const struct mini *mini, const struct problem *problem,
                        struct matrix *matrix, int row, int32_t other, int32_t place)
{
    int unknowns = matrix->unknowns;
    long long site = matrix->site[row / unknowns];
    for (int j = 0; j < unknowns; j++) {
        int64_t at = matrix->start[row + 1]++;
        matrix->column[at] = place * unknowns + j;
        matrix->value[at] = entry_of(mini, problem, site, row % unknowns, other, j);
    }
}

static void fill_rows(const struct mini *mini, const struct problem *problem,
                      struct matrix *matrix, const int32_t *local, int32_t *found)
{
    for (int row = 0; row < matrix->rows; row++) {
        int64_t count = sites_of(problem, matrix->site[row / matrix->unknowns], found);
        matrix->start[row + 1] = matrix->start[row];
        for (int outside = 0; outside < 2; outside++) {
            for (int64_t k = 0; k < count; k++)
                if ((local[found[k]] >= matrix->own) == outside)
                    add_columns(mini, problem, matrix, row, found[k], local[found[k]]);
            if (!outside)
                matrix->outside[row] = matrix->start[row + 1];
        }
    }
}

/* The rows of the sites that `rank` owns in `problem`, for the ranks of `comm`. */
struct matrix make_matrix(const struct mini *mini, const struct problem *problem,
                          MPI_Comm comm, int rank)
{
    struct matrix matrix = {.comm = comm, .unknowns = problem->unknowns};
    int32_t *local = need((size_t)problem->sites, sizeof *local);
    int32_t *found = need((size_t)most_sites(problem), sizeof *found);
    struct ghost *ghosts = find_sites(problem, rank, &matrix, local, found);
    matrix.rows = matrix.own * matrix.unknowns;
    int64_t entries = 0;
    for (int s = 0; s < matrix.own; s++)
        entries += sites_of(problem, matrix.site[s], found);
    entries *= matrix.unknowns * matrix.unknowns;
    matrix.start = need((size_t)matrix.rows + 1, sizeof *matrix.start);
    matrix.outside = need((size_t)matrix.rows, sizeof *matrix.outside);
    matrix.column = need((size_t)entries, sizeof *matrix.column);
    matrix.value = need((size_t)entries, sizeof *matrix.value);
    fill_rows(mini, problem, &matrix, local, found);
    find_partners(mini, &matrix, ghosts, local);
    free(ghosts);
    free(local);
    free(found);
    return matrix;
}

void free_matrix(struct matrix *matrix)
{
    for (int p = 0; p < matrix->partners; p++)
        if (matrix->partner[p].type != MPI_DATATYPE_NULL)
            OK(MPI_Type_free(&matrix->partner[p].type));
    free_wire(&matrix->outgoing);
    free(matrix->partner);
    free(matrix->gives);
    free(matrix->requests);
    free(matrix->site);
    free(matrix->start);
    free(matrix->outside);
    free(matrix->column);
    free(matrix->value);
}

/* ---- messages ---- */

static void pack_partner(struct matrix *matrix, const struct partner *partner, const double *x)
{
    size_t unknowns = (size_t)matrix->unknowns;
    double *to = matrix->outgoing.host + (size_t)partner->first * unknowns;
    for (int i = 0; i < partner->count; i++)
        for (size_t j = 0; j < unknowns; j++)
            *to++ = x[(size_t)matrix->gives[partner->first + i] * unknowns + j];
    send_from(&matrix->outgoing, (size_t)partner->first * unknowns,
              (size_t)partner->count * unknowns);
}

/* Start to send what others take of `x`, and to receive its ghosts. Returns the requests. */
int start_exchange(struct matrix *matrix, const struct wire *x)
{
    int made = 0, unknowns = matrix->unknowns;
    for (int p = 0; p < matrix->partners; p++) {
        const struct partner *partner = &matrix->partner[p];
        if (partner->ghosts)
            OK(MPI_Irecv(x->mpi + (size_t)(matrix->own + partner->ghost) * (size_t)unknowns,
                         partner->ghosts * unknowns, MPI_DOUBLE, partner->rank, HALO_TAG,
                         matrix->comm, &matrix->requests[made++]));
    }
    bool whole = false; /* what datatypes take is sent from the vector itself */
    for (int p = 0; p < matrix->partners; p++) {
        const struct partner *partner = &matrix->partner[p];
        if (partner->type != MPI_DATATYPE_NULL) {
            if (!whole)
                send_from(x, 0, (size_t)matrix->rows);
            whole = true;
            OK(MPI_Isend(x->mpi, 1, partner->type, partner->rank, HALO_TAG, matrix->comm,
                         &matrix->requests[made++]));
        } else if (partner->count) {
            pack_partner(matrix, partner, x->host);
            OK(MPI_Isend(matrix->outgoing.mpi + (size_t)partner->first * (size_t)unknowns,
                         partner->count * unknowns, MPI_DOUBLE, partner->rank, HALO_TAG,
                         matrix->comm, &matrix->requests[made++]));
        }
    }
    return made;
}

void end_exchange(struct matrix *matrix, const struct wire *x, int requests)
{
    OK(MPI_Waitall(requests, matrix->requests, MPI_STATUSES_IGNORE));
    arrived_at(x, (size_t)matrix->rows, (size_t)matrix->ghosts * (size_t)matrix->unknowns);
}

/* ---- products ---- */

void multiply_own(const struct matrix *matrix, const double *x, double *y)
{
    for (int row = 0; row < matrix->rows; row++) {
        double sum = 0;
        for (int64_t k = matrix->start[row]; k < matrix->outside[row]; k++)
            sum += matrix->value[k] * x[matrix->column[k]];
        y[row] = sum;
    }
}

void add_ghosts(const struct matrix *matrix, const double *x, double *y)
{
    for (int row = 0; row < matrix->rows; row++)
        for (int64_t k = matrix->outside[row]; k < matrix->start[row + 1]; k++)
            y[row] += matrix->value[k] * x[matrix->column[k]];
}
