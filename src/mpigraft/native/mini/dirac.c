/* dirac: a sparse system solved by BiCGSTAB with ILU(0), after the study of CUG'25 of a solver for
 * lattice QCD. ILU(0) is of each rank's own block (block-Jacobi), so it sends nothing. */
#include "mini.h"

enum dirac_part { DIRAC_SPMV, DIRAC_HALO, DIRAC_ALLREDUCE, DIRAC_ILU, DIRAC_VECTORS };

static const char *const DIRAC_PARTS[] = {"spmv", "halo", "allreduce", "preconditioner",
                                          "vectors", NULL};
static const char *const DIRAC_OPTIONS[] = {"--local", "--matrix", "--seed", "--size", "--unknowns", NULL};

static const double TOLERANCE = 1e-11; /* of the residual, relative to the right side */

/* One system on the ranks of its matrix. */
struct solver {
    struct matrix matrix;
    double *factor;   /* of ILU(0): values at the places of the matrix's own columns */
    int64_t *diagonal; /* place of each row's */
    double *b, *x, *r, *shadow, *p, *v, *t;
    struct wire y, z; /* with ghosts */
    long iterations;
    bool converged;
};

struct dirac {
    struct problem problem;
    struct solver solver;
    double *alone; /* what rank 0 got by itself, by row; NULL: too large */
};

/* ---- ILU(0) ---- */

static void factorize(struct solver *solver)
{
    const struct matrix *m = &solver->matrix;
    int64_t *at = need((size_t)m->rows, sizeof *at); /* place of each column in the row, + 1 */
    memcpy(solver->factor, m->value, (size_t)m->start[m->rows] * sizeof *solver->factor);
    double *f = solver->factor;
    for (int i = 0; i < m->rows; i++) {
        for (int64_t k = m->start[i]; k < m->outside[i]; k++)
            at[m->column[k]] = k + 1;
        int64_t k = m->start[i];
        for (; m->column[k] < i; k++) {
            int j = m->column[k];
            f[k] /= f[solver->diagonal[j]];
            for (int64_t l = solver->diagonal[j] + 1; l < m->outside[j]; l++)
                if (at[m->column[l]])
                    f[at[m->column[l]] - 1] -= f[k] * f[l];
        }
        solver->diagonal[i] = k;
        if (f[k] == 0)
            DIE("dirac: ILU(0) has a zero on the diagonal of site %d", m->site[i / m->unknowns]);
        for (k = m->start[i]; k < m->outside[i]; k++)
            at[m->column[k]] = 0;
    }
    free(at);
}

static void precondition(const struct solver *solver, const double *from, double *to)
{
    const struct matrix *m = &solver->matrix;
    for (int i = 0; i < m->rows; i++) {
        double sum = from[i];
        for (int64_t k = m->start[i]; k < solver->diagonal[i]; k++)
            sum -= solver->factor[k] * to[m->column[k]];
        to[i] = sum;
    }
    for (int i = m->rows - 1; i >= 0; i--) {
        double sum = to[i];
        for (int64_t k = solver->diagonal[i] + 1; k < m->outside[i]; k++)
            sum -= solver->factor[k] * to[m->column[k]];
        to[i] = sum / solver->factor[solver->diagonal[i]];
    }
}

/* ---- one system ---- */

static struct solver make_solver(const struct mini *mini, const struct problem *problem,
                                 MPI_Comm comm, int rank)
{
    struct solver solver = {.matrix = make_matrix(mini, problem, comm, rank)};
    const struct matrix *m = &solver.matrix;
    size_t rows = (size_t)m->rows, all = (size_t)(m->own + m->ghosts) * (size_t)m->unknowns;
    double **vectors[] = {&solver.b, &solver.x, &solver.r, &solver.shadow,
                          &solver.p, &solver.v, &solver.t};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        *vectors[i] = need(rows, sizeof(double));
    solver.y = make_wire(mini, all);
    solver.z = make_wire(mini, all);
    solver.factor = need((size_t)m->start[rows], sizeof *solver.factor);
    solver.diagonal = need(rows, sizeof *solver.diagonal);
    factorize(&solver);
    /* The right side is made without a message: a wrong halo cannot cancel itself out. */
    for (int row = 0; row < m->rows; row++)
        for (int64_t k = m->start[row]; k < m->start[row + 1]; k++) {
            int column = m->column[k];
            long long global = (long long)m->site[column / m->unknowns] * m->unknowns +
                               column % m->unknowns;
            solver.b[row] += m->value[k] * exact_value(mini, global);
        }
    return solver;
}

static void free_solver(struct solver *solver)
{
    double *vectors[] = {solver->b, solver->x, solver->r, solver->shadow, solver->p, solver->v,
                         solver->t, solver->factor};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        free(vectors[i]);
    free(solver->diagonal);
    free_wire(&solver->y);
    free_wire(&solver->z);
    free_matrix(&solver->matrix);
}

/* to = A x; own columns are multiplied while messages are under way. */
static void multiply(struct mini *mini, struct solver *solver, const struct wire *x, double *to)
{
    struct matrix *matrix = &solver->matrix;
    int requests = start_exchange(matrix, x);
    lap(mini, DIRAC_HALO);
    multiply_own(matrix, x->host, to);
    lap(mini, DIRAC_SPMV);
    end_exchange(matrix, x, requests);
    lap(mini, DIRAC_HALO);
    add_ghosts(matrix, x->host, to);
    lap(mini, DIRAC_SPMV);
}

/* The products of one vector, or of two with a third, over all ranks, in one message. */
static void dot(struct mini *mini, const struct solver *solver, const double *const pairs[][2],
                int count, double *sums)
{
    for (int i = 0; i < count; i++) {
        sums[i] = 0;
        for (int row = 0; row < solver->matrix.rows; row++)
            sums[i] += pairs[i][0][row] * pairs[i][1][row];
    }
    lap(mini, DIRAC_VECTORS);
    OK(MPI_Allreduce(MPI_IN_PLACE, sums, count, MPI_DOUBLE, MPI_SUM, solver->matrix.comm));
    lap(mini, DIRAC_ALLREDUCE);
}

/* BiCGSTAB (van der Vorst 1992), preconditioned from the right, from x = 0. */
static void solve(struct mini *mini, struct solver *s, long most)
{
    int rows = s->matrix.rows;
    double rho = 1, alpha = 1, omega = 1, sums[2], target;
    memset(s->x, 0, (size_t)rows * sizeof *s->x);
    memset(s->p, 0, (size_t)rows * sizeof *s->p);
    memset(s->v, 0, (size_t)rows * sizeof *s->v);
    memcpy(s->r, s->b, (size_t)rows * sizeof *s->r);
    memcpy(s->shadow, s->b, (size_t)rows * sizeof *s->r);
    dot(mini, s, (const double *const[][2]){{s->b, s->b}}, 1, &target);
    double next = target, norm = target;
    target *= TOLERANCE * TOLERANCE;
    s->converged = norm <= target; /* as of a rank's share that is empty, or of b = 0 */
    for (s->iterations = 0; !s->converged && s->iterations < most; s->iterations++) {
        double beta = next / rho * (alpha / omega);
        rho = next;
        for (int i = 0; i < rows; i++)
            s->p[i] = s->r[i] + beta * (s->p[i] - omega * s->v[i]);
        lap(mini, DIRAC_VECTORS);
        precondition(s, s->p, s->y.host);
        lap(mini, DIRAC_ILU);
        multiply(mini, s, &s->y, s->v);
        dot(mini, s, (const double *const[][2]){{s->shadow, s->v}}, 1, sums);
        alpha = rho / sums[0];
        for (int i = 0; i < rows; i++)
            s->r[i] -= alpha * s->v[i];
        lap(mini, DIRAC_VECTORS);
        precondition(s, s->r, s->z.host);
        lap(mini, DIRAC_ILU);
        multiply(mini, s, &s->z, s->t);
        dot(mini, s, (const double *const[][2]){{s->t, s->r}, {s->t, s->t}}, 2, sums);
        omega = sums[1] > 0 ? sums[0] / sums[1] : 0;
        for (int i = 0; i < rows; i++) {
            s->x[i] += alpha * s->y.host[i] + omega * s->z.host[i];
            s->r[i] -= omega * s->t[i];
        }
        dot(mini, s, (const double *const[][2]){{s->r, s->r}, {s->shadow, s->r}}, 2, sums);
        norm = sums[0];
        next = sums[1];
        s->converged = norm <= target;
        if (!(norm < 1e300) || omega == 0) /* it broke down, or a value is not a number */
            break;
    }
}

/* ---- the mini-app ---- */

static void *dirac_open(struct mini *mini)
{
    struct dirac *dirac = need(1, sizeof *dirac);
    make_problem(mini, &dirac->problem);
    const struct problem *problem = &dirac->problem;
    dirac->solver = make_solver(mini, problem, mini->comm, mini->rank);
    return dirac;
}

static long dirac_run(struct mini *mini, void *state)
{
    struct solver *solver = &((struct dirac *)state)->solver;
    solve(mini, solver, mini->options->steps ? mini->options->steps : 1000);
    return solver->iterations ? solver->iterations : 1;
}

static void dirac_close(void *state)
{
    struct dirac *dirac = state;
    free_solver(&dirac->solver);
    free_problem(&dirac->problem);
    free(dirac->alone);
    free(dirac);
}

/* Rank 0 solves the whole by itself. */
static double *solve_alone(struct mini *mini, struct dirac *dirac)
{
    struct problem whole = dirac->problem;
    whole.owner = need((size_t)whole.sites, sizeof *whole.owner); /* rank 0 of one */
    struct solver solver = make_solver(mini, &whole, MPI_COMM_SELF, 0);
    solve(mini, &solver, 1000);
    double *x = solver.x;
    solver.x = NULL;
    if (!solver.converged)
        fprintf(stderr, "%s: dirac: one rank alone does not solve this system either\n", program_name);
    free_solver(&solver);
    free(whole.owner);
    return x;
}

/* All values on rank 0, by row; NULL on others. */
static double *gather_solution(const struct mini *mini, const struct dirac *dirac)
{
    const struct matrix *m = &dirac->solver.matrix;
    long long rows = dirac->problem.sites * m->unknowns;
    bool first = mini->rank == 0;
    int *counts = need((size_t)mini->size, sizeof *counts);
    OK(MPI_Gather(&m->rows, 1, MPI_INT, counts, 1, MPI_INT, 0, mini->comm));
    int *places = running_sums(counts, mini->size);
    double *all = first ? need((size_t)rows, sizeof *all) : NULL;
    OK(MPI_Gatherv(dirac->solver.x, m->rows, MPI_DOUBLE, all, counts, places, MPI_DOUBLE, 0,
                   mini->comm));
    double *sorted = first ? need((size_t)rows, sizeof *sorted) : NULL;
    for (long long s = 0; s < dirac->problem.sites && first; s++) {
        int *place = &places[dirac->problem.owner[s]];
        for (int i = 0; i < m->unknowns; i++)
            sorted[s * m->unknowns + i] = all[(*place)++];
    }
    free(all);
    free(counts);
    free(places);
    return sorted;
}

/* Whether values by row solve the system of a file: where it is nearly singular, solutions differ
 * that both do. Computed without a message. */
static bool solves(const struct mini *mini, const struct problem *problem, const double *x)
{
    double norm = 0, rest = 0;
    for (long long row = 0; row < problem->sites; row++) {
        double b = 0, missed = 0;
        for (int64_t k = problem->start[row]; k < problem->start[row + 1]; k++) {
            double due = exact_value(mini, problem->column[k]);
            b += problem->value[k] * due;
            missed += problem->value[k] * (due - x[problem->column[k]]);
        }
        norm += b * b;
        rest += missed * missed;
    }
    return rest <= 1e-16 * norm;
}

/* What the ranks got is what one rank alone gets, and, of a lattice, the solution that the right
 * side was made from: its matrix is far from singular. */
static bool dirac_check(struct mini *mini, void *state)
{
    struct dirac *dirac = state;
    const struct matrix *m = &dirac->solver.matrix;
    bool right = dirac->solver.converged;
    if (!right && mini->rank == 0)
        wrong(mini, "it does not converge; iterations", (double)dirac->solver.iterations, 0);
    for (int row = 0; row < m->rows && right && !dirac->problem.start; row++) {
        double expected = exact_value(mini, (long long)m->site[row / m->unknowns] * m->unknowns +
                                                row % m->unknowns);
        if (!(distance(dirac->solver.x[row], expected) < 1e-6))
            right = wrong(mini, "the solution", dirac->solver.x[row], expected);
    }
    long long rows = dirac->problem.sites * m->unknowns;
    if (!all_agree(mini, right) || (double)rows > mini->options->serial)
        return right;
    double *all = gather_solution(mini, dirac);
    if (mini->rank == 0 && !dirac->alone)
        dirac->alone = solve_alone(mini, dirac);
    bool solved = mini->rank == 0 && dirac->problem.start && solves(mini, &dirac->problem, all);
    for (long long row = 0; mini->rank == 0 && row < rows && right && !solved; row++)
        if (!(distance(all[row], dirac->alone[row]) < 1e-6 * (1 + distance(all[row], 0))))
            right = wrong(mini, "the solution of one rank alone", all[row], dirac->alone[row]);
    free(all);
    wait_idle(mini->comm);
    return right;
}

const struct app DIRAC = {"dirac", DIRAC_PARTS, DIRAC_OPTIONS, dirac_open, dirac_run,
    dirac_check, dirac_close, true};
