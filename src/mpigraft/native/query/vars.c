/* mpigraft-vars: the control and performance variables that this MPI tells of through MPI_T.
 *
 *     mpigraft-vars [--init]
 *
 * One JSON line for the library, for each variable and each category, and one at the end: a list
 * without that one was cut short. With --init they are read after MPI_Init, when what an MPI knows
 * only then is there too. MPI_Init comes before MPI_T_init_thread: in the other order Open MPI 4.1
 * lists components that it has closed. One run for each list rather than one that looks twice: a
 * program that cannot be initialised here costs the second list only. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common/check.h"
#include "../common/json.h"
#include "mpi_t_names.h"

const char program_name[] = "mpigraft-vars";

#define FATAL ",\"fatal\":true"

/* ---------------------------------------------------------------- what each is */

static void print_choices(MPI_T_enum enumeration)
{
    static char name[NAME_ROOM];
    int count, length = sizeof name, value;
    if (enumeration == MPI_T_ENUM_NULL ||
        MPI_T_enum_get_info(enumeration, &count, name, &length) != MPI_SUCCESS)
        return;
    fputs(",\"choices\":[", stdout);
    for (int i = 0, printed = 0; i < count; i++) {
        length = sizeof name;
        if (MPI_T_enum_get_item(enumeration, i, &value, name, &length) != MPI_SUCCESS)
            continue;
        printf("%s[%d,", printed++ ? "," : "", value);
        json_string(stdout, name);
        putchar(']');
    }
    putchar(']');
}

/* What both kinds of variable have. */
struct variable {
    char name[NAME_ROOM], text[TEXT_ROOM];
    int name_length, text_length, verbosity, binding;
    MPI_Datatype datatype;
    MPI_T_enum enumeration;
};

static struct variable *blank(void)
{
    static struct variable variable;
    variable.name[0] = variable.text[0] = '\0';
    variable.name_length = sizeof variable.name;
    variable.text_length = sizeof variable.text;
    return &variable;
}

static void begin(const char *kind, int index, const struct variable *variable)
{
    printf("{\"mpigraft\":\"%s\",\"index\":%d,\"name\":", kind, index);
    json_string(stdout, variable->name);
    field("text", variable->text);
    field("type", type_of(variable->datatype).name);
    field("verbosity", word(VERBOSITIES, variable->verbosity));
    field("binding", word(BINDINGS, variable->binding));
    print_choices(variable->enumeration);
}

/* What a list is made of: lines of one kind. `readable` false: who reads its value dies. */
struct kind {
    int (*count)(int *count);
    void (*line)(int index, bool initialised, bool readable);
};

/* An index of nothing, as Open MPI leaves some, is passed over. */
static void control_line(int index, bool initialised, bool readable)
{
    struct variable *it = blank();
    int scope;
    bool there;
    if (MPI_T_cvar_get_info(index, it->name, &it->name_length, &it->verbosity, &it->datatype,
                            &it->enumeration, it->text, &it->text_length, &it->binding,
                            &scope) != MPI_SUCCESS)
        return;
    begin("control", index, it);
    field("scope", word(SCOPES, scope));
    struct type type = type_of(it->datatype);
    void *bound = object(it->binding, initialised, &there);
    if (!readable)
        fputs(FATAL, stdout);
    else if (there && type.form != OTHER)
        print_control(index, type, bound);
    puts("}");
}

/* Values are read after MPI_Init alone: before it they count nothing. */
static void performance_line(int index, bool initialised, bool readable)
{
    struct variable *it = blank();
    int class, readonly, continuous, atomic;
    bool there;
    if (MPI_T_pvar_get_info(index, it->name, &it->name_length, &it->verbosity, &class,
                            &it->datatype, &it->enumeration, it->text, &it->text_length,
                            &it->binding, &readonly, &continuous, &atomic) != MPI_SUCCESS)
        return;
    begin("performance", index, it);
    field("class", word(CLASSES, class));
    printf(",\"readonly\":%s,\"continuous\":%s", readonly ? "true" : "false",
           continuous ? "true" : "false");
    struct type type = type_of(it->datatype);
    void *bound = object(it->binding, initialised, &there);
    if (!readable)
        fputs(FATAL, stdout);
    else if (initialised && there && type.form != OTHER)
        print_performance(index, type, bound, continuous);
    puts("}");
}

static const struct kind KINDS[] = {
    {MPI_T_cvar_get_num, control_line},
    {MPI_T_pvar_get_num, performance_line},
};

/* ---------------------------------------------------------------- lines, by children */

static void flush(void)
{
    if (fflush(stdout) || ferror(stdout))
        DIE("cannot write the list");
}

/* Prints the lines of a kind from `first` on and says in `at` where it is. A line goes out whole
 * or not at all: the buffer of stdout has room for it. */
__attribute__((noreturn)) static void be_printer(const struct kind *kind, int first, int count,
                                                 bool initialised, volatile int *at)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        signal(fatal[i], SIG_DFL); /* an MPI's own handlers print a page */
    for (int i = first; i < count; i++) {
        *at = i;
        kind->line(i, initialised, true);
        if (fflush(stdout) || ferror(stdout))
            _exit(EXIT_RUNTIME);
    }
    _exit(0);
}

/* Open MPI 4.1 crashes over variables of components that it has closed, or of libraries that it
 * has not opened. So children read; where one dies, that variable is listed without its value and
 * another child goes on behind it. They send nothing, so the MPI of the parent stays whole. */
static void variables(const struct kind *kind, bool initialised)
{
    int count, status;
    volatile int *at = mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                            -1, 0);
    if (at == MAP_FAILED)
        DIE("no shared memory");
    OK(kind->count(&count));
    for (int first = 0; first < count; first = *at + 1) {
        flush();
        *at = first;
        pid_t child = fork();
        if (!child)
            be_printer(kind, first, count, initialised, at);
        while (child > 0 && waitpid(child, &status, 0) < 0)
            if (errno != EINTR)
                child = -1;
        if (child < 0)
            DIE("no child to read with: %s", strerror(errno));
        if (WIFEXITED(status) && WEXITSTATUS(status))
            DIE("cannot write the list");
        if (WIFEXITED(status))
            break;
        kind->line(*at, initialised, false);
    }
    munmap((void *)at, sizeof *at);
}

/* ---------------------------------------------------------------- categories */

static void print_members(const char *name, int category, int count,
                          int (*get)(int category, int count, int *indices))
{
    int *indices = need((size_t)count, sizeof *indices);
    if (get(category, count, indices) != MPI_SUCCESS)
        count = 0;
    printf(",\"%s\":[", name);
    for (int i = 0; i < count; i++)
        printf("%s%d", i ? "," : "", indices[i]);
    putchar(']');
    free(indices);
}

static void categories(void)
{
    struct variable *it = blank();
    int count;
    OK(MPI_T_category_get_num(&count));
    for (int i = 0; i < count; i++) {
        int control, performance, below;
        it = blank();
        if (MPI_T_category_get_info(i, it->name, &it->name_length, it->text, &it->text_length,
                                    &control, &performance, &below) != MPI_SUCCESS)
            continue;
        fputs("{\"mpigraft\":\"category\",\"name\":", stdout);
        json_string(stdout, it->name);
        field("text", it->text);
        print_members("control", i, control, MPI_T_category_get_cvars);
        print_members("performance", i, performance, MPI_T_category_get_pvars);
        puts("}");
    }
}

/* What is listed, with the library's own name for itself first. */
static void list(bool initialised)
{
    static char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    OK(MPI_Get_library_version(library, &length));
    printf("{\"mpigraft\":\"library\",\"initialised\":%s,\"version\":",
           initialised ? "true" : "false");
    json_string(stdout, library);
    puts("}");
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        variables(&KINDS[i], initialised);
    categories();
    puts("{\"mpigraft\":\"end\"}");
    flush();
}

int main(int argc, char **argv)
{
    static char buffer[8 * TEXT_ROOM];
    bool initialise = argc == 2 && !strcmp(argv[1], "--init");
    int provided;
    if (argc > 2 || (argc == 2 && !initialise)) {
        fputs("usage: mpigraft-vars [--init]\n", stderr);
        return EXIT_USAGE;
    }
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    if (initialise)
        OK(MPI_Init(&argc, &argv));
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    list(initialise);
    OK(MPI_T_finalize());
    if (initialise)
        OK(MPI_Finalize());
    return 0;
}
