#include "app/commands/dead_letters_command.h"

#include "app/commands/blocking_ledger.h"
#include "feed/kafka/kafka_letters.h"
#include "ledger/ledger_messages.h"
#include "log/log.h"
#include "text/time_text.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

static const char USAGE[] =
    "usage: rollcall dead-letters --ledger sqlite:PATH [list | replay ID | replay all]\n"
    "       rollcall dead-letters --feed kafka://HOST:PORT [--config FILE] [--set KEY=VALUE] [list | …]\n";

static const char HELP[] =
    "\n"
    "Events that could not be delivered are kept as dead letters. The messages themselves are stored,\n"
    "and clients that sync get them. With --ledger, stop the server that uses the file first; with\n"
    "--feed, nothing has to be stopped.\n"
    "\n"
    "  list         shows each with its ID, the time and the reason; the default\n"
    "  replay ID    puts one back: into the outbox, from where the server delivers it after its next\n"
    "               start, or into the topic of the events, from where it is delivered at once\n"
    "  replay all   the same with all that list shows\n"
    "  --ledger URL the ledger: sqlite:PATH; an ID is CHAT:SEQUENCE\n"
    "  --feed URL   the brokers; an ID is PARTITION:OFFSET\n"
    "  --config FILE, --set KEY=VALUE\n"
    "               other settings of the feed: fanout.dlq.topic, durability.kafka.*\n"
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

static void print_letter_time_and_reason(int64_t at_ms, struct slice reason)
{
    char time[TIME_TEXT_LEN];
    time_text_write(time, at_ms);
    printf("\t%.*s\t%.*s\n", TIME_TEXT_LEN, time, SLICE_FORMAT(reason));
}

static void on_letters_listed(void *arg, const struct ledger_dead_letters_outcome *outcome)
{
    struct letters *letters = arg;
    if (outcome->status != LEDGER_OK) {
        report_letter_failure("list", outcome->status);
        return;
    }
    for (size_t i = 0; i < outcome->count; i++) {
        const struct ledger_dead_letter *letter = &outcome->letters[i];
        printf("%.*s:%llu", SLICE_FORMAT(letter->chat), (unsigned long long)letter->sequence);
        print_letter_time_and_reason(letter->created_at_ms, letter->reason);
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

/* A chat id may contain colons, so the last colon separates the number. */
static bool parse_letter_id(const char *id, struct slice *front, uint64_t *number)
{
    const char *colon = strrchr(id, ':');
    char *end;
    if (!colon || colon == id)
        return false;
    errno = 0;
    *number = strtoull(colon + 1, &end, 10);
    *front = (struct slice){id, (size_t)(colon - id)};
    return errno == 0 && end != colon + 1 && *end == '\0';
}

static int replay_letters(struct letters *letters, const char *id)
{
    struct slice chat;
    uint64_t sequence;
    if (strcmp(id, "all") == 0) {
        ledger_dead_letters_list(&letters->ledger.client, 0, on_letters_to_replay, letters);
        blocking_ledger_wait(&letters->ledger);
    } else if (parse_letter_id(id, &chat, &sequence) && sequence > 0) {
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

/* ---- Kafka ---- */

struct kafka_letters_replay {
    struct kafka_letters *letters;
    int32_t partition; /* -1: all */
    int64_t offset;
    size_t replayed;
    bool failed;
    char error[KAFKA_LETTERS_ERROR_TEXT_MAX];
};

static void print_kafka_letter(void *arg, const struct kafka_letter *letter)
{
    (void)arg;
    printf("%d:%lld", letter->partition, (long long)letter->offset);
    print_letter_time_and_reason(letter->stored_at_ms, letter->reason);
}

static void replay_kafka_letter(void *arg, const struct kafka_letter *letter)
{
    struct kafka_letters_replay *replay = arg;
    bool is_meant = replay->partition < 0 ||
                    (replay->partition == letter->partition && replay->offset == letter->offset);
    if (!is_meant || replay->failed)
        return;
    replay->failed = !kafka_letters_replay(replay->letters, letter, replay->error);
    replay->replayed += !replay->failed;
}

static bool parse_kafka_letter_id(const char *id, struct kafka_letters_replay *replay)
{
    struct slice partition;
    uint64_t offset;
    char *end;
    if (!parse_letter_id(id, &partition, &offset))
        return false;
    errno = 0;
    long number = strtol(id, &end, 10);
    replay->partition = (int32_t)number;
    replay->offset = (int64_t)offset;
    return errno == 0 && end == partition.data + partition.len && number >= 0 &&
           number <= INT32_MAX;
}

static int report_kafka_failure(const char *error)
{
    fprintf(stderr, "rollcall dead-letters: %s\n", error);
    return EXIT_FAILED;
}

static int list_kafka_letters(struct kafka_letters *letters)
{
    char error[KAFKA_LETTERS_ERROR_TEXT_MAX];
    int64_t more = kafka_letters_each(letters, print_kafka_letter, NULL, error);
    if (more < 0)
        return report_kafka_failure(error);
    if (more > 0)
        fprintf(stderr, "rollcall dead-letters: %lld more are not shown\n", (long long)more);
    return EXIT_OK;
}

static int replay_kafka_letters(struct kafka_letters *letters, const char *id)
{
    struct kafka_letters_replay replay = {.letters = letters, .partition = -1};
    if (strcmp(id, "all") != 0 && !parse_kafka_letter_id(id, &replay)) {
        fprintf(stderr, "rollcall dead-letters: %s: expected PARTITION:OFFSET, as list shows it\n",
                id);
        return EXIT_USAGE;
    }
    int64_t more = kafka_letters_each(letters, replay_kafka_letter, &replay, replay.error);
    if (more < 0 || replay.failed || !kafka_letters_flush(letters, replay.error))
        return report_kafka_failure(replay.error);
    if (replay.partition >= 0 && replay.replayed == 0)
        return report_kafka_failure("replay: there is no such dead letter");
    printf("%zu put back; fan-out delivers them now\n", replay.replayed);
    if (more > 0 && replay.partition < 0)
        printf("%lld more are left: repeat the command\n", (long long)more);
    return EXIT_OK;
}

/* `id` is NULL: lists them. */
static int run_kafka_dead_letters(const struct config_inputs *inputs, const char *id)
{
    struct config config;
    struct config_error wrong;
    char error[KAFKA_LETTERS_ERROR_TEXT_MAX];
    if (!config_load(&config, inputs, &wrong)) {
        fprintf(stderr, "rollcall dead-letters: %s\n", wrong.text);
        return EXIT_USAGE;
    }
    log_init(LOG_LEVEL_ERROR, false);
    struct kafka_letters *letters = kafka_letters_open(&config, error);
    int status = EXIT_FAILED;
    if (!letters)
        report_kafka_failure(error);
    else
        status = id ? replay_kafka_letters(letters, id) : list_kafka_letters(letters);
    if (letters)
        kafka_letters_close(&letters);
    config_free(&config);
    return status;
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

/* The arguments of the command. The array has capacity for every argument. */
struct letters_line {
    const char *ledger;
    const char *feed;
    const char *file;
    const char **assignments;
    size_t assignment_count;
    bool helps;
    bool wrong;
};

static void parse_letters_options(struct letters_line *line, int argc, char **argv)
{
    static const struct option OPTIONS[] = {
        {"ledger", required_argument, NULL, 'l'}, {"feed", required_argument, NULL, 'f'},
        {"config", required_argument, NULL, 'c'}, {"set", required_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},         {0}};
    int option;
    while ((option = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1) {
        if (option == 'l')
            line->ledger = optarg;
        else if (option == 'f')
            line->feed = optarg;
        else if (option == 'c')
            line->file = optarg;
        else if (option == 's')
            line->assignments[line->assignment_count++] = optarg;
        else if (option == 'h')
            line->helps = true;
        else
            line->wrong = true;
    }
}

static int run_letters_line(const struct letters_line *line, int argc, char **argv)
{
    const char *action = optind < argc ? argv[optind] : "list";
    bool lists = strcmp(action, "list") == 0 && argc - optind <= 1;
    bool replays = strcmp(action, "replay") == 0 && argc - optind == 2;
    const char *id = replays ? argv[optind + 1] : NULL;
    struct config_flag flag = {.flag = "--feed", .setting = "feed.url", .value = line->feed};
    struct config_inputs inputs = {.file = line->file,
                                   .environment = environ,
                                   .assignments = line->assignments,
                                   .assignment_count = line->assignment_count,
                                   .flags = &flag,
                                   .flag_count = 1};
    if (line->helps)
        return printf("%s%s", USAGE, HELP) < 0;
    if (line->wrong || (!line->ledger == !line->feed) || (!lists && !replays)) {
        fputs(USAGE, stderr);
        return EXIT_USAGE;
    }
    return line->feed ? run_kafka_dead_letters(&inputs, id) : run_dead_letters(line->ledger, id);
}

int dead_letters_command(int argc, char **argv)
{
    struct letters_line line = {.assignments = calloc((size_t)argc, sizeof(char *))};
    if (!line.assignments)
        return report_kafka_failure("out of memory");
    parse_letters_options(&line, argc, argv);
    int status = run_letters_line(&line, argc, argv);
    free(line.assignments);
    return status;
}
