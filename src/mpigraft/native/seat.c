/* mpigraft-seat --rank NAME[,NAME...] --set VARIABLE=VALUE[/VALUE...] [--set ...] -- PROGRAM...:
 * gives a rank what is its own on its node, and becomes the program.
 *
 * NAMEs are variables in which a launcher may tell a rank its number on its node; the first that
 * is set counts. The rank gets the VALUE of that number, from 0; an empty one unsets VARIABLE.
 * Launchers have no words for environment that differs from rank to rank, and a shell that would
 * do is not in every image. Exit status: the program's; 126 or 127 if it cannot be started; 2 for
 * bad usage, for a rank without a number and for one without a value.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { USAGE = 2, NOT_EXECUTABLE = 126, NOT_FOUND = 127, MOST_RANKS = 1000000 };

__attribute__((noreturn, format(printf, 2, 3))) static void refuse(int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("mpigraft-seat: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(code);
}

static char *copied(const char *text, size_t length)
{
    char *copy = strndup(text, length);
    if (!copy)
        refuse(USAGE, "out of memory");
    return copy;
}

/* A number of digits alone, or -1. */
static long number_of(const char *text)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return -1;
    errno = 0;
    long number = strtol(text, &end, 10);
    return *end || errno || number >= MOST_RANKS ? -1 : number;
}

/* This rank's number on its node, by the first of `names` that is set. */
static long local_rank(const char *names)
{
    for (const char *at = names; *at; at += strcspn(at, ","), at += *at == ',') {
        char *name = copied(at, strcspn(at, ","));
        const char *value = *name ? getenv(name) : NULL;
        long rank = value ? number_of(value) : 0;
        if (rank < 0)
            refuse(USAGE, "%s is %s, which is no rank's number", name, value);
        free(name);
        if (value)
            return rank;
    }
    refuse(USAGE, "none of %s is set, so this rank's number on its node is not known", names);
}

/* Set the variable of VARIABLE=VALUE/VALUE... to the value of `rank`. */
static void give(const char *words, long rank)
{
    const char *equals = strchr(words, '=');
    if (!equals || equals == words)
        refuse(USAGE, "--set %s is not VARIABLE=VALUE", words);
    const char *at = equals + 1;
    for (long i = 0; i < rank; i++) {
        at = strchr(at, '/');
        if (!at)
            refuse(USAGE, "--set %s has no value for rank %ld of this node", words, rank);
        at++;
    }
    char *name = copied(words, (size_t)(equals - words)), *value = copied(at, strcspn(at, "/"));
    if (*value ? setenv(name, value, 1) : unsetenv(name))
        refuse(USAGE, "%s cannot be set: %s", name, strerror(errno));
    free(name);
    free(value);
}

int main(int argc, char **argv)
{
    const char *names = NULL;
    int at = 1;
    for (; at + 1 < argc && strcmp(argv[at], "--"); at += 2) {
        if (!strcmp(argv[at], "--rank"))
            names = argv[at + 1];
        else if (strcmp(argv[at], "--set"))
            refuse(USAGE, "%s is not known; --rank NAMES --set VARIABLE=VALUES -- PROGRAM", argv[at]);
    }
    if (!names || at + 1 >= argc || strcmp(argv[at], "--"))
        refuse(USAGE, "it is called as --rank NAMES --set VARIABLE=VALUES -- PROGRAM");
    long rank = local_rank(names);
    for (int i = 1; i < at; i += 2)
        if (!strcmp(argv[i], "--set"))
            give(argv[i + 1], rank);
    execvp(argv[at + 1], argv + at + 1);
    int code = errno == ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
    refuse(code, "%s: %s", argv[at + 1], strerror(errno));
}
