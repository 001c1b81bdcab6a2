! One program for the three interfaces. Without the modules, whose format is a compiler's, handles
! are integers, as each interface passes them. With DESCRIPTORS, module mpi_f08 of MPICH's relatives
! gets buffers as its compiler describes arrays.
#ifdef F08
#define mpi_init mpi_init_f08
#define mpi_comm_rank mpi_comm_rank_f08
#define mpi_comm_size mpi_comm_size_f08
#define mpi_get_library_version mpi_get_library_version_f08
#define mpi_finalize mpi_finalize_f08
#endif
program language
   implicit none
   external :: mpi_init, mpi_comm_rank, mpi_comm_size, mpi_get_library_version, mpi_finalize
#ifdef DESCRIPTORS
   interface
      subroutine mpi_bcast_f08ts(buffer, count, datatype, root, comm, error)
         type(*), dimension(..) :: buffer
         integer, intent(in) :: count, datatype, root, comm
         integer, intent(out), optional :: error
      end subroutine mpi_bcast_f08ts
   end interface
   integer :: grid(2, 2) = 0
#endif
   character(len=8192) :: library
   integer :: rank, ranks, length, error
   library = ' '
   call mpi_init(error)
   call mpi_comm_rank(WORLD, rank, error)
   call mpi_comm_size(WORLD, ranks, error)
   call mpi_get_library_version(library, length, error)
#ifdef DESCRIPTORS
   if (rank == 0) grid(2, :) = [1, 2]
   call mpi_bcast_f08ts(grid(2, :), 2, DESCRIPTORS, 0, WORLD, error)
   if (any(grid /= reshape([0, 1, 0, 2], [2, 2]))) stop 1
#endif
   length = index(library, new_line('a')) - 1
   if (length < 0) length = len_trim(library)
   print '(a,i0,a,i0,2a)', 'RANK ', rank, ' of SIZE ', ranks, ' LIBRARY ', library(1:length)
   flush (6)
   call mpi_finalize(error)
end program language
