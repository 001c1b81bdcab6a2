/* The MPI behind what is preloaded: where the functions are that a program meant to call. */
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>

#include "next_mpi.h"

#if defined __x86_64__
#define FIRST_VERSION "GLIBC_2.2.5"
#elif defined __aarch64__
#define FIRST_VERSION "GLIBC_2.17"
#else
#error "which version of dlsym this architecture began with is not known here"
#endif

__attribute__((visibility("hidden"))) lookup *mpigraft_dlsym; /* the next one; read below */

static void *find_nothing(void *handle, const char *name)
{
    (void)handle, (void)name;
    return NULL;
}

/* The dlsym behind this one: glibc's, or that of another library which is preloaded. Since 2.34
 * there are two versions of it, for one function; the first is there in all. */
PLAIN lookup *next_dlsym(void)
{
    lookup *found = __atomic_load_n(&mpigraft_dlsym, __ATOMIC_ACQUIRE);
    if (found)
        return found;
    void *address = dlvsym(RTLD_NEXT, "dlsym", FIRST_VERSION);
    if (!address)
        address = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    found = address ? __extension__(lookup *)address : find_nothing;
    /* dlvsym sees only versions, which another library's dlsym has not. */
    if ((address = found(RTLD_NEXT, "dlsym")))
        found = __extension__(lookup *)address;
    __atomic_store_n(&mpigraft_dlsym, found, __ATOMIC_RELEASE);
    return found;
}

#if defined __x86_64__

__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym, @function\n"
        ".p2align 4\n"
        "dlsym:\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "pushq %rdi\n"
        ".cfi_adjust_cfa_offset 8\n"
        "pushq %rsi\n"
        ".cfi_adjust_cfa_offset 8\n"
        "subq $8, %rsp\n" /* the stack is aligned at a call */
        ".cfi_adjust_cfa_offset 8\n"
        "call mpigraft_taken\n"
        "addq $8, %rsp\n"
        ".cfi_adjust_cfa_offset -8\n"
        "popq %rsi\n"
        ".cfi_adjust_cfa_offset -8\n"
        "popq %rdi\n"
        ".cfi_adjust_cfa_offset -8\n"
        "testq %rax, %rax\n"
        "jnz 1f\n"
        "jmpq *mpigraft_dlsym(%rip)\n"
        "1: cmpq $-1, %rax\n" /* ABSENT */
        "jne 2f\n"
        "xorl %eax, %eax\n"
        "2: ret\n"
        ".cfi_endproc\n"
        ".size dlsym, . - dlsym\n");

#else

__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym, %function\n"
        ".p2align 4\n"
        "dlsym:\n"
        ".cfi_startproc\n"
        "hint #34\n" /* bti c */
        "stp x29, x30, [sp, #-32]!\n"
        ".cfi_def_cfa_offset 32\n"
        ".cfi_offset 29, -32\n"
        ".cfi_offset 30, -24\n"
        "mov x29, sp\n"
        "stp x0, x1, [sp, #16]\n"
        "bl mpigraft_taken\n"
        "mov x9, x0\n"
        "ldp x0, x1, [sp, #16]\n"
        "ldp x29, x30, [sp], #32\n"
        ".cfi_restore 30\n"
        ".cfi_restore 29\n"
        ".cfi_def_cfa_offset 0\n"
        "cbnz x9, 1f\n"
        "adrp x16, mpigraft_dlsym\n"
        "ldr x16, [x16, #:lo12:mpigraft_dlsym]\n"
        "br x16\n"
        "1: cmn x9, #1\n" /* ABSENT */
        "csel x0, xzr, x9, eq\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size dlsym, . - dlsym\n");

#endif

struct search {
    const char *name;
    void *found;
};

/* Python and other hosts of plug-ins load MPI where RTLD_NEXT does not look. */
static int look_into(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)size;
    struct search *search = argument;
    const char *base = strrchr(info->dlpi_name, '/');
    base = base ? base + 1 : info->dlpi_name;
    if (strncmp(base, "libmpi", 6) || !strncmp(base, "libmpigraft", 11))
        return 0;
    void *library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (library) {
        search->found = next_dlsym()(library, search->name);
        dlclose(library);
    }
    return search->found != NULL;
}

void *_Atomic origin;

void *real_address(const char *name)
{
    void *library = atomic_load(&origin);
    struct search search = {name, library ? next_dlsym()(library, name) : NULL};
    if (!search.found)
        search.found = next_dlsym()(RTLD_NEXT, name);
    if (!search.found)
        dl_iterate_phdr(look_into, &search);
    return search.found;
}

function real(const char *name)
{
    void *address = real_address(name);
    function result;
    memcpy(&result, &address, sizeof result);
    return result;
}

/* Whether `found`, which dlsym has under this name, is of a library that is preloaded, and no MPI
 * has it. The last look-up fails, so that dlerror says why. */
PLAIN bool is_absent(const char *name, const void *found)
{
    Dl_info where;
    const char *base = found && dladdr(found, &where) && where.dli_fname
                           ? strrchr(where.dli_fname, '/') : NULL;
    if (!base || strncmp(base, "/libmpigraft", 12) || real_address(name))
        return false;
    return !next_dlsym()(RTLD_NEXT, name);
}

/* An object of Open MPI's, such as the world's communicator; NULL: it is another MPI. */
void *open_mpi_object(const char *name)
{
    void *library = atomic_load(&origin);
    struct search search = {name, next_dlsym()(library ? library : RTLD_DEFAULT, name)};
    if (!search.found && !library)
        dl_iterate_phdr(look_into, &search);
    return search.found;
}
