/* The command line of mpigraft-mini, and the name that its results have. */
#include <stddef.h>

#include "mini.h"

static const char *const FORMS[] = {"packed", "indexed", NULL};

#define MINI(member) offsetof(struct mini_options, member)

/* In alphabetical order: so the name of a result has them. */
static const struct option_row MINI_OPTIONS[] = {
    {"--app", TAKES_TEXT, MINI(app), 0, 0, NULL, "which mini-app (--list names them)"},
    {"--budget", TAKES_DECIMAL, MINI(budget), 0, 3600000, NULL, "milliseconds of samples (500)"},
    {"--buffers", TAKES_WORD, MINI(buffers), 0, 0, BUFFERS, "host, cuda or rocm: of messages"},
    {"--density", TAKES_NUMBER, MINI(density), 1, 64, NULL, "particles: of a cell (2)"},
    {"--depth", TAKES_NUMBER, MINI(depth), 1, 8, NULL,
     "halo: layers that are exchanged; particles: cells of the cutoff (2)"},
    {"--every", TAKES_NUMBER, MINI(every), 1, 1000000, NULL,
     "particles: steps from one migration to the next (10); ocean: to the next output (10)"},
    {"--fields", TAKES_NUMBER, MINI(fields), 1, 64, NULL, "halo, ocean: values of a point (5)"},
    {"--halo", TAKES_WORD, MINI(halo), 0, 0, FORMS,
     "packed or indexed: how dirac and halo describe what they send (packed)"},
    {"--help", TAKES_NOTHING, MINI(help), 0, 0, NULL, "this text"},
    {"--io", TAKES_NUMBER, MINI(io), 0, 4096, NULL, "ocean: ranks that take output alone (1)"},
    {"--list", TAKES_NOTHING, MINI(list), 0, 0, NULL, "names of the mini-apps"},
    {"--local", TAKES_TEXT, MINI(local), 0, 0, NULL, "extents for each rank: weak scaling"},
    {"--matrix", TAKES_TEXT, MINI(matrix), 0, 0, NULL, "dirac: name of a matrix in results"},
    {"--no-validate", TAKES_NOTHING, MINI(no_validate), 0, 0, NULL, "do not check the result"},
    {"--partition", TAKES_TEXT, MINI(partition), 0, 0, NULL,
     "dirac: file with the owner of each site, and the matrix if it is no lattice"},
    {"--percent", TAKES_NUMBER, MINI(percent), 1, 100, NULL,
     "transpose: radius of the sphere, of half the grid (60)"},
    {"--pme", TAKES_NUMBER, MINI(pme), 0, 4096, NULL,
     "particles: ranks that compute the long-range part alone (0)"},
    {"--samples", TAKES_NUMBER, MINI(samples), 3, 10000, NULL, "most samples (100)"},
    {"--seed", TAKES_NUMBER, MINI(seed), 0, GIB, NULL, "of the input (1)"},
    {"--serial", TAKES_DECIMAL, MINI(serial), -1, 1LL << 40, NULL,
     "values up to which one rank computes the result alone too (200000)"},
    {"--size", TAKES_TEXT, MINI(size), 0, 0, NULL, "extents of the whole: strong scaling"},
    {"--steps", TAKES_NUMBER, MINI(steps), 1, 1000000, NULL,
     "iterations of a sample; of dirac the most until it has converged"},
    {"--unknowns", TAKES_NUMBER, MINI(unknowns), 1, 32, NULL, "dirac: of each site (4)"},
};

enum { MINI_ROWS = sizeof MINI_OPTIONS / sizeof *MINI_OPTIONS };

/* On the command line. */
static bool given[MINI_ROWS];

static void store_mini_option(void *options, const struct option_row *row, const char *text)
{
    store_argument(options, row, text);
    given[row - MINI_OPTIONS] = true;
}

bool was_given(const char *name)
{
    return given[row_named(MINI_OPTIONS, MINI_ROWS, name, strlen(name)) - MINI_OPTIONS];
}

struct mini_options parse_mini_options(int argc, char **argv)
{
    struct mini_options options = {.density = 2, .depth = 2, .every = 10, .fields = 5,
                                   .io = 1, .percent = 60, .unknowns = 4, .seed = 1, .samples = 100,
                                   .budget = 500, .serial = 200000};
    read_arguments(argc, argv, MINI_OPTIONS, MINI_ROWS, &options, store_mini_option);
    if (options.size && options.local)
        refuse("--size and --local exclude each other");
    return options;
}

void print_mini_help(void)
{
    puts("mpigraft-mini --app NAME [OPTION]...   start it with the launcher of an MPI");
    print_rows(MINI_OPTIONS, MINI_ROWS);
}

/* Options of this mini-app that were given, and what always belongs to its name. */
void make_label(struct mini *mini, int argc, char **argv)
{
    size_t room = sizeof mini->label;
    int length = snprintf(mini->label, room, "%s", mini->app->name);
    for (int i = 0; i < MINI_ROWS; i++) {
        const char *name = MINI_OPTIONS[i].name, *value = NULL;
        bool own = false;
        for (const char *const *option = mini->app->options; *option; option++)
            own |= !strcmp(*option, name) && given[i];
        for (int a = 1; a < argc && own; a++) {
            size_t end = strlen(name);
            if (!strncmp(argv[a], name, end) && (argv[a][end] == '=' || !argv[a][end]))
                value = argv[a][end] ? argv[a] + end + 1 : argv[a + 1];
        }
        if (mini->app->forms && !strcmp(name, "--halo"))
            value = FORMS[mini->options->halo];
        if (mini->method && !strcmp(name, "--partition"))
            value = mini->method;
        if (value && (size_t)length < room)
            length += snprintf(mini->label + length, room - (size_t)length, ",%s=%s", name + 2,
                               value);
    }
}

/* ---- extents: 8x8x8x8 ---- */

long long volume(const struct extents *extents)
{
    long long product = 1;
    for (int d = 0; d < extents->count; d++)
        product *= extents->of[d];
    return product;
}

/* As many extents as `usual` has. One number alone counts for each of them. */
static struct extents parse_extents(const char *option, const char *text,
                                    const struct extents *usual)
{
    struct extents made = {.count = 0};
    const char *at = text;
    for (char *end; made.count < MOST_DIMENSIONS; at = end + 1) {
        errno = 0;
        long long extent = *at >= '0' && *at <= '9' ? strtoll(at, &end, 10) : 0;
        if (extent < 1 || extent > 1 << 20 || errno)
            break;
        made.of[made.count++] = extent;
        if (*end != 'x') {
            at = end;
            break;
        }
    }
    for (int d = 1; d < usual->count && made.count == 1 && !*at; d++)
        made.of[d] = made.of[0];
    if (made.count == 1 && !*at)
        made.count = usual->count;
    if (*at || made.count != usual->count)
        refuse("%s %s: want %d numbers from 1 to %d with x between them, or one for all", option,
               text, usual->count, 1 << 20);
    return made;
}

/* Divide ranks among dimensions: each prime factor, the largest first, goes where most is left
 * for a rank. */
void divide_ranks(int ranks, const struct extents *extents, int *parts)
{
    int factors[32], count = 0;
    for (int divisor = 2; ranks > 1; divisor++)
        for (; ranks % divisor == 0; ranks /= divisor)
            factors[count++] = divisor;
    for (int d = 0; d < extents->count; d++)
        parts[d] = 1;
    while (count--) {
        int widest = 0;
        for (int d = 1; d < extents->count; d++)
            if (extents->of[d] * parts[widest] > extents->of[widest] * parts[d])
                widest = d;
        parts[widest] *= factors[count];
    }
}

/* The extents of the whole, as --size or --local has them, or the usual ones. */
struct extents whole_extents(const struct mini_options *options,
                             const struct extents *usual, int ranks)
{
    if (!options->local)
        return options->size ? parse_extents("--size", options->size, usual) : *usual;
    struct extents made = parse_extents("--local", options->local, usual);
    int parts[MOST_DIMENSIONS];
    divide_ranks(ranks, &made, parts);
    for (int d = 0; d < made.count; d++)
        made.of[d] *= parts[d];
    return made;
}
