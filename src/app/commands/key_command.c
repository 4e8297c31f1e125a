#include "app/commands/key_command.h"

#include "app/commands/ledger_control.h"
#include "app/control/control_keys.h"
#include "auth/api_key.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

enum { KEY_EXIT_USAGE = 2 };

static const char USAGE[] =
    "usage: rollcall key create NAME [--scope \"SCOPE…\"] [--data-dir DIR | --ledger URL]\n"
    "       rollcall key list [--data-dir DIR | --ledger URL]\n"
    "       rollcall key revoke NAME [--data-dir DIR | --ledger URL]\n";

static const char HELP[] =
    "\n"
    "API keys of your own programs, for /v1/service. While the server runs, the command works through its\n"
    "control socket in the data directory; otherwise on the ledger itself.\n"
    "\n"
    "  create NAME     makes a key and prints it; it is shown only now\n"
    "  list            name, scopes, when it was made and when it was last used (to the minute)\n"
    "  revoke NAME     all gateways refuse the key within 2 seconds\n"
    "  --scope SCOPES  service (the default), deliver, admin; several are separated by spaces\n"
    "  --data-dir DIR  of the server (default: ./rollcall-data)\n"
    "  --ledger URL    sqlite:PATH or dynamodb://REGION[?…]\n"
    "  --help          this text\n";

static int refuse_key_usage(const char *problem)
{
    if (problem)
        fprintf(stderr, "rollcall key: %s\n", problem);
    else
        fputs(USAGE, stderr);
    return KEY_EXIT_USAGE;
}

static int run_key_action(int count, char **words, const char *scope, const char *data_dir,
                          const char *url)
{
    bool creates = count == 2 && strcmp(words[0], "create") == 0;
    bool revokes = count == 2 && strcmp(words[0], "revoke") == 0;
    bool lists = count == 1 && strcmp(words[0], "list") == 0;
    if ((!creates && !revokes && !lists) || (scope && !creates))
        return refuse_key_usage(NULL);
    if (!lists && !api_key_name_valid(slice_of(words[1])))
        return refuse_key_usage("a name has 1 to 64 letters, digits, '.', '_' and '-'");
    if (scope && !control_keys_scope_valid(slice_of(scope)))
        return refuse_key_usage("scopes are service, deliver and admin");
    struct slice arguments[] = {SLICE("key"), slice_of(words[0]),
                                lists ? SLICE_NONE : slice_of(words[1]),
                                slice_of(scope ? scope : "service")};
    if (!url && !data_dir)
        data_dir = "./rollcall-data";
    return ledger_control_run(data_dir, url, arguments, lists ? 2 : creates ? 4 : 3);
}

int key_command(int argc, char **argv)
{
    static const struct option OPTIONS[] = {{"scope", required_argument, NULL, 's'},
                                            {"data-dir", required_argument, NULL, 'd'},
                                            {"ledger", required_argument, NULL, 'l'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    const char *scope = NULL, *data_dir = NULL, *url = NULL;
    int option;
    while ((option = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1) {
        if (option == 's')
            scope = optarg;
        else if (option == 'd')
            data_dir = optarg;
        else if (option == 'l')
            url = optarg;
        else if (option == 'h')
            return printf("%s%s", USAGE, HELP) < 0;
        else
            return refuse_key_usage(NULL);
    }
    return run_key_action(argc - optind, argv + optind, scope, data_dir, url);
}
