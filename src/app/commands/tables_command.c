#include "app/commands/tables_command.h"

#include "ledger/dynamodb/client/dynamodb_template.h"
#include "ledger/dynamodb/dynamodb_admin.h"
#include "log/log.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

static const char USAGE[] = "usage: rollcall tables create|check --ledger dynamodb://REGION[?…]\n"
                            "       rollcall tables template\n";

static const char HELP[] =
    "\n"
    "The tables of a ledger on DynamoDB.\n"
    "\n"
    "  create        makes those that do not exist, adds what existing ones lack, and waits until they\n"
    "                can be used: on-demand capacity, deletion protection, point-in-time recovery,\n"
    "                removal of expired items\n"
    "  check         prints each difference from what the server needs; exit status 1 if there is one\n"
    "  template      prints the tables as a CloudFormation template\n"
    "  --ledger URL  the ledger: dynamodb://REGION[?endpoint=URL&prefix=NAME&ca=FILE]\n"
    "  --help        this text\n";

struct tables_check {
    size_t difference_count;
};

static void on_difference_found(void *arg, const char *table, const char *difference)
{
    struct tables_check *check = arg;
    check->difference_count++;
    printf("%s: %s\n", table, difference);
}

static int report_tables_failure(const char *error)
{
    fprintf(stderr, "rollcall tables: %s\n", error);
    return EXIT_FAILED;
}

static int check_all_tables(const char *url)
{
    char error[DYNAMODB_ADMIN_ERROR_MAX];
    struct tables_check check = {0};
    if (!dynamodb_admin_check_tables(url, on_difference_found, &check, error))
        return report_tables_failure(error);
    if (check.difference_count)
        return EXIT_FAILED;
    puts("all tables are as they must be");
    return EXIT_OK;
}

/* What cannot be added to an existing table is said by the check that follows. */
static int create_all_tables(const char *url)
{
    char error[DYNAMODB_ADMIN_ERROR_MAX];
    if (!dynamodb_admin_create_tables(url, error))
        return report_tables_failure(error);
    return check_all_tables(url);
}

static int print_tables_template(void)
{
    struct buffer out = BUFFER_INIT;
    dynamodb_template_write(&out);
    bool printed = !out.failed && fwrite(out.data, 1, out.len, stdout) == out.len;
    buffer_free(&out);
    return printed ? EXIT_OK : report_tables_failure("out of memory or disk space");
}

int tables_command(int argc, char **argv)
{
    static const struct option OPTIONS[] = {
        {"ledger", required_argument, NULL, 'l'}, {"help", no_argument, NULL, 'h'}, {0}};
    const char *url = NULL;
    int option;
    while ((option = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1) {
        if (option == 'l')
            url = optarg;
        else if (option == 'h')
            return printf("%s%s", USAGE, HELP) < 0;
        else
            return fputs(USAGE, stderr) < 0 ? EXIT_FAILED : EXIT_USAGE;
    }
    const char *action = argc - optind == 1 ? argv[optind] : "";
    log_init(LOG_LEVEL_ERROR, false);
    if (strcmp(action, "template") == 0 && !url)
        return print_tables_template();
    if (strcmp(action, "create") == 0 && url)
        return create_all_tables(url);
    if (strcmp(action, "check") == 0 && url)
        return check_all_tables(url);
    fputs(USAGE, stderr);
    return EXIT_USAGE;
}
