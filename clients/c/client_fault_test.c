/* Fails the allocations of the client, one in each run: the client must not leak, crash or lose a message. */
#include "fixture.h"
#include "support/alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

enum { ROUNDS_MAX = 8 };

static const char ACK[] = "{\"type\":\"message_ack\",\"chat_id\":\"c\",\"client_message_id\":\"1\","
                          "\"message_id\":\"m\",\"sequence\":3}";
#define PAGE(more)                                                                                 \
    "{\"type\":\"sync_response\",\"chat_id\":\"c\",\"has_more\":false,\"messages\":["              \
    "{\"chat_id\":\"c\",\"sequence\":1,\"body\":\"b1\"},"                                          \
    "{\"chat_id\":\"c\",\"sequence\":2,\"body\":\"b2\"}" more "]}"
#define MINE ",{\"chat_id\":\"c\",\"sequence\":3,\"body\":\"mine\"}"

/* Answers all commands of the client. A sync_request always gets all messages, whatever its after_sequence. */
static void serve(struct fixture *fixture, bool *stored)
{
    const char *text;
    while (fixture->client->link.fd >= 0 && (text = fixture_next(fixture)) != NULL) {
        if (strstr(text, "send_message")) {
            *stored = true;
            fixture_send(fixture, ACK);
        } else if (strstr(text, "sync_request")) {
            fixture_send(fixture, *stored ? PAGE(MINE) : PAGE(""));
        }
    }
}

static void connect_again(struct fixture *fixture)
{
    while (rollcall_get_state(fixture->client) == ROLLCALL_BACKOFF)
        fixture_advance(fixture, 1000);
    if (rollcall_get_state(fixture->client) != ROLLCALL_CONNECTING)
        return;
    fixture_accept(fixture);
    if (fixture->client->link.fd >= 0)
        fixture_establish(fixture);
}

/* Messages that the client accepted arrive exactly once, in spite of a failed allocation. */
static void follow_and_send(struct fixture *fixture)
{
    if (!rollcall_follow(fixture->client, "c", 0) || !rollcall_subscribe(fixture->client, "bob") ||
        !rollcall_send(fixture->client, "c", "1", "mine"))
        return;
    bool stored = false;
    for (int i = 0; i < ROUNDS_MAX && !strstr(fixture->log, "mine "); i++) {
        fixture_advance(fixture, 1000);
        connect_again(fixture);
        serve(fixture, &stored);
    }
    const char *first = strstr(fixture->log, "b1 ");
    assert_non_null(first);
    assert_non_null(strstr(first, "b2 "));
    assert_non_null(strstr(first, "mine "));
    assert_null(strstr(first + 1, "b1 "));
}

static void test_failed_allocation_loses_no_message(void **state)
{
    static struct fixture fixture;
    (void)state;
    for (size_t n = 1, failed = 1; failed > 0; n++) {
        alloc_fault_after(n);
        fixture_open(&fixture);
        if (fixture.client)
            follow_and_send(&fixture);
        failed = alloc_fault_off();
        fixture_close(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_failed_allocation_loses_no_message)};
    return cmocka_run_group_tests_name("clients/c faults", tests, NULL, NULL);
}
