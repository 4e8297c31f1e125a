#include "app/commands/dead_letters_command.h"

#include "app/commands/ledger_control.h"
#include "app/control/control_letters.h"
#include "feed/kafka/kafka_letters.h"
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
    "usage: rollcall dead-letters [list] [--data-dir DIR | --ledger URL]\n"
    "       rollcall dead-letters replay [ID… | all] [--data-dir DIR | --ledger URL]\n"
    "       rollcall dead-letters --feed kafka://HOST:PORT [--config FILE] [--set KEY=VALUE]\n"
    "                [list | replay [ID | all] | drop [ID | all]]\n";

static const char HELP[] =
    "\n"
    "Events that could not be delivered are kept as dead letters. The messages themselves are stored, and\n"
    "clients that sync get them. While the server runs, the command works through its control socket in the\n"
    "data directory; otherwise on the ledger. With --feed nothing has to be stopped.\n"
    "\n"
    "  list            shows each with its ID, the time and the reason; the default\n"
    "  replay [ID…]    puts these back, or all: into the outbox, from where the server delivers them within\n"
    "                  seconds or after its next start; or into the topic, from where they go at once\n"
    "  drop [ID]       with --feed: removes this one for ever, or all; one alone only if it is the oldest\n"
    "                  of its partition\n"
    "  --data-dir DIR  of the server (default: ./rollcall-data)\n"
    "  --ledger URL    sqlite:PATH or dynamodb://REGION[?…]; an ID is CHAT:SEQUENCE\n"
    "  --feed URL      the brokers; an ID is PARTITION:OFFSET\n"
    "  --config FILE, --set KEY=VALUE\n"
    "                  other settings of the feed: fanout.dlq.topic, durability.kafka.*\n"
    "  --help          this text\n";

static void print_letter_time_and_reason(int64_t at_ms, struct slice reason)
{
    char time[TIME_TEXT_LEN];
    time_text_write(time, at_ms);
    printf("\t%.*s\t%.*s\n", TIME_TEXT_LEN, time, SLICE_FORMAT(reason));
}

/* ---- Kafka ---- */

struct kafka_letters_replay {
    struct kafka_letters *letters;
    bool drops;        /* rather than put back */
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
    replay->failed = !(replay->drops ? kafka_letters_drop : kafka_letters_replay)(
        replay->letters, letter, replay->error);
    replay->replayed += !replay->failed;
}

static bool parse_kafka_letter_id(const char *id, struct kafka_letters_replay *replay)
{
    char *end, *offset_end;
    errno = 0;
    long number = strtol(id, &end, 10);
    long long offset = *end == ':' ? strtoll(end + 1, &offset_end, 10) : -1;
    replay->partition = (int32_t)number;
    replay->offset = offset;
    return errno == 0 && number >= 0 && number <= INT32_MAX && offset >= 0 && end[1] >= '0' &&
           end[1] <= '9' && *offset_end == '\0';
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

static int replay_kafka_letters(struct kafka_letters *letters, const char *id, bool drops)
{
    struct kafka_letters_replay replay = {.letters = letters, .drops = drops, .partition = -1};
    if (strcmp(id, "all") != 0 && !parse_kafka_letter_id(id, &replay)) {
        fprintf(stderr, "rollcall dead-letters: %s: expected PARTITION:OFFSET, as list shows it\n",
                id);
        return EXIT_USAGE;
    }
    int64_t more = kafka_letters_each(letters, replay_kafka_letter, &replay, replay.error);
    if (more < 0 || replay.failed || !kafka_letters_flush(letters, replay.error))
        return report_kafka_failure(replay.error);
    if (replay.partition >= 0 && replay.replayed == 0)
        return report_kafka_failure("there is no such dead letter");
    printf(drops ? "%zu dropped\n" : "%zu put back; fan-out delivers them now\n", replay.replayed);
    if (more > 0 && replay.partition < 0)
        printf("%lld more are left: repeat the command\n", (long long)more);
    return EXIT_OK;
}

/* `id` is NULL: lists them. */
static int run_kafka_dead_letters(const struct config_inputs *inputs, const char *id, bool drops)
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
        status = id ? replay_kafka_letters(letters, id, drops) : list_kafka_letters(letters);
    if (letters)
        kafka_letters_close(&letters);
    config_free(&config);
    return status;
}

/* ---- the command ---- */

/* The arguments of the command. The array has capacity for every argument. */
struct letters_line {
    const char *data_dir;
    const char *ledger;
    const char *feed;
    const char *file;
    const char **assignments;
    size_t assignment_count;
    bool helps;
    bool wrong;
};

static int refuse_letters_usage(void)
{
    fputs(USAGE, stderr);
    return EXIT_USAGE;
}

/* Works on the ledger, or on the server that has it open; `ids` are NULL to list. */
static int run_ledger_dead_letters(const struct letters_line *line, char **ids, int count)
{
    struct slice arguments[CONTROL_ARGUMENTS_MAX] = {SLICE("dead-letters"),
                                                     ids ? SLICE("replay") : SLICE("list")};
    if (count + 2 > CONTROL_ARGUMENTS_MAX)
        return refuse_letters_usage();
    for (int i = 0; i < count; i++) {
        struct slice chat;
        uint64_t sequence;
        arguments[2 + i] = slice_of(ids[i]);
        if (control_letters_parse(arguments[2 + i], &chat, &sequence) ||
            (count == 1 && strcmp(ids[i], "all") == 0))
            continue;
        fprintf(stderr, "rollcall dead-letters: %s: expected CHAT:SEQUENCE, as list shows it\n",
                ids[i]);
        return EXIT_USAGE;
    }
    const char *data_dir = line->data_dir || line->ledger ? line->data_dir : "./rollcall-data";
    return ledger_control_run(data_dir, line->ledger, arguments, (size_t)count + 2);
}

static void parse_letters_options(struct letters_line *line, int argc, char **argv)
{
    static const struct option OPTIONS[] = {{"ledger", required_argument, NULL, 'l'},
                                            {"feed", required_argument, NULL, 'f'},
                                            {"config", required_argument, NULL, 'c'},
                                            {"set", required_argument, NULL, 's'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"data-dir", required_argument, NULL, 'd'},
                                            {0}};
    int option;
    while ((option = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1) {
        if (option == 'l')
            line->ledger = optarg;
        else if (option == 'd')
            line->data_dir = optarg;
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
    bool replays = strcmp(action, "replay") == 0;
    bool drops = strcmp(action, "drop") == 0 && line->feed;
    int id_count = lists ? 0 : argc - optind - 1;
    struct config_flag flag = {.flag = "--feed", .setting = "feed.url", .value = line->feed};
    struct config_inputs inputs = {.file = line->file,
                                   .environment = environ,
                                   .assignments = line->assignments,
                                   .assignment_count = line->assignment_count,
                                   .flags = &flag,
                                   .flag_count = 1};
    if (line->helps)
        return printf("%s%s", USAGE, HELP) < 0;
    bool has_both = line->feed && (line->ledger || line->data_dir);
    if (line->wrong || has_both || (!lists && !replays && !drops) || (line->feed && id_count > 1))
        return refuse_letters_usage();
    if (!line->feed)
        return run_ledger_dead_letters(line, replays ? argv + optind + 1 : NULL, id_count);
    const char *ids = id_count == 1 ? argv[optind + 1] : "all";
    return run_kafka_dead_letters(&inputs, lists ? NULL : ids, drops);
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
