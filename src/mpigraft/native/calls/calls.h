/* The functions of MPI that are traced, as rows: CALL(name, parameters, arguments, what comes
 * before with `waits`, what it moves), and LARGE for the form of a CALL with counts of MPI_Count.
 * Included where both are defined, as often as they are needed: there is no guard. */
#include "calls_collective.h"
#include "calls_io.h"
#include "calls_nonblocking.h"
#include "calls_objects.h"
#include "calls_onesided.h"
#include "calls_p2p.h"
