/* Options of a command line: rows of a table, each with its bounds, and how their texts are read. */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"

static bool first_rank(void);

/* Usage errors come before MPI_Init: no world is needed to say no. Of many ranks only the
 * first prints, if the launcher says who that is. */
__attribute__((noreturn, format(printf, 1, 2))) void refuse(const char *format, ...)
{
    if (first_rank()) {
        va_list arguments;
        va_start(arguments, format);
        fprintf(stderr, "%s: ", program_name);
        vfprintf(stderr, format, arguments);
        fputc('\n', stderr);
        va_end(arguments);
    }
    exit(EXIT_USAGE);
}

/* A number of the environment, or -1. */
long long environment_number(const char *const *names)
{
    for (; *names; names++) {
        const char *text = getenv(*names);
        if (text && *text >= '0' && *text <= '9')
            return strtoll(text, NULL, 10);
    }
    return -1;
}

static bool first_rank(void)
{
    static const char *const names[] = {WORLD_RANK_VARIABLES, NULL};
    return environment_number(names) <= 0;
}

static long long parse_number(const struct option_row *row, const char *text)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    bool whole = end != text && !errno && !end[shift != 0];
    if (!whole || value < 0 || value > (row->high >> shift) || (value << shift) < row->low)
        refuse("%s %s: want a whole number from %lld to %lld (K, M, G allowed)", row->name, text,
               row->low, row->high);
    return value << shift;
}

static double parse_decimal(const struct option_row *row, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value > (double)row->low && value <= (double)row->high))
        refuse("%s %s: want a number over %lld, at most %lld", row->name, text, row->low,
               row->high);
    return value;
}

static int parse_word(const struct option_row *row, const char *text)
{
    for (int i = 0; row->words[i]; i++)
        if (!strcmp(row->words[i], text))
            return i;
    refuse("%s %s: want %s", row->name, text, row->help);
}

/* Write the value that `text` gives an option into the structure of all options. */
void store_argument(void *options, const struct option_row *row, const char *text)
{
    void *member = (char *)options + row->offset;
    switch (row->kind) {
    case TAKES_NUMBER: *(long long *)member = parse_number(row, text); break;
    case TAKES_DECIMAL: *(double *)member = parse_decimal(row, text); break;
    case TAKES_WORD: *(int *)member = parse_word(row, text); break;
    case TAKES_TEXT: *(const char **)member = text; break;
    case TAKES_NOTHING: *(bool *)member = true; break;
    }
}

const struct option_row *row_named(const struct option_row *rows, size_t count,
                                   const char *name, size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(rows[i].name) == length && !strncmp(rows[i].name, name, length))
            return &rows[i];
    return NULL;
}

/* The words of a command line: each an option of `rows`, with its value. */
void read_arguments(int argc, char **argv, const struct option_row *rows, size_t count,
                    void *options, void (*store)(void *, const struct option_row *,
                                                 const char *))
{
    for (int i = 1; i < argc; i++) {
        size_t length = strcspn(argv[i], "=");
        const char *equals = argv[i][length] ? argv[i] + length : NULL;
        const struct option_row *row = row_named(rows, count, argv[i], length);
        if (!row)
            refuse("%s: no such option (--help lists them)", argv[i]);
        if (row->kind == TAKES_NOTHING && equals)
            refuse("%s takes no value", row->name);
        if (row->kind != TAKES_NOTHING && !equals && ++i == argc)
            refuse("%s needs a value", row->name);
        store(options, row, equals ? equals + 1 : argv[i]);
    }
}

void print_rows(const struct option_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("  %-15s %s\n", rows[i].name, rows[i].help);
}
