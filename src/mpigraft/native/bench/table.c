/* The table of benchmarks: who takes part, what it measures, and the functions that make it. */
#include "collectives.h"
#include "measure.h"
#include "onesided.h"
#include "persistent.h"
#include "pt2pt.h"
#include "run.h"

/* A collective that is started and waited for, and one that is made ready once. OSU has no tables
 * of some kinds, or other neighbours: then `title` is TITLED_NOT. */
#define TITLED(kind, title) "MPI " kind title " Latency"
#define TITLED_NOT(kind, title) NULL
#define STARTED_ROW(name, title, TITLE, traits, setup)                                             \
    {"i" #name, TITLE("Non-blocking ", title), EVERYONE, LATENCY, (traits) | OVERLAPS,             \
     setup, i##name, {NO_CALL}}
#define READY_ROW(name, title, TITLE, traits, setup, added)                                        \
    {#name "_persistent", TITLE("Persistent ", title), EVERYONE, LATENCY, (traits) | PERSISTENT,   \
     setup, name##_again, {NO_CALL}, ready_##name, added}
#define NEIGHBOR_ROW(name, traits, setup)                                                          \
    {#name, NULL, EVERYONE, LATENCY, (traits) | NEIGHBORS, setup, name, {NO_CALL},                 \
     meet_neighbors},                                                                \
    {"i" #name, NULL, EVERYONE, LATENCY, (traits) | NEIGHBORS | OVERLAPS, setup, i##name,          \
     {NO_CALL}, meet_neighbors}

/* Most rows end with the calls: they have nothing to open and need nothing that MPI-4 added. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

const struct benchmark BENCHMARKS[] = {
    {"latency", "MPI Latency", PAIR, LATENCY, HALVES, one_each_way, ping_pong, {SEND, RECV}},
    {"bw", "MPI Bandwidth", PAIR, BANDWIDTH, WINDOWED, window_one_way, stream, {ISEND, IRECV}},
    {"bibw", "MPI Bi-Directional Bandwidth", PAIR, BANDWIDTH, WINDOWED | BOTH_WAYS,
     window_both_ways, stream_both_ways, {ISEND, IRECV}},
    {"multi_lat", "MPI Multi Latency", PAIRS, LATENCY, HALVES,
     one_each_way, ping_pong, {SEND, RECV}},
    {"mbw_mr", "MPI Multiple Bandwidth / Message Rate", PAIRS, BANDWIDTH_AND_RATE, WINDOWED,
     window_one_way, stream, {ISEND, IRECV}},
    {"pairs", NULL, HOSTS, LATENCY, SIZELESS, nothing, NULL, {NO_CALL}},
    {"barrier", "MPI Barrier Latency", EVERYONE, LATENCY, SIZELESS, nothing, barrier, {NO_CALL}},
    {"bcast", "MPI Broadcast Latency", EVERYONE, LATENCY, ROTATES_IN_PLACE,
     from_root, bcast, {BCAST}},
    {"allreduce", "MPI Allreduce Latency", EVERYONE, LATENCY, REDUCES | IN_PLACE_SUM, sum,
     allreduce, {ALLREDUCE}},
    {"reduce", "MPI Reduce Latency", EVERYONE, LATENCY, REDUCES | ROTATES | IN_PLACE_SUM, sum,
     reduce, {REDUCE}},
    {"gather", "MPI Gather Latency", EVERYONE, LATENCY, ROTATES | IN_PLACE_OWN, one_to_root,
     gather, {GATHER}},
    {"gatherv", "MPI Gatherv Latency", EVERYONE, LATENCY, ROTATES | COUNTED | IN_PLACE_OWN,
     one_to_root, gatherv, {GATHERV}},
    {"scatter", "MPI Scatter Latency", EVERYONE, LATENCY, IN_PLACE_ROOT, one_from_root, scatter,
     {SCATTER}},
    {"scatterv", "MPI Scatterv Latency", EVERYONE, LATENCY, COUNTED | IN_PLACE_ROOT,
     one_from_root, scatterv, {SCATTERV}},
    {"allgather", "MPI Allgather Latency", EVERYONE, LATENCY, IN_PLACE_OWN,
     one_to_root, allgather, {ALLGATHER}},
    {"allgatherv", "MPI Allgatherv Latency", EVERYONE, LATENCY, COUNTED | IN_PLACE_OWN,
     one_to_root, allgatherv, {ALLGATHERV}},
    {"alltoall", "MPI All-to-All Personalized Exchange Latency", EVERYONE, LATENCY, IN_PLACE_SWAP,
     one_between_all, alltoall, {ALLTOALL}},
    {"alltoallv", "MPI All-to-Allv Personalized Exchange Latency", EVERYONE, LATENCY,
     COUNTED | IN_PLACE_SWAP,
     one_between_all, alltoallv, {ALLTOALLV}},
    {"reduce_scatter", "MPI Reduce_scatter Latency", EVERYONE, LATENCY, REDUCES,
     sum_in_portions, reduce_scatter, {NO_CALL}},
    {"reduce_scatter_block", NULL, EVERYONE, LATENCY, REDUCES,
     sum_in_blocks, reduce_scatter_block, {NO_CALL}},
    {"alltoallw", "MPI All-to-Allw Personalized Exchange Latency", EVERYONE, LATENCY,
     COUNTED | IN_PLACE_SWAP | BYTE_PLACES, one_between_all, alltoallw, {NO_CALL}},
    {"put_lat", "MPI_Put Latency", PAIR, LATENCY, PUTS, exposed_window, put, {PUT}},
    {"put_bw", "MPI_Put Bandwidth", PAIR, BANDWIDTH, PUTS | WINDOWED, exposed_window, put, {PUT}},
    {"get_lat", "MPI_Get latency", PAIR, LATENCY, GETS, exposed_window, get, {GET}},
    {"get_bw", "MPI_Get Bandwidth", PAIR, BANDWIDTH, GETS | WINDOWED, exposed_window, get, {GET}},
    {"acc_lat", "MPI_Accumulate latency", PAIR, LATENCY, PUTS | ACCUMULATES,
     number_of_both, accumulate, {NO_CALL}},
    {"get_acc_lat", "MPI_Get_accumulate latency", PAIR, LATENCY, PUTS | ACCUMULATES | FETCHES,
     number_of_both, get_accumulate, {NO_CALL}},
    {"fop_lat", "MPI_Fetch_and_op latency", PAIR, LATENCY,
     PUTS | ACCUMULATES | FETCHES | ONE_NUMBER, number_of_both, fetch_and_op, {NO_CALL}},
    {"cas_lat", "MPI_Compare_and_swap latency", PAIR, LATENCY, PUTS | SWAPS | FETCHES | ONE_NUMBER,
     number_of_both, compare_and_swap, {NO_CALL}},
    {"latency_persistent", "MPI Persistent Latency", PAIR, LATENCY, HALVES | PERSISTENT,
     one_each_way, ping_pong_again, {NO_CALL}, ready_both_ways},
    {"bw_persistent", "MPI Persistent Bandwidth", PAIR, BANDWIDTH, WINDOWED | PERSISTENT,
     window_one_way, stream_again, {NO_CALL}, ready_one_way},
    {"bibw_persistent", "MPI Persistent Bi-Directional Bandwidth", PAIR, BANDWIDTH,
     WINDOWED | BOTH_WAYS | PERSISTENT, window_both_ways, stream_both_ways_again, {NO_CALL},
     ready_both_ways},
    {"partitioned_latency", NULL, PAIR, LATENCY, HALVES | PARTITIONED,
     one_each_way, partitioned_ping_pong, {NO_CALL}, ready_partitions, PSEND_INIT},
    {"latency_mt", NULL, PAIR, LATENCY, HALVES | THREADED, one_for_each_thread, NULL,
     {SEND, RECV}},
    STARTED_ROW(barrier, "Barrier", TITLED, SIZELESS, nothing),
    STARTED_ROW(bcast, "Broadcast", TITLED, ROTATES_IN_PLACE, from_root),
    STARTED_ROW(allreduce, "Allreduce", TITLED, REDUCES | IN_PLACE_SUM, sum),
    STARTED_ROW(reduce, "Reduce", TITLED, REDUCES | ROTATES | IN_PLACE_SUM, sum),
    STARTED_ROW(reduce_scatter, "Reduce_scatter", TITLED, REDUCES, sum_in_portions),
    STARTED_ROW(reduce_scatter_block, "", TITLED_NOT, REDUCES, sum_in_blocks),
    STARTED_ROW(gather, "Gather", TITLED, ROTATES | IN_PLACE_OWN, one_to_root),
    STARTED_ROW(gatherv, "Gatherv", TITLED, ROTATES | COUNTED | IN_PLACE_OWN, one_to_root),
    STARTED_ROW(scatter, "Scatter", TITLED, IN_PLACE_ROOT, one_from_root),
    STARTED_ROW(scatterv, "Scatterv", TITLED, COUNTED | IN_PLACE_ROOT, one_from_root),
    STARTED_ROW(allgather, "Allgather", TITLED, IN_PLACE_OWN, one_to_root),
    STARTED_ROW(allgatherv, "Allgatherv", TITLED, COUNTED | IN_PLACE_OWN, one_to_root),
    STARTED_ROW(alltoall, "All-to-All", TITLED, IN_PLACE_SWAP, one_between_all),
    STARTED_ROW(alltoallv, "All-to-Allv", TITLED, COUNTED | IN_PLACE_SWAP, one_between_all),
    STARTED_ROW(alltoallw, "All-to-Allw", TITLED, COUNTED | IN_PLACE_SWAP | BYTE_PLACES,
                one_between_all),
    READY_ROW(barrier, "Barrier", TITLED, SIZELESS, nothing, BARRIER_INIT),
    READY_ROW(bcast, "Broadcast", TITLED, ROTATES_IN_PLACE, from_root, BCAST_INIT),
    READY_ROW(allreduce, "Allreduce", TITLED, REDUCES | IN_PLACE_SUM, sum, ALLREDUCE_INIT),
    READY_ROW(reduce, "Reduce", TITLED, REDUCES | ROTATES | IN_PLACE_SUM, sum, REDUCE_INIT),
    READY_ROW(reduce_scatter, "Reduce_scatter", TITLED, REDUCES,
              sum_in_portions, REDUCE_SCATTER_INIT),
    READY_ROW(reduce_scatter_block, "", TITLED_NOT, REDUCES,
              sum_in_blocks, REDUCE_SCATTER_BLOCK_INIT),
    READY_ROW(gather, "Gather", TITLED, ROTATES | IN_PLACE_OWN, one_to_root, GATHER_INIT),
    READY_ROW(gatherv, "Gatherv", TITLED, ROTATES | COUNTED | IN_PLACE_OWN,
              one_to_root, GATHERV_INIT),
    READY_ROW(scatter, "Scatter", TITLED, IN_PLACE_ROOT, one_from_root, SCATTER_INIT),
    READY_ROW(scatterv, "Scatterv", TITLED, COUNTED | IN_PLACE_ROOT, one_from_root, SCATTERV_INIT),
    READY_ROW(allgather, "Allgather", TITLED, IN_PLACE_OWN, one_to_root, ALLGATHER_INIT),
    READY_ROW(allgatherv, "Allgatherv", TITLED, COUNTED | IN_PLACE_OWN,
              one_to_root, ALLGATHERV_INIT),
    READY_ROW(alltoall, "All-to-All", TITLED, IN_PLACE_SWAP, one_between_all, ALLTOALL_INIT),
    READY_ROW(alltoallv, "All-to-Allv", TITLED, COUNTED | IN_PLACE_SWAP,
              one_between_all, ALLTOALLV_INIT),
    READY_ROW(alltoallw, "All-to-Allw", TITLED, COUNTED | IN_PLACE_SWAP | BYTE_PLACES,
              one_between_all, ALLTOALLW_INIT),
    NEIGHBOR_ROW(neighbor_allgather, 0, one_to_neighbors),
    NEIGHBOR_ROW(neighbor_allgatherv, COUNTED, one_to_neighbors),
    NEIGHBOR_ROW(neighbor_alltoall, 0, one_between_neighbors),
    NEIGHBOR_ROW(neighbor_alltoallv, COUNTED, one_between_neighbors),
    NEIGHBOR_ROW(neighbor_alltoallw, COUNTED | BYTE_PLACES, one_between_neighbors),
    {"init_time", "MPI Init", STARTUP, INIT_TIME, SIZELESS, nothing, NULL, {NO_CALL}},
    {"launch_time", NULL, STARTUP, LAUNCH_TIME, SIZELESS, nothing, NULL, {NO_CALL}},
    {"memory", NULL, STARTUP, MEMORY, SIZELESS, nothing, NULL, {NO_CALL}},
};

#pragma GCC diagnostic pop

const int BENCHMARK_COUNT = sizeof BENCHMARKS / sizeof *BENCHMARKS;
