/*
 * The command line of the two commands that run a server, `rollcall serve` and `rollcall ledger`.
 *
 * Every flag stands for a setting, so this only turns arguments into what config_load() reads. It
 * prints what there is to print (help, the effective configuration, errors, warnings), and goes on
 * only where there is a server to run.
 */
#ifndef ROLLCALL_APP_SERVE_OPTIONS_H
#define ROLLCALL_APP_SERVE_OPTIONS_H

#include "config/config.h"

enum serve_action {
    SERVE_RUN,        /* *out is loaded and fit to run; the caller frees it with config_free() */
    SERVE_EXIT_OK,    /* what was asked for was printed; *out is zeroed */
    SERVE_EXIT_ERROR, /* what is wrong was printed; *out is zeroed; exit with 2 */
};

enum { SERVE_EXIT_STATUS_USAGE = 2 };

/* Where to print, and the parts of the process that the configuration depends on. Borrowed. */
struct serve_surroundings {
    FILE *out;
    FILE *err;
    char *const *environment;
    const char *default_node_id;
};

/* Parses the arguments: argv[0] is the command's name, "serve" or "ledger". */
enum serve_action serve_options_parse(const struct serve_surroundings *surroundings, int argc,
                                      char **argv, struct config *out);

/* The command itself: parses in the surroundings of the process and, unless that was all there is to do, runs
 * with what is configured. Returns the exit status. The default node id is made of host name and process id, so
 * that two gateways never share one by accident. */
int serve_options_run(int argc, char **argv, int (*run)(const struct config *config));

/* What `rollcall --help` prints: every command in a few lines. */
void serve_options_write_usage(FILE *out);

#endif
