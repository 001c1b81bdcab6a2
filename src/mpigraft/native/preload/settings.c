/* libmpigraft-settings.so: the environment that copies of an MPI see.
 *
 * An MPI under a whole software stack is started by nobody of ours: no launcher sets OPAL_PREFIX or
 * UCX_MODULE_DIR, and the paths that are compiled into the copies lead to the originals, whose
 * plugins need other files than the copies. Each copy needs this library, and calls
 * mpigraft_getenv() where the original calls getenv(). The answers are in the file `environment` in
 * the folder above this library's own: a line NAME=VALUE gives a variable this value, and a line
 * NAME gives it none, in place of the process's. What a launcher's own MPI left for its ranks (its
 * OPAL_PREFIX) would be wrong here. Nor does a copy set these for others: Open MPI 5 sets
 * PMIX_PREFIX to what OPAL_PREFIX is.
 *
 * The environment of the process is not touched, so what the program starts is as it was: another
 * MPI's launcher, say, which would look for its files in our folders.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 1 << 16, MOST_LINES = 256 };

static char text[MOST];
static char *lines[MOST_LINES]; /* written by the constructor alone */
static size_t count;

char *mpigraft_getenv(const char *name);
int mpigraft_setenv(const char *name, const char *value, int overwrite);

/* The file's text; 0 where there is none. */
static size_t read_text(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    size_t length = 0;
    ssize_t got;
    while (length < MOST - 1 && (got = read(file, text + length, MOST - 1 - length)) > 0)
        length += (size_t)got;
    close(file);
    text[length] = 0;
    return length;
}

/* The value in the lines of `name`, NULL where its line has none; `*known` is whether it has one. */
static char *value_of(const char *name, size_t length, int *known)
{
    for (size_t i = 0; i < count; i++)
        if (!strncmp(lines[i], name, length) && (!lines[i][length] || lines[i][length] == '=')) {
            *known = 1;
            return lines[i][length] ? lines[i] + length + 1 : NULL;
        }
    *known = 0;
    return NULL;
}

__attribute__((visibility("default"))) char *mpigraft_getenv(const char *name)
{
    int known;
    char *value = value_of(name, strlen(name), &known);
    return known ? value : getenv(name);
}

__attribute__((visibility("default"))) int mpigraft_setenv(const char *name, const char *value,
                                                           int overwrite)
{
    int known;
    value_of(name, strlen(name), &known);
    return known ? 0 : setenv(name, value, overwrite);
}

__attribute__((constructor)) static void read_lines(void)
{
    char path[PATH_MAX];
    Dl_info own;
    if (!dladdr((void *)read_lines, &own) || !own.dli_fname || strlen(own.dli_fname) >= PATH_MAX - 32)
        return;
    strcpy(path, own.dli_fname);
    for (int level = 0; level < 2; level++) {
        char *slash = strrchr(path, '/');
        if (!slash)
            return;
        *slash = 0;
    }
    strcat(path, "/environment");
    if (!read_text(path))
        return;
    for (char *line = text, *next; line && count < MOST_LINES; line = next) {
        if ((next = strchr(line, '\n')))
            *next++ = 0;
        if (*line && *line != '=')
            lines[count++] = line;
    }
}
