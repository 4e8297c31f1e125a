#include "app/commands/webhooks_command.h"

#include "app/commands/ledger_control.h"
#include "app/control/control_call.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

enum { WEBHOOKS_EXIT_USAGE = 2 };

static const char USAGE[] =
    "usage: rollcall webhooks [list] [--data-dir DIR | --ledger URL]\n"
    "       rollcall webhooks replay [ID…] [--data-dir DIR | --ledger URL]\n";

static const char HELP[] =
    "\n"
    "Events that no endpoint has taken within webhooks.give_up_seconds are kept as dead letters. While the\n"
    "server runs, the command works through its control socket in the data directory; otherwise on the ledger.\n"
    "\n"
    "  list            id, time, type, queue and reason of each; the default\n"
    "  replay [ID…]    puts these back, or all, to be sent again\n"
    "  --data-dir DIR  of the server (default: ./rollcall-data)\n"
    "  --ledger URL    sqlite:PATH or dynamodb://REGION[?…]\n"
    "  --help          this text\n";

static int refuse_webhooks_usage(void)
{
    fputs(USAGE, stderr);
    return WEBHOOKS_EXIT_USAGE;
}

static int run_webhooks_action(int count, char **words, const char *data_dir, const char *url)
{
    struct slice arguments[CONTROL_ARGUMENTS_MAX] = {SLICE("webhooks"), SLICE("list")};
    bool replays = count > 0 && strcmp(words[0], "replay") == 0;
    bool lists = count == 0 || (count == 1 && strcmp(words[0], "list") == 0);
    if ((!replays && !lists) || count + 1 > CONTROL_ARGUMENTS_MAX)
        return refuse_webhooks_usage();
    for (int i = 0; i < count; i++)
        arguments[1 + i] = slice_of(words[i]);
    if (!url && !data_dir)
        data_dir = "./rollcall-data";
    return ledger_control_run(data_dir, url, arguments, count ? (size_t)count + 1 : 2);
}

int webhooks_command(int argc, char **argv)
{
    static const struct option OPTIONS[] = {{"data-dir", required_argument, NULL, 'd'},
                                            {"ledger", required_argument, NULL, 'l'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    const char *data_dir = NULL, *url = NULL;
    int option;
    while ((option = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1) {
        if (option == 'd')
            data_dir = optarg;
        else if (option == 'l')
            url = optarg;
        else if (option == 'h')
            return printf("%s%s", USAGE, HELP) < 0;
        else
            return refuse_webhooks_usage();
    }
    return run_webhooks_action(argc - optind, argv + optind, data_dir, url);
}
