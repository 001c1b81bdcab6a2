/* How a node is named in the files that its ranks write. */
#ifndef MPIGRAFT_PRELOAD_NODE_H
#define MPIGRAFT_PRELOAD_NODE_H

#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* What tells texts and processes apart in the witness's files. */

/* FNV-1a, 64 bits: tells a handful of texts apart, and is no secret. */
static unsigned long long digest_of(const char *bytes, size_t length)
{
    unsigned long long digest = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++)
        digest = (digest ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    return digest;
}

/* The same in both lines of a process, and another one in each: containers may give two processes
 * of a node one number. */
static inline unsigned long long process_id(void)
{
    static unsigned long long id;
    if (!id) {
        struct timespec now = {0, 0};
        clock_gettime(CLOCK_MONOTONIC, &now);
        long long parts[] = {getpid(), now.tv_sec, now.tv_nsec, (long long)(intptr_t)&now};
        id = digest_of((const char *)parts, sizeof parts) | 1;
    }
    return id;
}

static void read_line(const char *path, char *text, size_t room)
{
    text[0] = 0;
    FILE *file = fopen(path, "re");
    if (file && !fgets(text, (int)room, file))
        text[0] = 0;
    if (file)
        fclose(file);
    text[strcspn(text, "\n")] = 0;
}

/* A file name for this node. Two nodes may have one host name; the kernel that runs and the
 * network that is seen tell them apart, as they do nodes that are namespaces of one kernel. */
static void name_node(const char *host, const char *boot, char *name, size_t room)
{
    char all[512], safe[72] = "";
    struct stat network = {0};
    if (stat("/proc/self/ns/net", &network))
        network.st_ino = 0;
    int length = snprintf(all, sizeof all, "%s %s %llu", host, boot,
                          (unsigned long long)network.st_ino);
    for (size_t i = 0; host[i] && i < sizeof safe - 1; i++)
        safe[i] = isalnum((unsigned char)host[i]) || strchr("-_.", host[i]) ? host[i] : '_';
    snprintf(name, room, "%s-%016llx", safe, digest_of(all, (size_t)length));
}

#endif
