/*
 * The command line of the two commands that run a server, `rollcall serve` and `rollcall ledger`.
 *
 * Every flag stands for a setting, so this file only converts arguments to what config_load() reads. It also prints
 * help, the effective configuration, errors and warnings.
 */
#ifndef ROLLCALL_APP_SERVE_OPTIONS_H
#define ROLLCALL_APP_SERVE_OPTIONS_H

#include "config/config.h"

enum serve_action {
    SERVE_RUN,        /* *out is loaded and valid; the caller frees it with config_free() */
    SERVE_EXIT_OK,    /* the requested text is printed; *out is zeroed */
    SERVE_EXIT_ERROR, /* the error is printed; *out is zeroed; exit with 2 */
};

enum { SERVE_EXIT_STATUS_USAGE = 2 };

/* Where to print, and what the configuration takes from the process. Borrowed. */
struct serve_surroundings {
    FILE *out;
    FILE *err;
    char *const *environment;
    const char *default_node_id;
};

/* Parses the arguments: argv[0] is the command's name, "serve" or "ledger". */
enum serve_action serve_options_parse(const struct serve_surroundings *surroundings, int argc,
                                      char **argv, struct config *out);

/* Runs the server until it ends. Returns the exit status. */
typedef int (*serve_run)(const struct config *config);

/* The whole command: parses the arguments and, if there is a server to run, calls `run` with the configuration.
 * Returns the exit status. The default node id consists of host name and process id, so that two gateways
 * never share one by accident. */
int serve_options_run(int argc, char **argv, serve_run run);

/* What `rollcall --help` prints: every command in a few lines. */
void serve_options_write_usage(FILE *out);

#endif
