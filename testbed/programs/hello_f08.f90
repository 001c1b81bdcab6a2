! The same with `use mpi_f08`, whose handles are types and whose bindings are a library apart.
program hello
   use mpi_f08
   implicit none
   character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: library
   type(MPI_Comm) :: world
   integer :: rank, ranks, total, length

   call MPI_Init()
   world = MPI_COMM_WORLD
   call MPI_Comm_rank(world, rank)
   call MPI_Comm_size(world, ranks)
   call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, world)
   if (total /= ranks * (ranks - 1) / 2) call MPI_Abort(world, 9)
   call MPI_Get_library_version(library, length)
   if (index(library, new_line('a')) > 0) length = index(library, new_line('a')) - 1
   print '(a,i0,a,i0,2a)', 'RANK ', rank, ' of SIZE ', ranks, ' LIBRARY ', library(1:length)
   call MPI_Finalize()
end program hello
