/* What MPIs leave in /dev/shm and in TMPDIR when SIGKILL ends a whole launch. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Remove what earlier launches of this user left whose guard was killed too, and note that this
 * one begins; `child` is its launcher. */
void begin_launch(pid_t child);

/* Renew the note: what is made later than its last renewal is not of this launch. */
void renew_launch(void);

/* Remove the note, and what this launch left if it failed. */
void end_launch(bool failed);
