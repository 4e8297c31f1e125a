/* Chooses the command; each command parses its own arguments. */
#include "app/commands/aggregate_command.h"
#include "app/commands/check_command.h"
#include "app/commands/dead_letters_command.h"
#include "app/commands/fanout_command.h"
#include "app/commands/key_command.h"
#include "app/commands/ledger_command.h"
#include "app/commands/plan_command.h"
#include "app/commands/repair_command.h"
#include "app/commands/sim_command.h"
#include "app/commands/tables_command.h"
#include "app/commands/token_command.h"
#include "app/commands/topics_command.h"
#include "app/commands/webhooks_command.h"
#include "app/serve_options.h"
#include "app/server.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static int serve_command(int argc, char **argv)
{
    return serve_options_run(argc, argv, server_run);
}

static int help_command(int argc, char **argv)
{
    (void)argc, (void)argv;
    serve_options_write_usage(stdout);
    return 0;
}

static int version_command(int argc, char **argv)
{
    (void)argc, (void)argv;
    puts("rollcall " ROLLCALL_VERSION);
    return 0;
}

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
} COMMANDS[] = {
    {"check", check_command},
    {"repair", repair_command},
    {"dead-letters", dead_letters_command},
    {"webhooks", webhooks_command},
    {"key", key_command},
    {"tables", tables_command},
    {"topics", topics_command},
    {"serve", serve_command},
    {"ledger", ledger_command},
    {"fanout", fanout_command},
    {"aggregate", aggregate_command},
    {"token", token_command},
    {"plan", plan_command},
    {"sim", sim_command},
    {"help", help_command},
    {"--help", help_command},
    {"-h", help_command},
    {"version", version_command},
    {"--version", version_command},
    {"-V", version_command},
};

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); /* OpenSSL may write to a closed socket */
    if (argc < 2) {
        serve_options_write_usage(stderr);
        return SERVE_EXIT_STATUS_USAGE;
    }
    for (size_t i = 0; i < sizeof(COMMANDS) / sizeof(COMMANDS[0]); i++)
        if (strcmp(argv[1], COMMANDS[i].name) == 0)
            return COMMANDS[i].run(argc - 1, argv + 1);
    fprintf(stderr, "rollcall: unknown command %s (see rollcall --help)\n", argv[1]);
    return SERVE_EXIT_STATUS_USAGE;
}
