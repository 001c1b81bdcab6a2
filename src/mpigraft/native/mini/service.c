/* The ranks of particles: those that have some, and those apart that compute the long-range part for
 * them, as GROMACS's PME does: positions and charges come, forces go back. */
#include "mini.h"

/* ---- making ---- */

static void plan_service(const struct mini *mini, struct particles *p)
{
    struct service *s = &p->service;
    int count = 0;
    for (int w = 0; w < p->workers && p->pme && p->own != MPI_COMM_SELF; w++) {
        int server = p->workers + (int)((long long)w * p->pme / p->workers);
        if (mini->rank == w)
            s->first = server;
        if (mini->rank == server && !count++)
            s->first = w;
    }
    s->count = p->works ? 1 : count;
    s->particles = need((size_t)s->count, sizeof *s->particles);
    s->place = need((size_t)s->count + 1, sizeof *s->place);
    s->request = need(2 * (size_t)s->count + 1, sizeof *s->request);
    s->x = make_wire(mini, 0);
    s->charge = make_wire(mini, 0);
    s->f = make_wire(mini, 0);
    p->share = make_wire(mini, 2 * WAVES);
    p->whole = make_wire(mini, 2 * WAVES);
}

/* `mini` has one rank for a system that is computed alone; it has the long-range part as well. */
struct particles make_particles(const struct mini *mini, const struct extents *whole,
                                int pme)
{
    bool alone = mini->comm == MPI_COMM_SELF;
    int workers = alone ? 1 : mini->size - pme;
    struct particles p = {.workers = workers, .pme = pme, .own = MPI_COMM_SELF,
                          .every = mini->options->every,
                          .steps = mini->options->steps ? mini->options->steps : 20};
    p.works = mini->rank < workers;
    p.serves = pme && (alone || !p.works);
    if (!alone)
        OK(MPI_Comm_split(mini->comm, p.works, mini->rank, &p.own));
    if (p.works)
        p.domain = make_domain(mini, whole, p.own, mini->rank, workers);
    for (int dim = 0; dim < 3; dim++)
        p.domain.edge[dim] = (double)whole->of[dim];
    p.waves = make_waves(p.domain.edge);
    plan_service(mini, &p);
    return p;
}

void free_particles(struct particles *p)
{
    struct wire *wires[] = {&p->service.x, &p->service.charge, &p->service.f, &p->share, &p->whole};
    for (size_t i = 0; i < sizeof wires / sizeof *wires; i++)
        free_wire(wires[i]);
    free(p->service.particles);
    free(p->service.place);
    free(p->service.request);
    free(p->list.first);
    free(p->list.other);
    if (p->works)
        free_domain(&p->domain);
    if (p->own != MPI_COMM_SELF)
        OK(MPI_Comm_free(&p->own));
}

/* ---- messages ---- */

/* Positions, and after a migration how many and their charges. */
void give_positions(const struct mini *mini, struct particles *p, bool fresh)
{
    struct service *s = &p->service;
    const struct domain *d = &p->domain;
    int n = d->home, tag = HALO_TAG + 2;
    if (fresh) {
        OK(MPI_Send(&n, 1, MPI_INT, s->first, tag, mini->comm));
        reserve_wire(mini, &s->x, 3 * n);
        reserve_wire(mini, &s->charge, n);
        reserve_wire(mini, &s->f, 3 * n + 1);
        memcpy(s->charge.host, d->charge, (size_t)n * sizeof *d->charge);
        send_from(&s->charge, 0, (size_t)n);
        OK(MPI_Send(s->charge.mpi, n, MPI_DOUBLE, s->first, tag + 1, mini->comm));
    }
    memcpy(s->x.host, d->x, 3 * (size_t)n * sizeof *d->x);
    send_from(&s->x, 0, 3 * (size_t)n);
    OK(MPI_Irecv(s->f.mpi, 3 * n + 1, MPI_DOUBLE, s->first, tag + 3, mini->comm, &s->request[0]));
    OK(MPI_Isend(s->x.mpi, 3 * n, MPI_DOUBLE, s->first, tag + 2, mini->comm, &s->request[1]));
}

/* Returns the share of the energy. */
double take_forces(struct particles *p)
{
    struct service *s = &p->service;
    size_t values = 3 * (size_t)p->domain.home;
    OK(MPI_Waitall(2, s->request, MPI_STATUSES_IGNORE));
    arrived_at(&s->f, 0, values + 1);
    for (size_t i = 0; i < values; i++)
        p->domain.f[i] += s->f.host[i];
    return s->f.host[values];
}

static void take_charges(const struct mini *mini, struct service *s)
{
    int tag = HALO_TAG + 2;
    for (int w = 0; w < s->count; w++) {
        OK(MPI_Recv(&s->particles[w], 1, MPI_INT, s->first + w, tag, mini->comm,
                    MPI_STATUS_IGNORE));
        s->place[w + 1] = s->place[w] + s->particles[w];
    }
    int all = s->place[s->count];
    reserve_wire(mini, &s->x, 3 * all);
    reserve_wire(mini, &s->charge, all);
    reserve_wire(mini, &s->f, 3 * all + s->count);
    for (int w = 0; w < s->count; w++)
        OK(MPI_Irecv(s->charge.mpi + s->place[w], s->particles[w], MPI_DOUBLE, s->first + w,
                     tag + 1, mini->comm, &s->request[w]));
    OK(MPI_Waitall(s->count, s->request, MPI_STATUSES_IGNORE));
    arrived_at(&s->charge, 0, (size_t)all);
}

/* One step of a PME rank: what it does counts as one part, waiting for positions too. */
void serve(struct mini *mini, struct particles *p, bool fresh)
{
    struct service *s = &p->service;
    int tag = HALO_TAG + 2, waves = 2 * WAVES;
    if (fresh)
        take_charges(mini, s);
    for (int w = 0; w < s->count; w++)
        OK(MPI_Irecv(s->x.mpi + 3 * s->place[w], 3 * s->particles[w], MPI_DOUBLE, s->first + w,
                     tag + 2, mini->comm, &s->request[w]));
    OK(MPI_Waitall(s->count, s->request, MPI_STATUSES_IGNORE));
    arrived_at(&s->x, 0, 3 * (size_t)s->place[s->count]);
    memset(p->share.host, 0, (size_t)waves * sizeof(double));
    add_charges(&p->waves, p->domain.edge, s->x.host, s->charge.host, s->place[s->count],
                p->share.host);
    send_from(&p->share, 0, (size_t)waves);
    OK(MPI_Allreduce(p->share.mpi, p->whole.mpi, waves, MPI_DOUBLE, MPI_SUM, p->own));
    arrived_at(&p->whole, 0, (size_t)waves);
    for (int w = 0; w < s->count; w++) {
        int first = s->place[w], n = s->particles[w], at = 3 * first + w;
        double *f = s->f.host + at;
        memset(f, 0, (3 * (size_t)n + 1) * sizeof *f);
        add_wave_forces(&p->waves, p->domain.edge, s->x.host + 3 * first, s->charge.host + first,
                        n, p->whole.host, f);
        f[3 * n] = s->first + w == 0 ? wave_energy(&p->waves, p->whole.host) : 0;
        send_from(&s->f, (size_t)at, 3 * (size_t)n + 1);
        OK(MPI_Isend(s->f.mpi + at, 3 * n + 1, MPI_DOUBLE, s->first + w, tag + 3, mini->comm,
                     &s->request[w]));
    }
    OK(MPI_Waitall(s->count, s->request, MPI_STATUSES_IGNORE));
    lap(mini, PARTICLES_PME);
}

/* The long-range part of a rank alone. */
double add_own_waves(struct particles *p)
{
    struct domain *d = &p->domain;
    memset(p->share.host, 0, 2 * WAVES * sizeof(double));
    add_charges(&p->waves, d->edge, d->x, d->charge, d->home, p->share.host);
    add_wave_forces(&p->waves, d->edge, d->x, d->charge, d->home, p->share.host, d->f);
    return wave_energy(&p->waves, p->share.host);
}
