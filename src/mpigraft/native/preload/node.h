/* How a node is named in the files that its ranks write. */
#ifndef MPIGRAFT_NODE_H
#define MPIGRAFT_NODE_H

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "process.h"

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
