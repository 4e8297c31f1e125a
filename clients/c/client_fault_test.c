/* Every allocation of the client fails in turn: nothing leaks or breaks, and no message is lost. */
#include "fake_server.h"
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

/* Answers what is asked until nothing more is. Whatever is synced from, all there is comes. */
static void serve(struct scene *scene, bool *stored)
{
    const char *text;
    while (scene->client->fd >= 0 && (text = scene_next(scene)) != NULL) {
        if (strstr(text, "send_message")) {
            *stored = true;
            scene_say(scene, ACK);
        } else if (strstr(text, "sync_request")) {
            scene_say(scene, *stored ? PAGE(MINE) : PAGE(""));
        }
    }
}

static void connect_again(struct scene *scene)
{
    while (rollcall_get_state(scene->client) == ROLLCALL_BACKOFF)
        scene_pass(scene, 1000);
    if (rollcall_get_state(scene->client) != ROLLCALL_CONNECTING)
        return;
    scene_accept(scene);
    if (scene->client->fd >= 0)
        scene_establish(scene);
}

/* What was taken in is done in the end, once, whatever failed on the way. */
static void follow_and_send(struct scene *scene)
{
    if (!rollcall_follow(scene->client, "c", 0) || !rollcall_subscribe(scene->client, "bob") ||
        !rollcall_send(scene->client, "c", "1", "mine"))
        return;
    bool stored = false;
    for (int i = 0; i < ROUNDS_MAX && !strstr(scene->log, "mine "); i++) {
        scene_pass(scene, 1000);
        connect_again(scene);
        serve(scene, &stored);
    }
    const char *first = strstr(scene->log, "b1 ");
    assert_non_null(first);
    assert_non_null(strstr(first, "b2 "));
    assert_non_null(strstr(first, "mine "));
    assert_null(strstr(first + 1, "b1 "));
}

static void test_every_allocation_may_fail(void **state)
{
    static struct scene scene;
    (void)state;
    for (size_t n = 1, failed = 1; failed > 0; n++) {
        alloc_fault_after(n);
        scene_open(&scene);
        if (scene.client)
            follow_and_send(&scene);
        failed = alloc_fault_off();
        scene_close(&scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation_may_fail)};
    return cmocka_run_group_tests_name("clients/c faults", tests, NULL, NULL);
}
