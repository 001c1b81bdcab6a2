/* How each routine is recorded: its FIELDS (record_file.h), what writes them before the call (IN)
 * and after it (OUT). */
#ifndef MPIGRAFT_RECORDED_H
#define MPIGRAFT_RECORDED_H

#include "recorded_collective.h"
#include "recorded_nonblocking.h"
#include "recorded_objects.h"
#include "recorded_onesided.h"
#include "recorded_p2p.h"

#endif
