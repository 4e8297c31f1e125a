#include "app/commands/sim_command.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int sim_command(int argc, char **argv)
{
    static const char NAME[] = "rollcall-sim";
    char path[PATH_MAX + sizeof(NAME)];
    ssize_t len = readlink("/proc/self/exe", path, PATH_MAX);
    (void)argc;
    if (len > 0) {
        path[len] = '\0';
        memcpy(strrchr(path, '/') + 1, NAME,
               sizeof(NAME)); /* the path is absolute, and there is space */
        execv(path, argv);
    }
    fprintf(stderr,
            "rollcall sim: no %s beside this program: it is built where Lua 5.1 is installed "
            "(liblua5.1-0-dev)\n",
            NAME);
    return 1;
}
