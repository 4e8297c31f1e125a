#include "app/commands/dead_letters_command.h"

#include "app/commands/blocking_ledger.h"
#include "ledger/ledger_messages.h"
#include "text/time_text.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

static const char USAGE[] =
    "usage: rollcall dead-letters --ledger sqlite:PATH [list | replay ID | replay all]\n";

static const char HELP[] =
    "\n"
    "Events that could not be delivered are kept as dead letters. The messages themselves are stored,\n"
    "and clients that sync get them. Stop the server that uses the file first.\n"
    "\n"
    "  list         shows each with its ID (CHAT:SEQUENCE), the time and the reason; the default\n"
    "  replay ID    puts one back into the outbox; the server delivers it after its next start\n"
    "  replay all   the same with all that list shows\n"
    "  --ledger URL the ledger: sqlite:PATH\n"
    "  --help       this text\n";

struct letters {
    struct blocking_ledger ledger;
    int status;
    size_t replayed;
};

static void report_letter_failure(const char *what, enum ledger_status status)
{
    fprintf(stderr, "rollcall dead-letters: %s: %s\n", what,
            status == LEDGER_NOT_FOUND ? "there is no such dead letter"
                                       : ledger_status_name(status));
}

/* ---- list ---- */

static void on_letters_listed(void *arg, const struct ledger_dead_letters_outcome *outcome)
{
    struct letters *letters = arg;
    if (outcome->status != LEDGER_OK) {
        report_letter_failure("list", outcome->status);
        return;
    }
    for (size_t i = 0; i < outcome->count; i++) {
        const struct ledger_dead_letter *letter = &outcome->letters[i];
        char time[TIME_TEXT_LEN];
        time_text_write(time, letter->created_at_ms);
        printf("%.*s:%llu\t%.*s\t%.*s\n", SLICE_FORMAT(letter->chat),
               (unsigned long long)letter->sequence, TIME_TEXT_LEN, time,
               SLICE_FORMAT(letter->reason));
    }
    letters->status = EXIT_OK;
}

/* ---- replay ---- */

static void on_letter_replayed(void *arg, const struct ledger_change_outcome *outcome)
{
    struct letters *letters = arg;
    if (outcome->status == LEDGER_OK) {
        letters->replayed++;
        return;
    }
    report_letter_failure("replay", outcome->status);
    letters->status = EXIT_FAILED;
}

static void on_letters_to_replay(void *arg, const struct ledger_dead_letters_outcome *outcome)
{
    struct letters *letters = arg;
    if (outcome->status != LEDGER_OK)
        report_letter_failure("list", outcome->status);
    else
        letters->status = EXIT_OK;
    for (size_t i = 0; i < outcome->count; i++)
        ledger_dead_letter_replay(&letters->ledger.client, outcome->letters[i].chat,
                                  outcome->letters[i].sequence, on_letter_replayed, letters);
}

/* A chat id may contain colons, so the last colon separates the sequence. */
static bool parse_letter_id(const char *id, struct slice *chat, uint64_t *sequence)
{
    const char *colon = strrchr(id, ':');
    char *end;
    if (!colon || colon == id)
        return false;
    errno = 0;
    *sequence = strtoull(colon + 1, &end, 10);
    *chat = (struct slice){id, (size_t)(colon - id)};
    return errno == 0 && end != colon + 1 && *end == '\0' && *sequence > 0;
}

static int replay_letters(struct letters *letters, const char *id)
{
    struct slice chat;
    uint64_t sequence;
    if (strcmp(id, "all") == 0) {
        ledger_dead_letters_list(&letters->ledger.client, 0, on_letters_to_replay, letters);
        blocking_ledger_wait(&letters->ledger);
    } else if (parse_letter_id(id, &chat, &sequence)) {
        letters->status = EXIT_OK;
        ledger_dead_letter_replay(&letters->ledger.client, chat, sequence, on_letter_replayed,
                                  letters);
        blocking_ledger_wait(&letters->ledger);
    } else {
        fprintf(stderr, "rollcall dead-letters: %s: expected CHAT:SEQUENCE, as list shows it\n",
                id);
        return EXIT_USAGE;
    }
    printf("%zu put back; the server delivers them after its next start\n", letters->replayed);
    return letters->status;
}

/* ---- the command ---- */

static int run_dead_letters(const char *url, const char *id)
{
    struct letters letters = {.status = EXIT_FAILED};
    if (!blocking_ledger_open(&letters.ledger, "dead-letters", url))
        return EXIT_FAILED;
    if (id) {
        letters.status = replay_letters(&letters, id);
    } else {
        ledger_dead_letters_list(&letters.ledger.client, 0, on_letters_listed, &letters);
        blocking_ledger_wait(&letters.ledger);
    }
    blocking_ledger_close(&letters.ledger);
    return letters.status;
}

int dead_letters_command(int argc, char **argv)
{
    static const struct option OPTIONS[] = {
        {"ledger", required_argument, NULL, 'l'}, {"help", no_argument, NULL, 'h'}, {0}};
    const char *url = NULL;
    int option;
    while ((option = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1) {
        if (option == 'h')
            return printf("%s%s", USAGE, HELP) < 0;
        if (option != 'l')
            return fputs(USAGE, stderr) < 0 ? EXIT_FAILED : EXIT_USAGE;
        url = optarg;
    }
    const char *action = optind < argc ? argv[optind] : "list";
    bool lists = strcmp(action, "list") == 0 && argc - optind <= 1;
    bool replays = strcmp(action, "replay") == 0 && argc - optind == 2;
    if (!url || (!lists && !replays)) {
        fputs(USAGE, stderr);
        return EXIT_USAGE;
    }
    return run_dead_letters(url, replays ? argv[optind + 1] : NULL);
}
