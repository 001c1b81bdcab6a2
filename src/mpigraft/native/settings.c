/* libmpigraft-settings.so: sets the environment that copies of an MPI need, in the process that
 * loads them.
 *
 * An MPI under a whole software stack is started by nobody of ours: no launcher sets OPAL_PREFIX or
 * UCX_MODULE_DIR, and the paths that are compiled into the copies lead to the originals, whose
 * plugins need other files than the copies. Each copy needs this library, so the loader runs its
 * constructor before theirs. It reads the file `environment` in the folder above its own: a line
 * NAME=VALUE sets a variable, whatever its value was, and a line NAME unsets it. What a launcher's
 * own MPI left for its ranks (its OPAL_PREFIX) would be wrong here.
 *
 * It writes nothing, and a file that is not there sets nothing.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 1 << 16 };

static char text[MOST];

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

static void set_line(char *line)
{
    char *value = strchr(line, '=');
    if (!value) {
        if (*line)
            unsetenv(line);
        return;
    }
    *value = 0;
    if (*line)
        setenv(line, value + 1, 1);
}

__attribute__((constructor)) static void set_all(void)
{
    char path[PATH_MAX];
    Dl_info own;
    if (!dladdr((void *)set_all, &own) || !own.dli_fname || strlen(own.dli_fname) >= PATH_MAX - 32)
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
    for (char *line = text, *next; line; line = next) {
        if ((next = strchr(line, '\n')))
            *next++ = 0;
        set_line(line);
    }
}
