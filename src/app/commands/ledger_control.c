#include "app/commands/ledger_control.h"

#include "app/commands/blocking_ledger.h"
#include "app/control/control_socket.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct direct_call {
    const char *command;
    int exit_status;
};

static void on_direct_call_done(void *arg, int exit_status, struct slice output, struct slice error)
{
    struct direct_call *call = arg;
    call->exit_status = exit_status;
    printf("%.*s", SLICE_FORMAT(output));
    if (error.len)
        fprintf(stderr, "rollcall %s: %.*s\n", call->command, SLICE_FORMAT(error));
}

static int run_direct_call(const char *url, const struct slice *arguments, size_t count,
                           const char *command)
{
    struct direct_call direct = {.command = command, .exit_status = 1};
    struct blocking_ledger ledger;
    struct random random;
    if (!blocking_ledger_open(&ledger, command, url))
        return 1;
    random_init_system(&random);
    struct control_call call = {.ledger = &ledger.client,
                                .random = &random,
                                .arguments = arguments,
                                .count = count,
                                .done = on_direct_call_done,
                                .arg = &direct};
    control_call_run(&call);
    blocking_ledger_wait(&ledger);
    blocking_ledger_close(&ledger);
    return direct.exit_status;
}

/* A key may be made before the server starts for the first time. An empty file is an empty database. */
static void make_empty_ledger(const char *data_dir, const char *path)
{
    mkdir(data_dir, S_IRWXU);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd >= 0)
        close(fd);
}

int ledger_control_run(const char *data_dir, const char *url, const struct slice *arguments,
                       size_t count)
{
    const size_t scheme_len = sizeof("sqlite:") - 1;
    char command[64], path[PATH_MAX], made_url[PATH_MAX + 16] = "";
    int exit_status;
    snprintf(command, sizeof(command), "%.*s", SLICE_FORMAT(arguments[0]));
    if (data_dir && control_socket_ask(data_dir, arguments, count, command, &exit_status))
        return exit_status;
    if (url && strncmp(url, "sqlite:", scheme_len) == 0) {
        snprintf(path, sizeof(path), "%s", url + scheme_len);
        if (control_socket_ask(dirname(path), arguments, count, command, &exit_status))
            return exit_status;
    }
    if (!url && data_dir) {
        snprintf(path, sizeof(path), "%s/ledger.db", data_dir);
        make_empty_ledger(data_dir, path);
        snprintf(made_url, sizeof(made_url), "sqlite:%s", path);
    }
    return run_direct_call(url ? url : made_url, arguments, count, command);
}
