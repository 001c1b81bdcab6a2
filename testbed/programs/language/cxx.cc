// Needs a function of MPI's own C++ bindings, which Open MPI 5 and MPICH 5 no longer have.
extern "C" {
#include "report.h"
void binding(void) __asm__(BINDING);
}

int main(int argc, char **argv)
{
    void (*volatile bound)(void) = binding;
    MPI_Init(&argc, &argv);
    if (bound) print_world();
    MPI_Finalize();
    return 0;
}
