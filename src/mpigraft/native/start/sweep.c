/* Notes of launches, and the removal of what one left whose processes are gone.
 *
 * A launch has a note /dev/shm/mpigraft-launch.USER.PID, which its guard locks while it lives: a
 * note that can be locked is of a guard that was killed. The note says when the launch began, and
 * which folders have its process's id in their names; its time is that of the guard's last tick.
 * A file of an MPI is removed if it is this user's, was last changed within that time, and no
 * process has it mapped; records of a command, if that is gone too. A guard that cannot see every
 * process removes nothing. */
#include "sweep.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SHM "/dev/shm"
#define NOTE "mpigraft-launch."
#define EARLY_S 0.1 /* the launcher may have begun before the note, by the kernel's coarse clock */
#define LATE_S 2.0  /* after the last tick: a process that is being killed still writes */

static const char *const IN_SHM[] = {"sm_segment.", "vader_segment.", "mpich_shm_", "Intel_MPI_",
                                     "psm2_shm",    "psm3_shm",       "ucx_shm_posix_"};
static const char *const IN_TMP[] = {"hydra_hwloc_xmlfile_"};

struct note {
    double begin, end;  /* seconds since the epoch */
    int child, command; /* process ids: the launcher, and the command that started the guard */
    char folder[3000];  /* TMPDIR */
};

static int own_note = -1;
static char own_path[64];
static struct note own;

static double seconds_of(struct timespec time)
{
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static bool begins(const char *name, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strncmp(name, words[i], strlen(words[i])))
            return true;
    return false;
}

/* ---- what is in use ---- */

/* Whether every process of this user can be looked at: not from within a container. */
static bool sees_every_process(void)
{
    char name[64] = "";
    return readlink("/proc/self/ns/pid", name, sizeof name - 1) > 0 &&
           !strcmp(name, "pid:[4026531836]");
}

/* Whether a process of this user has the file mapped, or cannot be asked. In a container the file
 * is in another folder, as the kernel shows it from here, so its name counts. */
static bool is_mapped(const char *path)
{
    const char *name = strrchr(path, '/');
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    bool mapped = !proc;
    while (!mapped && (entry = readdir(proc))) {
        char maps[300];
        struct stat status;
        snprintf(maps, sizeof maps, "/proc/%s", entry->d_name);
        if (!isdigit((unsigned char)entry->d_name[0]) || stat(maps, &status) ||
            status.st_uid != geteuid())
            continue;
        snprintf(maps, sizeof maps, "/proc/%s/maps", entry->d_name);
        FILE *file = fopen(maps, "re");
        if (!file) {
            mapped = errno != ENOENT && errno != ESRCH && strcmp(entry->d_name, "1") != 0;
            continue;
        }
        char *line = NULL;
        size_t room = 0;
        while (!mapped && getline(&line, &room, file) > 0)
            mapped = strstr(line, name) != NULL;
        free(line);
        fclose(file);
    }
    if (proc)
        closedir(proc);
    return mapped;
}

/* ---- what is removed ---- */

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)kind, (void)place;
    (void)remove(path); /* what others hold stays */
    return 0;
}

static bool is_of(const struct note *note, const char *path)
{
    struct stat status;
    return !lstat(path, &status) && status.st_uid == geteuid() &&
           seconds_of(status.st_mtim) >= note->begin && seconds_of(status.st_mtim) <= note->end;
}

/* Remove the files of a folder whose names begin as those of an MPI; returns whether one of them
 * is in use. */
static bool remove_files(const struct note *note, const char *folder, const char *const *words,
                         size_t count)
{
    DIR *all = opendir(folder);
    struct dirent *entry;
    bool used = false;
    while (all && (entry = readdir(all))) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (!begins(entry->d_name, words, count) || !is_of(note, path))
            continue;
        if (is_mapped(path))
            used = true;
        else
            unlink(path);
    }
    if (all)
        closedir(all);
    return used;
}

/* Remove a folder that has the id of a process of the launch in its name. */
static void remove_folder(const struct note *note, const char *path)
{
    if (is_of(note, path))
        nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* Folders of Open MPI 5 and 4, and of the command's records. */
static void remove_folders(const struct note *note)
{
    char path[4096], old[600], records[64];
    snprintf(path, sizeof path, "%s/ompi.%d", note->folder, note->child);
    remove_folder(note, path);
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    snprintf(old, sizeof old, "ompi.%s.%u/pid.%d", host, (unsigned)geteuid(), note->child);
    snprintf(path, sizeof path, "%s/%s", note->folder, old);
    remove_folder(note, path);
    *strrchr(path, '/') = '\0';
    rmdir(path); /* it stays while there is another launch in it */
    if (!kill(note->command, 0) || errno != ESRCH)
        return; /* it reads the records, and removes them */
    for (int i = 0; i < 10; i++) {
        snprintf(records, sizeof records, "mpigraft-%d-run%d", note->command, i);
        snprintf(path, sizeof path, "%s/%s", note->folder, records);
        remove_folder(note, path);
    }
}

/* Remove what a launch left; returns whether something of it is in use still. */
static bool remove_left(const struct note *note)
{
    remove_folders(note);
    remove_files(note, note->folder, IN_TMP, sizeof IN_TMP / sizeof *IN_TMP);
    return remove_files(note, SHM, IN_SHM, sizeof IN_SHM / sizeof *IN_SHM);
}

/* ---- notes ---- */

/* Deal with a note whose guard is gone; it stays while something of its launch runs. */
static void sweep(const char *path)
{
    int file = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return;
    struct note note = {0};
    char text[sizeof note.folder + 100] = "";
    struct stat status;
    if (!flock(file, LOCK_EX | LOCK_NB) && !fstat(file, &status) && S_ISREG(status.st_mode) &&
        status.st_uid == geteuid() && read(file, text, sizeof text - 1) > 0 &&
        sscanf(text, "%lf %d %d %2999[^\n]", &note.begin, &note.child, &note.command,
               note.folder) == 4 &&
        note.folder[0] == '/') {
        note.end = seconds_of(status.st_mtim) + LATE_S;
        if (!remove_left(&note)) /* the launcher was killed with its guard */
            unlink(path);
    }
    close(file);
}

static void sweep_all(void)
{
    char mine[64];
    snprintf(mine, sizeof mine, NOTE "%u.", (unsigned)geteuid());
    const char *const words[] = {mine};
    DIR *all = opendir(SHM);
    struct dirent *entry;
    while (all && (entry = readdir(all)))
        if (begins(entry->d_name, words, 1)) {
            char path[300];
            snprintf(path, sizeof path, SHM "/%s", entry->d_name);
            sweep(path);
        }
    if (all)
        closedir(all);
}

void begin_launch(pid_t child)
{
    const char *folder = getenv("TMPDIR");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (!sees_every_process())
        return;
    sweep_all();
    own = (struct note){.begin = seconds_of(now) - EARLY_S, .child = child, .command = getppid()};
    snprintf(own.folder, sizeof own.folder, "%s", folder && *folder ? folder : "/tmp");
    snprintf(own_path, sizeof own_path, SHM "/" NOTE "%u.%d", (unsigned)geteuid(), (int)getpid());
    own_note = open(own_path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (own_note < 0)
        return;
    if (flock(own_note, LOCK_EX | LOCK_NB) ||
        dprintf(own_note, "%.6f %d %d %s\n", own.begin, own.child, own.command, own.folder) < 0)
        end_launch(false);
}

void renew_launch(void)
{
    if (own_note >= 0)
        futimens(own_note, NULL);
}

void end_launch(bool failed)
{
    if (own_note < 0)
        return;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    own.end = seconds_of(now);
    if (failed)
        remove_left(&own);
    unlink(own_path);
    close(own_note);
    own_note = -1;
}
