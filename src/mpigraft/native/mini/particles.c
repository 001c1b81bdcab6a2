/* particles: molecular dynamics as GROMACS has it between ranks: a box divided in up to three
 * dimensions, positions to neighbours in pulses and forces back, particles that change their rank,
 * sums of energies, and as its PME has them ranks apart for the long-range part. */
#include "mini.h"

static const char *const PARTICLES_PARTS[] = {"force", "halo", "migrate", "reduce", "pme", NULL};
static const char *const PARTICLES_OPTIONS[] = {"--density", "--depth", "--every", "--local",
                                                "--pme", "--seed", "--size", NULL};

enum { MOST_COMPARED = 50 };

/* ---- one step ---- */

/* By the leapfrog method. */
static void advance_particles(struct particles *p, double potential, double *own)
{
    const double step = 0.01;
    struct domain *d = &p->domain;
    for (int i = 0; i < SUMS; i++)
        own[i] = 0;
    own[POTENTIAL] = potential;
    own[NUMBER] = d->home;
    for (int i = 0; i < 3 * d->home; i++) {
        d->v[i] += step * d->f[i];
        d->x[i] += step * d->v[i];
        own[KINETIC] += 0.5 * d->v[i] * d->v[i];
        own[MOMENTUM + i % 3] += d->v[i];
    }
}

static void find_neighbours_again(struct mini *mini, struct particles *p, long step)
{
    if (step)
        migrate(mini, &p->domain);
    choose_halo(mini, &p->domain);
    lap(mini, PARTICLES_MIGRATE);
    list_pairs(&p->domain, &p->list);
    lap(mini, PARTICLES_FORCE);
}

static void take_step(struct mini *mini, struct particles *p, long step)
{
    struct domain *d = &p->domain;
    bool fresh = step % p->every == 0;
    double own[SUMS];
    if (fresh)
        find_neighbours_again(mini, p, step);
    if (p->pme && !p->serves) {
        give_positions(mini, p, fresh);
        lap(mini, PARTICLES_PME);
    }
    if (!fresh)
        exchange_positions(d);
    lap(mini, PARTICLES_HALO);
    memset(d->f, 0, 3 * (size_t)d->all * sizeof *d->f);
    double potential = add_pair_forces(d, &p->list, (double)mini->options->depth);
    if (p->serves)
        potential += add_own_waves(p);
    lap(mini, PARTICLES_FORCE);
    return_forces(d);
    lap(mini, PARTICLES_HALO);
    if (p->pme && !p->serves) {
        potential += take_forces(p);
        lap(mini, PARTICLES_PME);
    }
    advance_particles(p, potential, own);
    lap(mini, PARTICLES_FORCE);
    OK(MPI_Allreduce(own, p->sums, SUMS, MPI_DOUBLE, MPI_SUM, p->own));
    lap(mini, PARTICLES_REDUCE);
}

/* ---- the mini-app ---- */

static void *particles_open(struct mini *mini)
{
    static const struct extents usual = {3, {12, 12, 12}};
    struct particles *p = need(1, sizeof *p);
    int pme = (int)mini->options->pme;
    if (pme >= mini->size)
        DIE("particles: %d ranks of PME, of %d, leave none that has particles", pme, mini->size);
    struct extents whole = whole_extents(mini->options, &usual, mini->size - pme);
    double density = (double)mini->options->density, reach = (double)mini->options->depth + 1;
    double all = (double)volume(&whole) * density, own = all / (mini->size - pme);
    if (RECORD * all > INT32_MAX)
        DIE("particles: %g particles are more than %d", all, INT32_MAX / RECORD);
    double pairs = 2.2 * reach * reach * reach * density;
    bool compared = 6 * all <= mini->options->serial;
    require_memory(mini, (compared ? all + 4 * own : 4 * own) * (200 + 4 * pairs));
    *p = make_particles(mini, &whole, pme);
    return p;
}

static long particles_run(struct mini *mini, void *state)
{
    struct particles *p = state;
    if (p->works)
        start_domain(mini, &p->domain);
    for (long step = 0; step < p->steps; step++) {
        if (p->works)
            take_step(mini, p, step);
        else
            serve(mini, p, step % p->every == 0);
    }
    return p->steps;
}

static void particles_close(void *state)
{
    free_particles(state);
    free(state);
}

/* ---- checks ---- */

/* Of a problem of any size: none is lost or there twice, and no force lacks its opposite. */
static bool right_sums(struct mini *mini, const struct particles *p)
{
    const struct domain *d = &p->domain;
    long long all = number_of_all(d);
    uint64_t sum = 0, due_sum = 0;
    double momentum[3] = {0, 0, 0}, x[3], v[3];
    for (int i = 0; i < d->home; i++)
        sum += scrambled((uint64_t)d->id[i]);
    OK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, p->own));
    for (long long id = 0; id < all; id++) {
        due_sum += scrambled((uint64_t)id);
        first_state(mini, d, id, x, v);
        for (int dim = 0; dim < 3; dim++)
            momentum[dim] += v[dim];
    }
    if (p->sums[NUMBER] != (double)all)
        return wrong(mini, "the number of particles", p->sums[NUMBER], (double)all);
    if (sum != due_sum)
        return wrong(mini, "the numbers of particles", (double)sum, (double)due_sum);
    for (int dim = 0; dim < 3; dim++)
        if (!(distance(p->sums[MOMENTUM + dim], momentum[dim]) < 1e-11 * (double)(all + 1000)))
            return wrong(mini, "the momentum of all", p->sums[MOMENTUM + dim], momentum[dim]);
    return true;
}

/* Of a problem of any size: each copy that arrives is where its particle began. */
static bool right_ghosts(struct mini *mini, struct particles *p)
{
    struct domain *d = &p->domain;
    start_domain(mini, d);
    choose_halo(mini, d);
    exchange_positions(d);
    for (int i = d->home; i < d->all; i++) {
        double x[3], v[3];
        first_state(mini, d, d->id[i], x, v);
        for (int dim = 0; dim < 3; dim++) {
            double got = d->x[3 * i + dim], edge = d->edge[dim];
            double due = got >= edge ? x[dim] + edge : x[dim];
            if (!(distance(got, due) < 1e-12 * (1 + edge)))
                return wrong(mini, "a position in a halo", got, due);
        }
    }
    return true;
}

static bool equal_particles(struct mini *mini, const struct particles *p,
                            const struct particles *whole)
{
    const struct domain *d = &p->domain, *w = &whole->domain;
    int *place = need((size_t)w->home, sizeof *place);
    bool right = true;
    for (int i = 0; i < w->home; i++)
        place[w->id[i]] = i;
    for (int i = 0; i < 3 * d->home && right; i++) {
        int other = 3 * place[d->id[i / 3]] + i % 3;
        double edge = d->edge[i % 3], apart = distance(d->x[i], w->x[other]);
        if (!(apart < 1e-9 || distance(apart, edge) < 1e-9))
            right = wrong(mini, "a position", d->x[i], w->x[other]);
        if (!(distance(d->v[i], w->v[other]) < 1e-9))
            right = wrong(mini, "a velocity", d->v[i], w->v[other]);
    }
    for (int i = POTENTIAL; i <= KINETIC && right; i++)
        if (!(distance(p->sums[i], whole->sums[i]) < 1e-9 * (1 + whole->sums[i])))
            right = wrong(mini, i == KINETIC ? "the kinetic energy" : "the potential energy",
                          p->sums[i], whole->sums[i]);
    free(place);
    return right;
}

/* Each rank that has particles computes all of them by itself, over as many steps as rounding does
 * not part the two. */
static bool right_particles(struct mini *mini, struct particles *p)
{
    long steps = p->steps;
    p->steps = steps > MOST_COMPARED ? MOST_COMPARED : steps;
    if (steps > MOST_COMPARED)
        particles_run(mini, p);
    bool right = true;
    if (p->works) {
        struct mini alone = *mini;
        alone.comm = MPI_COMM_SELF;
        alone.rank = 0;
        alone.size = 1;
        struct extents extents = {3, {p->domain.cells[0], p->domain.cells[1], p->domain.cells[2]}};
        struct particles whole = make_particles(&alone, &extents, p->pme);
        whole.steps = p->steps;
        particles_run(&alone, &whole);
        right = equal_particles(mini, p, &whole);
        free_particles(&whole);
    }
    p->steps = steps;
    return right;
}

static bool particles_check(struct mini *mini, void *state)
{
    struct particles *p = state;
    const struct domain *d = &p->domain;
    double all = d->edge[0] * d->edge[1] * d->edge[2] * (double)mini->options->density;
    bool right = !p->works || right_sums(mini, p);
    if (6 * all <= mini->options->serial)
        right = right_particles(mini, p) && right;
    return (!p->works || right_ghosts(mini, p)) && right;
}

const struct app PARTICLES = {"particles", PARTICLES_PARTS, PARTICLES_OPTIONS,
    particles_open, particles_run, particles_check, particles_close, false};
