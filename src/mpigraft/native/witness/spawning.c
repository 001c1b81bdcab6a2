/* What ranks start: MPI_Comm_spawn and MPI_Comm_spawn_multiple.
 *
 * A launcher starts what they name on its own side: outside of the rank's container, and without
 * the variables that ranks alone are given. With MPIGRAFT_SPAWN=SCRIPT, a file of the launcher's
 * side that enters the same container with the same variables (launch/children.py), the root asks
 * for `/bin/sh SCRIPT PID FOLDER COMMAND ARGUMENTS` instead. The arguments of other ranks do not count.
 *
 * Fortran comes here too: the libraries of its entries call MPI_Comm_spawn or PMPI_Comm_spawn of
 * another library in Open MPI 4 and 5, MPICH 4 and 5 and Intel MPI 2021, mpi_f08 included. One
 * call may pass both names, which is why the inner one is handed on as it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "other_mpi.h"
#include "rank_record.h"

#define SHELL "/bin/sh"
#define NO_PROGRAM "ranks can execute no program"

enum { OWN_WORDS = 4, INFO_VALUE = 1024 }; /* no MPI's MPI_MAX_INFO_VAL is larger */

/* Calls of this thread that are under way. */
static __thread int spawning __attribute__((tls_model("initial-exec")));

static void *room_or_end(size_t count, size_t size)
{
    void *room = calloc(count, size);
    if (room)
        return room;
    fprintf(stderr, "mpigraft-witness: MPI_Comm_spawn: no memory for its arguments\n");
    _exit(1);
}

/* What is to be started, and where: in info's "wdir", or where the launcher starts it. */
struct child {
    struct mpi mpi;
    void *info;
    const char *command;
    char folder[SPAWN_PATH]; /* empty: where the launcher was started */
    char path[SPAWN_PATH];
};

/* FOLDER/NAME if it can be executed. */
static bool program_in(const char *folder, size_t length, const char *name, char *path)
{
    struct stat file;
    int all = snprintf(path, SPAWN_PATH, "%.*s/%s", (int)length, folder, name);
    return all < SPAWN_PATH && !stat(path, &file) && S_ISREG(file.st_mode) && !access(path, X_OK);
}

static bool program_among(const char *folders, const char *name, char *path)
{
    for (const char *at = folders; at && *at;) {
        size_t length = strcspn(at, ":");
        if (*at == '/' && program_in(at, length, name, path))
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}

/* The interpreter that the first line of a script names; empty: it is no script. */
static void interpreter_in(int file, char *name)
{
    char line[INFO_VALUE + 1] = "";
    if (pread(file, line, INFO_VALUE, 0) < 2 || strncmp(line, "#!", 2))
        return;
    const char *first = line + 2 + strspn(line + 2, " \t");
    snprintf(name, SPAWN_PATH, "%.*s", (int)strcspn(first, " \t\n"), first);
}

/* The kernel starts no program whose loader or interpreter is not there. */
static void refuse_unable(const char *path, const char *command)
{
    char name[SPAWN_PATH] = "", text[2 * SPAWN_PATH];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    loader_in(file, name);
    interpreter_in(file, name);
    if (*name == '/' && access(name, X_OK)) {
        snprintf(text, sizeof text, "%s: its loader or interpreter is %s", command, name);
        refuse("spawn-no-program", NO_PROGRAM, text);
    }
    refuse_other_mpi(file, command);
    close(file);
}

/* Open MPI starts children where the caller is, and MPICH where mpiexec was started, which both
 * mean by a "wdir" that is relative. */
static void find_folder(struct child *child)
{
    struct stat folder;
    char named[INFO_VALUE + 1] = "";
    const char *start = getenv("MPIGRAFT_SPAWN_FOLDER");
    bool given = ask_info(child->mpi, child->info, "wdir", named, INFO_VALUE);
    child->folder[0] = 0;
    if (given && *named == '/')
        snprintf(child->folder, SPAWN_PATH, "%s", named);
    else if (given && start && strcmp(named, "."))
        snprintf(child->folder, SPAWN_PATH, "%s/%s", start, named);
    else if (given || !open_mpi_object("ompi_mpi_comm_world") || !getcwd(child->folder, SPAWN_PATH))
        snprintf(child->folder, SPAWN_PATH, "%s", start ? start : named);
    if (*child->folder == '/' && (stat(child->folder, &folder) || !S_ISDIR(folder.st_mode)))
        refuse("spawn-no-folder", "ranks see no folder", child->folder);
}

/* A command without a folder is looked for here as launchers do it, since they would look outside
 * of the container: in the info's "path", in PATH, in the working folder. */
static void find_command(struct child *child)
{
    char listed[INFO_VALUE + 1] = "", here[SPAWN_PATH] = "";
    const char *command = child->command, *folder = child->folder;
    if (strchr(command, '='))
        refuse("spawn-equals", "env would set a variable instead of starting", command);
    if (!*folder && getcwd(here, sizeof here))
        folder = here;
    if (*command == '/') {
        if (!program_in("", 0, command + 1, child->path))
            refuse("spawn-no-program", NO_PROGRAM, command);
    } else if (strchr(command, '/')) {
        if (*child->folder != '/') /* where the launcher starts it is not known */
            return;
        if (!program_in(folder, strlen(folder), command, child->path))
            refuse("spawn-no-program", NO_PROGRAM, command);
    } else {
        (void)ask_info(child->mpi, child->info, "path", listed, INFO_VALUE);
        if (!program_among(listed, command, child->path) &&
            !program_among(getenv("PATH"), command, child->path) &&
            !program_in(folder, strlen(folder), command, child->path))
            refuse("spawn-no-program", NO_PROGRAM, command);
        child->command = child->path;
    }
    refuse_unable(child->path, command);
}

/* SCRIPT, this process, the folder, COMMAND and the arguments of one program, as a list of its own. */
static char **wrapped(struct mpi mpi, void *info, const char *script, const char *command,
                      char **arguments)
{
    struct child *child = room_or_end(1, sizeof *child);
    size_t count = 0;
    child->mpi = mpi, child->info = info, child->command = command;
    find_folder(child);
    find_command(child);
    while (arguments && arguments[count])
        count++;
    char **words = room_or_end(OWN_WORDS + count + 1, sizeof *words);
    words[0] = strdup(script);
    words[1] = room_or_end(1, sizeof "-9223372036854775808");
    sprintf(words[1], "%ld", (long)getpid());
    words[2] = strdup(*child->folder ? child->folder : ".");
    words[3] = strdup(child->command);
    if (count)
        memcpy(words + OWN_WORDS, arguments, count * sizeof *words);
    free(child);
    return words;
}

/* The info without "wdir": the launcher cannot enter a folder of the image. Whether it is new. */
static bool info_without_folder(struct mpi mpi, void *info, void **without)
{
    char folder[INFO_VALUE + 1];
    function copy = real("PMPI_Info_dup"), drop = real("PMPI_Info_delete");
    *without = info;
    if (!copy || !drop || !ask_info(mpi, info, "wdir", folder, INFO_VALUE))
        return false;
    if (mpi.abi == POINTERS)
        return !((int (*)(void *, void **))copy)(info, without) &&
               !((int (*)(void *, const char *))drop)(*without, "wdir");
    int made = 0;
    if (((int (*)(int, int *))copy)((int)(uintptr_t)info, &made) ||
        ((int (*)(int, const char *))drop)(made, "wdir"))
        return false;
    *without = handle_of((unsigned)made);
    return true;
}

static void free_info(struct mpi mpi, void *info)
{
    function end = real("PMPI_Info_free");
    int number = (int)(uintptr_t)info;
    if (end)
        (void)((int (*)(void *))end)(mpi.abi == POINTERS ? (void *)&info : (void *)&number);
}

static void free_words(char **words)
{
    for (int i = 0; i < OWN_WORDS; i++)
        free(words[i]);
    free(words);
}

/* The script, if this call is to start it: of the root, and not within another one's. */
static const char *script_for(struct mpi mpi, int root, void *comm)
{
    const char *script = getenv("MPIGRAFT_SPAWN");
    if (spawning || !script || !*script || ask_int("PMPI_Comm_rank", mpi, comm) != root)
        return NULL;
    return script;
}

int spawn_by(function call, const char *command, char **arguments, int most, void *info,
             int root, void *comm, void *between, int *codes)
{
    struct mpi mpi = which_mpi();
    const char *script = script_for(mpi, root, comm);
    char **words = script && command ? wrapped(mpi, info, script, command, arguments) : NULL;
    bool made = words && info_without_folder(mpi, info, &info);
    spawning++;
    int code = ((spawn_one *)call)(words ? SHELL : command, words ? words : arguments, most, info,
                                   root, comm, between, codes);
    spawning--;
    if (made)
        free_info(mpi, info);
    if (words)
        free_words(words);
    return code;
}

/* The programs of a call for several, each as `wrapped` makes it. */
struct children {
    char **shells, ***lists;
    void *infos; /* an array of handles */
    bool *made;  /* which of them are ours */
};

static void *get_info(struct mpi mpi, void *infos, int i)
{
    return mpi.abi == POINTERS ? ((void **)infos)[i] : handle_of(((unsigned *)infos)[i]);
}

static void put_info(struct mpi mpi, void *infos, int i, void *info)
{
    if (mpi.abi == POINTERS)
        ((void **)infos)[i] = info;
    else
        ((unsigned *)infos)[i] = (unsigned)(uintptr_t)info;
}

static struct children wrap_many(struct mpi mpi, const char *script, int count, char **commands,
                                 char ***arguments, void *infos)
{
    static char shell[] = SHELL;
    size_t many = (size_t)count;
    struct children all = {room_or_end(many, sizeof *all.shells),
                           room_or_end(many, sizeof *all.lists), room_or_end(many, sizeof infos),
                           room_or_end(many, sizeof *all.made)};
    for (int i = 0; i < count; i++) {
        void *info = get_info(mpi, infos, i);
        all.shells[i] = shell;
        all.lists[i] = wrapped(mpi, info, script, commands[i], arguments ? arguments[i] : NULL);
        all.made[i] = info_without_folder(mpi, info, &info);
        put_info(mpi, all.infos, i, info);
    }
    return all;
}

static void free_many(struct mpi mpi, int count, struct children all)
{
    for (int i = 0; i < count; i++) {
        free_words(all.lists[i]);
        if (all.made[i])
            free_info(mpi, get_info(mpi, all.infos, i));
    }
    free(all.shells);
    free(all.lists);
    free(all.infos);
    free(all.made);
}

int spawn_many_by(function call, int count, char **commands, char ***arguments,
                  const int *most, void *infos, int root, void *comm, void *between,
                         int *codes)
{
    struct mpi mpi = which_mpi();
    const char *script = script_for(mpi, root, comm);
    bool ours = script && count > 0 && commands && infos;
    struct children all = {0};
    if (ours)
        all = wrap_many(mpi, script, count, commands, arguments, infos);
    spawning++;
    int code = ((spawn_many *)call)(count, ours ? all.shells : commands,
                                    ours ? all.lists : arguments, most, ours ? all.infos : infos,
                                    root, comm, between, codes);
    spawning--;
    if (ours)
        free_many(mpi, count, all);
    return code;
}
