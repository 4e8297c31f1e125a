/* A link, a request and its answer while memory runs out: each allocation fails once, and all from some point
 * on. What was asked is answered, refused or cut off; nothing leaks and nothing crashes. */
#include "ledger/remote/ledger_service.h"

#include "ledger/remote/ledger_wire.h"
#include "support/alloc_fault.h"
#include "support/script_ledger.h"
#include "support/worker_loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SOON_MS = 5000 };

struct asker {
    struct peer_link *link;
    struct slice frame;
    bool answered, closed;
    enum ledger_status status;
};

static void opened(struct peer_link *link, void *arg, struct slice name)
{
    struct asker *asker = arg;
    (void)name;
    if (!peer_link_send(link, &asker->frame, 1))
        peer_link_close(link);
}

static void received(struct peer_link *link, void *arg, struct slice frame)
{
    struct asker *asker = arg;
    struct ledger_wire_head head;
    struct slice body;
    (void)link;
    assert_true(ledger_wire_decode_answer_head(frame, &head, &body));
    asker->answered = true;
    asker->status = head.status;
}

static void closed(struct peer_link *link, void *arg, const char *why)
{
    struct asker *asker = arg;
    (void)link;
    (void)why;
    asker->link = NULL;
    asker->closed = true;
}

static const struct peer_link_owner owner = {opened, received, closed};

static bool is_over(void *arg)
{
    const struct asker *asker = arg;
    return asker->answered || asker->closed || !asker->link;
}

static void encode(struct buffer *frame)
{
    static const struct slice members[1] = {SLICE("m")};
    struct clock clock = {0};
    struct ledger_client client = {.clock = &clock};
    struct ledger_request *request = ledger_request_make(&client, LEDGER_CHAT_CREATE, NULL);
    request->input.chat = SLICE("c");
    request->input.user = SLICE("u");
    request->input.ids = members;
    request->input.id_count = 1;
    ledger_wire_encode_request(frame, 1, request);
    ledger_request_free(request);
}

/* An answer with something in it. */
static void answer(void *arg, struct ledger_request *request)
{
    (void)arg;
    request->outcome.chat.created = true;
    request->outcome.chat.chat.id = request->input.chat;
}

static void ask_once(struct worker_loop *worker, struct script_ledger *script, struct asker *asker)
{
    char error[LISTENER_ERROR_TEXT_MAX], address[64];
    struct peer_link_options options = {.loop = &worker->loop,
                                        .streams = &worker->streams,
                                        .random = &worker->random,
                                        .secret = SLICE("secret"),
                                        .name = SLICE("asker")};
    struct ledger_service *service =
        ledger_service_open(&options, &script->ledger, "127.0.0.1:0", error);
    if (!service)
        return;
    snprintf(address, sizeof(address), "127.0.0.1:%u", ledger_service_port(service));
    asker->link = peer_link_dial(&options, address, &owner, asker);
    assert_true(worker_loop_until(worker, is_over, asker, SOON_MS));
    peer_link_drop(&asker->link);
    ledger_service_free(&service);
}

static void run(void (*fault)(size_t n))
{
    struct buffer frame = BUFFER_INIT;
    bool answered = false;
    encode(&frame);
    for (size_t n = 1, failed = 1; failed > 0; n++) {
        struct worker_loop worker;
        struct script_ledger script;
        struct asker asker = {.frame = buffer_slice(&frame)};
        worker_loop_open(&worker);
        script_ledger_init(&script);
        script.answer = answer;
        fault(n);
        ask_once(&worker, &script, &asker);
        failed = alloc_fault_off();
        answered = asker.answered && asker.status == LEDGER_OK;
        assert_true(answered || failed);
        assert_true(!asker.answered || answered || asker.status == LEDGER_BUSY);
        worker_loop_close(&worker);
    }
    assert_true(answered);
    buffer_free(&frame);
}

static void test_each_allocation_fails_once(void **unused)
{
    (void)unused;
    run(alloc_fault_after);
}

static void test_all_fail_from_some_point_on(void **unused)
{
    (void)unused;
    run(alloc_fault_from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_allocation_fails_once),
        cmocka_unit_test(test_all_fail_from_some_point_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
