/* Commands through the control socket while memory runs out: each is answered, or its connection ends, and the next one works. */
#include "app/control/control_socket.h"
#include "support/alloc_fault.h"
#include "support/script_ledger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

enum { TURNS_MAX = 200, ANSWER_BYTES_MAX = 8192 };

static struct script_ledger ledger;
static struct control_socket control;
static struct loop loop;
static char directory[] = "/tmp/rollcall-control-XXXXXX";
static const char *command;

static int connect_to_control(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/" CONTROL_SOCKET_NAME, directory);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* Reads to the end of the connection. Returns false if it does not end. */
static bool read_answer(int fd, char answer[ANSWER_BYTES_MAX])
{
    size_t len = 0;
    ssize_t got = -1;
    for (int i = 0; i < TURNS_MAX && got != 0; i++) {
        loop_turn(&loop, 0);
        script_ledger_turn(&ledger);
        ledger_client_expire(&ledger.client); /* answers what found no memory */
        while ((got = recv(fd, answer + len, ANSWER_BYTES_MAX - 1 - len, MSG_DONTWAIT)) > 0)
            len += (size_t)got;
    }
    answer[len] = '\0';
    return got == 0;
}

static size_t command_without_memory(alloc_fault_start fail_at, size_t n)
{
    char answer[ANSWER_BYTES_MAX];
    int fd = connect_to_control();
    fail_at(n);
    assert_int_equal(send(fd, command, strlen(command), 0), strlen(command));
    bool has_ended = read_answer(fd, answer);
    size_t failed = alloc_fault_off();
    assert_true(has_ended);
    if (!failed)
        assert_memory_equal(answer, "{\"status\":0,", 12);
    else
        assert_true(answer[0] == '\0' || memcmp(answer, "{\"status\":", 10) == 0);
    close(fd);
    return failed;
}

static void commands_without_memory_are_answered_or_end(void **state)
{
    static const char *const commands[] = {"[\"key\",\"create\",\"shop\",\"service\"]\n",
                                           "[\"key\",\"list\"]\n",
                                           "[\"key\",\"revoke\",\"shop\"]\n",
                                           "[\"webhooks\",\"list\"]\n",
                                           "[\"dead-letters\"]\n",
                                           "[\"dead-letters\",\"replay\",\"c:1\",\"c:2\"]\n"};
    (void)state;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        command = commands[i];
        assert_true(alloc_fault_sweep(alloc_fault_after, command_without_memory) > 2);
    }
}

/* Something to list, and something to change. */
static void answer_control_request(void *arg, struct ledger_request *request)
{
    static const struct ledger_key KEYS[] = {
        {{"shop", 4},
         {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 64},
         {"service", 7},
         1000,
         0}};
    (void)arg;
    if (request->operation == LEDGER_KEYS_LIST)
        request->outcome.keys =
            (struct ledger_keys_outcome){.status = LEDGER_OK, .keys = KEYS, .count = 1};
    if (request->operation == LEDGER_KEY_PUT || request->operation == LEDGER_KEY_DELETE)
        request->outcome.change.changed = true;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_without_memory_are_answered_or_end),
    };
    struct random random;
    random_init_seeded(&random, 7);
    script_ledger_init(&ledger);
    ledger.answer = answer_control_request;
    if (!mkdtemp(directory) || !loop_init(&loop))
        return 1;
    control_socket_open(&control, &loop, directory, &ledger.client, &random);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    control_socket_close(&control);
    loop_free(&loop);
    rmdir(directory);
    return failures;
}
