/* What Fortran compilers make of `call MPI_INIT(code)`, by the symbol that WAY is defined as.
 * The optional code of mpi_f08 may be absent. */
#include <stddef.h>
#include <stdio.h>

void WAY();
void mpi_finalize_(int *code);

int main(void)
{
    int code = -1, provided, required = 1;
    (void)provided, (void)required;
#ifdef THREAD
    WAY(&required, &provided, &code);
#elif defined ABSENT
    WAY(NULL);
    code = 0;
#else
    WAY(&code);
#endif
    if (code)
        return 1;
    mpi_finalize_(&code);
    puts("done");
    return code;
}
