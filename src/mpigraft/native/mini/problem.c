/* The matrix of dirac: a lattice with a stencil as Dirac's operator has it, or one of a file; and
 * who owns which of its sites.
 *
 * A file of --partition has words of 64 bits in the machine's order: a mark, the sites, the parts,
 * how it was divided, the entries of the matrix (0: a lattice) and the lattice's extents; then the
 * owner of each site (32 bits, filled up to 64); for a matrix, where each row begins, its columns
 * in ascending order (32 bits, filled up) and its values.
 */
#include <sys/mman.h>
#include <sys/stat.h>

#include "mini.h"

enum {
    DIRECTIONS = 9, /* the site itself, and two neighbours in each of four dimensions */
    HEADER_WORDS = 16,
};

static const int64_t FILE_MARK = INT64_C(0x317472617067706d); /* mpgpart1 */

static const char *const METHODS[] = {"blocks", "metis", NULL};

/* ---- files ---- */

static const int64_t *map_file(const char *path, struct problem *problem)
{
    struct stat status;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || fstat(descriptor, &status))
        DIE("%s: %s", path, strerror(errno));
    problem->bytes = (size_t)status.st_size;
    if (problem->bytes < HEADER_WORDS * sizeof(int64_t))
        DIE("%s: it is too short for a partition", path);
    problem->file = mmap(NULL, problem->bytes, PROT_READ, MAP_SHARED, descriptor, 0);
    close(descriptor);
    if (problem->file == MAP_FAILED)
        DIE("%s: %s", path, strerror(errno));
    return problem->file;
}

/* Every number that is used as an index is looked at first: a file may be damaged. */
static void check_file(const char *path, const struct problem *problem, int ranks)
{
    long long sites = problem->sites;
    for (long long s = 0; s < sites; s++)
        if (problem->owner[s] < 0 || problem->owner[s] >= ranks)
            DIE("%s: site %lld belongs to rank %d, which is not there", path, s,
                problem->owner[s]);
    for (long long s = 0; problem->start && s < sites; s++) {
        bool diagonal = false;
        for (int64_t k = problem->start[s]; k < problem->start[s + 1]; k++) {
            bool first = k == problem->start[s];
            diagonal |= problem->column[k] == s;
            if (problem->column[k] < 0 || problem->column[k] >= sites ||
                (!first && problem->column[k] <= problem->column[k - 1]))
                DIE("%s: the columns of row %lld are damaged", path, s);
        }
        if (!diagonal)
            DIE("%s: row %lld has nothing on the diagonal, so there is no ILU(0)", path, s);
    }
}

static size_t filled_up(long long count)
{
    return ((size_t)count * sizeof(int32_t) + 7) / 8 * 8;
}

static void read_problem(struct mini *mini, struct problem *problem)
{
    const char *path = mini->options->partition;
    const int64_t *word = map_file(path, problem);
    int64_t sites = word[1], entries = word[4];
    if (word[0] != FILE_MARK || sites < 1 || sites > INT32_MAX || word[3] < 0 || word[3] > 1 ||
        entries < 0 || entries > INT64_C(1) << 40)
        DIE("%s: it is no partition of this version, or of another machine", path);
    if (word[2] != mini->size)
        DIE("%s: it is for %lld ranks, and these are %d", path, (long long)word[2], mini->size);
    size_t due = HEADER_WORDS * 8 + filled_up(sites);
    due += entries ? 8 * (size_t)(sites + 1) + filled_up(entries) + 8 * (size_t)entries : 0;
    if (problem->bytes != due)
        DIE("%s: it has %zu bytes, not %zu: it is damaged", path, problem->bytes, due);
    for (int d = 0; d < 4 && !entries; d++)
        if (problem->lattice.of[d] != word[5 + d])
            DIE("%s: it is for another lattice", path);
    const char *at = (const char *)(word + HEADER_WORDS);
    problem->sites = sites;
    problem->owner = need((size_t)sites, sizeof *problem->owner);
    memcpy(problem->owner, at, (size_t)sites * sizeof *problem->owner);
    if (entries) {
        problem->unknowns = 1;
        problem->start = (const int64_t *)(at + filled_up(sites));
        problem->column = (const int32_t *)(problem->start + sites + 1);
        problem->value = (const double *)((const char *)problem->column + filled_up(entries));
        for (int64_t s = 0, last = 0; s <= sites; last = problem->start[s++])
            if (problem->start[s] < last || problem->start[s] > entries ||
                (s == sites && problem->start[s] != entries))
                DIE("%s: its rows are damaged", path);
    }
    check_file(path, problem, mini->size);
    mini->method = METHODS[word[3]];
}

/* ---- a lattice ---- */

/* Blocks of the lattice, one for each rank. */
static void divide_lattice(struct problem *problem, int ranks)
{
    const struct extents *lattice = &problem->lattice;
    int parts[MOST_DIMENSIONS];
    divide_ranks(ranks, lattice, parts);
    problem->owner = need((size_t)problem->sites, sizeof *problem->owner);
    for (long long s = 0; s < problem->sites; s++) {
        long long rest = s;
        int owner = 0;
        for (int d = 0; d < lattice->count; d++) {
            long long place = rest % lattice->of[d];
            rest /= lattice->of[d];
            owner = owner * parts[d] + (int)(((place + 1) * parts[d] - 1) / lattice->of[d]);
        }
        problem->owner[s] = owner;
    }
}

/* The neighbour of a site in direction 1 to 8; the site itself in direction 0. Periodic. */
static long long neighbour_of(const struct extents *lattice, long long site, int direction)
{
    long long stride = 1;
    for (int d = 0; d < (direction - 1) / 2; d++)
        stride *= lattice->of[d];
    if (!direction)
        return site;
    long long extent = lattice->of[(direction - 1) / 2], place = site / stride % extent;
    long long next = direction % 2 ? place + 1 : place + extent - 1;
    return site + (next % extent - place) * stride;
}

/* Of one rank, before it is made: owners, entries with their places in ILU(0), vectors. */
static void require_problem(const struct mini *mini, const struct problem *problem)
{
    double rows = (double)problem->sites * problem->unknowns / mini->size;
    double entries = problem->start ? (double)problem->start[problem->sites] / mini->size
                                    : rows * DIRECTIONS * problem->unknowns;
    require_memory(mini, 12.0 * (double)problem->sites + 20 * entries + 120 * rows);
}

void make_problem(struct mini *mini, struct problem *problem)
{
    static const struct extents usual = {4, {8, 8, 8, 8}};
    problem->lattice = whole_extents(mini->options, &usual, mini->size);
    problem->sites = volume(&problem->lattice);
    problem->unknowns = (int)mini->options->unknowns;
    if (problem->sites * problem->unknowns > INT32_MAX)
        DIE("%lld unknowns are more than %d", problem->sites * problem->unknowns, INT32_MAX);
    if (mini->options->partition) {
        read_problem(mini, problem);
        require_problem(mini, problem);
    } else {
        require_problem(mini, problem);
        divide_lattice(problem, mini->size);
        mini->method = METHODS[0];
    }
}

void free_problem(struct problem *problem)
{
    free(problem->owner);
    if (problem->file)
        munmap((void *)(uintptr_t)problem->file, problem->bytes);
}

/* ---- rows ---- */

/* Sites whose values a site's rows take, ascending by number; each once. Returns how many. */
int64_t sites_of(const struct problem *problem, long long site, int32_t *found)
{
    if (problem->start) {
        int64_t count = problem->start[site + 1] - problem->start[site];
        memcpy(found, problem->column + problem->start[site], (size_t)count * sizeof *found);
        return count;
    }
    int64_t count = 0;
    for (int direction = 0; direction < DIRECTIONS; direction++) {
        int32_t other = (int32_t)neighbour_of(&problem->lattice, site, direction);
        int64_t at = 0;
        while (at < count && found[at] < other)
            at++;
        if (at < count && found[at] == other)
            continue;
        memmove(found + at + 1, found + at, (size_t)(count - at) * sizeof *found);
        found[at] = other;
        count++;
    }
    return count;
}

int64_t most_sites(const struct problem *problem)
{
    int64_t most = DIRECTIONS;
    for (long long s = 0; problem->start && s < problem->sites; s++)
        if (problem->start[s + 1] - problem->start[s] > most)
            most = problem->start[s + 1] - problem->start[s];
    return most;
}

/* How row `i` of a site takes value `j` of another. A lattice's blocks are drawn for each link, so
 * that the spectral radius of all neighbours together is about 0.7 of the diagonal. */
double entry_of(const struct mini *mini, const struct problem *problem, long long site,
                int i, int32_t other, int j)
{
    if (problem->start) {
        int64_t k = problem->start[site];
        while (problem->column[k] != other)
            k++;
        return problem->value[k];
    }
    double sum = site == other && i == j ? 1 : 0;
    double scale = 0.7 / square_root(8.0 * problem->unknowns / 3);
    for (int direction = 1; direction < DIRECTIONS; direction++)
        if (neighbour_of(&problem->lattice, site, direction) == other) {
            uint64_t link = (uint64_t)site * DIRECTIONS + (uint64_t)direction;
            sum += scale * drawn(key_of(mini, 1, link) + (uint64_t)(i * problem->unknowns + j));
        }
    return sum;
}

/* The solution that the right side is made from. */
double exact_value(const struct mini *mini, long long row)
{
    return 1 + 0.5 * drawn(key_of(mini, 2, (uint64_t)row));
}
