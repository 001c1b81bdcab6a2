/* Options of a command line: rows of a table, each with its bounds, and how their texts are
 * read. */
#ifndef MPIGRAFT_ARGUMENTS_H
#define MPIGRAFT_ARGUMENTS_H

#include <stdio.h>

#include "check.h"
#include "rank_variables.h"

#define GIB (1LL << 30)

enum option_kind { TAKES_NUMBER, TAKES_DECIMAL, TAKES_WORD, TAKES_TEXT, TAKES_NOTHING };

struct option_row {
    const char *name;
    enum option_kind kind;
    size_t offset;
    long long low, high;
    const char *const *words;
    const char *help;
};

__attribute__((noreturn, format(printf, 1, 2))) void refuse(const char *format, ...);
long long environment_number(const char *const *names);
void store_argument(void *options, const struct option_row *row, const char *text);
const struct option_row *row_named(const struct option_row *rows, size_t count, const char *name,
                                   size_t length);
void read_arguments(int argc, char **argv, const struct option_row *rows, size_t count,
                    void *options, void (*store)(void *, const struct option_row *, const char *));
void print_rows(const struct option_row *rows, size_t count);

#endif
