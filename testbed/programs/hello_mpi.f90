! The Fortran program of most sites: `use mpi`, integer handles. Says what hello.c says.
program hello
   use mpi
   implicit none
   character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: library
   integer :: rank, ranks, total, length, error

   call MPI_Init(error)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
   call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
   if (total /= ranks * (ranks - 1) / 2) call MPI_Abort(MPI_COMM_WORLD, 9, error)
   call MPI_Get_library_version(library, length, error)
   if (index(library, new_line('a')) > 0) length = index(library, new_line('a')) - 1
   print '(a,i0,a,i0,2a)', 'RANK ', rank, ' of SIZE ', ranks, ' LIBRARY ', library(1:length)
   call MPI_Finalize(error)
end program hello
