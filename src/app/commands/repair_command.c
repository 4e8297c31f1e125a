#include "app/commands/repair_command.h"

#include "app/commands/blocking_ledger.h"
#include "ledger/ledger_messages.h"

#include <getopt.h>
#include <stdio.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

static const char USAGE[] = "usage: rollcall repair --ledger URL [--dry-run] CHAT\n";

static const char HELP[] =
    "\n"
    "Restores the counter of a halted chat, that is, one whose counter is missing or does not match its\n"
    "messages. Prints what it finds and what it does. Stop the server that uses a SQLite file first;\n"
    "on DynamoDB the servers go on.\n"
    "\n"
    "  --ledger URL  the ledger: sqlite:PATH or dynamodb://REGION[?…]\n"
    "  --dry-run     only print what it would do\n"
    "  --help        this text\n";

struct repair {
    const char *chat;
    bool dry_run;
    int status;
};

static void print_repair(const struct repair *repair, const struct ledger_repair_outcome *outcome)
{
    unsigned long long highest = (unsigned long long)outcome->highest_sequence;
    printf("chat %s: ", repair->chat);
    if (outcome->counter_missing)
        printf("the counter is missing");
    else
        printf("the counter is %llu", (unsigned long long)outcome->counter);
    printf(", the highest message %llu: %s\n", highest,
           outcome->needed ? "halted" : "in order, nothing to do");
    if (!outcome->needed)
        return;
    if (repair->dry_run)
        printf("would set the counter to %llu\n", highest);
    else
        printf("the counter is set to %llu; the next message gets %llu\n", highest, highest + 1);
}

static void on_chat_repaired(void *arg, const struct ledger_repair_outcome *outcome)
{
    struct repair *repair = arg;
    if (outcome->status != LEDGER_OK) {
        fprintf(stderr, "rollcall repair: %s: %s\n", repair->chat,
                outcome->status == LEDGER_NOT_FOUND ? "there is no such chat"
                                                    : ledger_status_name(outcome->status));
        return;
    }
    print_repair(repair, outcome);
    repair->status = EXIT_OK;
}

int repair_command(int argc, char **argv)
{
    static const struct option OPTIONS[] = {{"ledger", required_argument, NULL, 'l'},
                                            {"dry-run", no_argument, NULL, 'n'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    struct repair repair = {.status = EXIT_FAILED};
    const char *url = NULL;
    int option;
    while ((option = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1) {
        if (option == 'l')
            url = optarg;
        else if (option == 'n')
            repair.dry_run = true;
        else if (option == 'h')
            return printf("%s%s", USAGE, HELP) < 0;
        else
            return fputs(USAGE, stderr) < 0 ? EXIT_FAILED : EXIT_USAGE;
    }
    if (!url || argc - optind != 1) {
        fputs(USAGE, stderr);
        return EXIT_USAGE;
    }
    repair.chat = argv[optind];
    struct blocking_ledger ledger;
    if (!blocking_ledger_open(&ledger, "repair", url))
        return EXIT_FAILED;
    ledger_chat_repair(&ledger.client, slice_of(repair.chat), !repair.dry_run, on_chat_repaired,
                       &repair);
    blocking_ledger_wait(&ledger);
    blocking_ledger_close(&ledger);
    return repair.status;
}
