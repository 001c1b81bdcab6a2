/* mpigraft-gpu-select [OPTION WORD]... -- PROGRAM...: gives a rank what is its own, and becomes the
 * program.
 *
 *   --rank NAME[,NAME...]  variables in which a launcher may tell a rank its number on its node;
 *                          the first that is set counts
 *   --set VARIABLE=VALUE[/VALUE...]  the rank gets the VALUE of that number, from 0; an empty one
 *                          unsets VARIABLE
 *   --stdin 0|all|none     who reads standard input: the first rank, each one, nobody. The others
 *                          read nothing of what the launcher gave them
 *   --world NAME[,NAME...] variables in which a launcher may tell a rank its number in the world
 *   --folder PATH          where standard input is found: stdin.h
 *
 * All words after these options arrive percent-encoded, so that no launcher finds one that means
 * something to it: %XX is a byte, % alone the empty word, and a word that ends in %+ goes on in
 * the next. Launchers have no words for environment that differs from rank to rank, and a shell
 * that would do is not in every image. Exit status: the program's; 126 or 127 if it cannot be
 * started; 2 for bad usage, for a rank without a number, without a value, or without the standard
 * input that it is to get.
 */
#include <ctype.h>
#include <stdarg.h>

#include "stdin.h"

enum { USAGE = 2, NOT_EXECUTABLE = 126, NOT_FOUND = 127, MOST_RANKS = 100000000 };

struct options {
    const char *names, *stdin_for, *world, *folder;
};

__attribute__((noreturn, format(printf, 2, 3))) void refuse(int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("mpigraft-gpu-select: ", stderr);
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

/* This rank's number, by the first of `names` that is set. */
static long rank_of(const char *names, const char *where)
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
    refuse(USAGE, "none of %s is set, so this rank's number %s is not known", names, where);
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

/* ---- words ---- */

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decode a word in its place; true: it goes on in the next. */
static bool decode(char *word)
{
    char *to = word;
    if (!strcmp(word, "%"))
        return *word = 0, false;
    for (const char *from = word; *from; from++) {
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        if (!strcmp(from, "%+"))
            return *to = 0, true;
        int high = digit(from[1]), low = high < 0 ? -1 : digit(from[2]);
        if (low < 0 || !(high | low))
            refuse(USAGE, "%s is no encoded word: %%XX, or %% alone", word);
        *to++ = (char)(16 * high + low);
        from += 2;
    }
    *to = 0;
    return false;
}

static char *joined(const char *first, const char *second)
{
    size_t length = strlen(first), rest = strlen(second);
    char *both = malloc(length + rest + 1);
    if (!both)
        refuse(USAGE, "out of memory");
    memcpy(both, first, length);
    memcpy(both + length, second, rest + 1);
    return both;
}

/* Decode all words of a list that NULL ends, in its place. */
static char **decoded(char **words)
{
    char **to = words;
    for (char **from = words; *from; from++) {
        char *word = *from;
        for (bool more = decode(word); more; word = joined(word, *from)) {
            if (!*++from)
                refuse(USAGE, "the last word goes on, and nothing follows");
            more = decode(*from);
        }
        *to++ = word;
    }
    *to = NULL;
    return words;
}

/* ---- usage ---- */

static void apply(const struct options *given)
{
    if (!given->stdin_for)
        return;
    bool all = !strcmp(given->stdin_for, "all"), none = !strcmp(given->stdin_for, "none");
    if (!none && !given->folder)
        refuse(USAGE, "--stdin %s wants --folder", given->stdin_for);
    if (!none && !all && strcmp(given->stdin_for, "0"))
        refuse(USAGE, "--stdin %s is none of 0, all, none", given->stdin_for);
    if (!none && !all && !given->world)
        refuse(USAGE, "--stdin 0 wants --world");
    if (all || (!none && rank_of(given->world, "in the world") == 0))
        take_stdin(given->folder);
    else
        nothing_to_read();
}

static const char **value_of(struct options *given, const char *name)
{
    return !strcmp(name, "--rank")     ? &given->names
           : !strcmp(name, "--stdin")  ? &given->stdin_for
           : !strcmp(name, "--world")  ? &given->world
           : !strcmp(name, "--folder") ? &given->folder
                                       : NULL;
}

int main(int argc, char **argv)
{
    struct options given = {0};
    int at = 1, sets = 0;
    for (; at + 1 < argc && strcmp(argv[at], "--"); at += 2) {
        const char **value = value_of(&given, argv[at]);
        if (decode(argv[at + 1]))
            refuse(USAGE, "%s goes on, which an option's word may not", argv[at]);
        if (value)
            *value = argv[at + 1];
        else if (strcmp(argv[at], "--set"))
            refuse(USAGE, "%s is not known; --rank, --set, --stdin, --world, --folder", argv[at]);
        else
            sets++;
    }
    if (at + 1 >= argc || strcmp(argv[at], "--") || (sets && !given.names))
        refuse(USAGE, "it is called as --rank NAMES --set VARIABLE=VALUES -- PROGRAM, or with "
                      "--stdin 0 --world NAME --folder PATH");
    long rank = given.names ? rank_of(given.names, "on its node") : 0;
    for (int i = 1; i < at; i += 2)
        if (!strcmp(argv[i], "--set"))
            give(argv[i + 1], rank);
    apply(&given);
    char **words = decoded(argv + at + 1);
    execvp(words[0], words);
    int code = errno == ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
    refuse(code, "%s: %s", words[0], strerror(errno));
}
