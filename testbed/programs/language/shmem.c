#include "report.h"

void shmem_init(void);
void shmem_finalize(void);
int shmem_n_pes(void);

int main(void)
{
    shmem_init(); /* which starts MPI */
    if (shmem_n_pes() > 0) print_world();
    shmem_finalize();
    return 0;
}
