/* A link, a request and its answer while memory runs out: each allocation fails once, and all fail from some
 * point on. The request is answered, refused or its link closed; nothing leaks and nothing crashes. */
#include "ledger/remote/ledger_service.h"

#include "ledger/remote/ledger_wire.h"
#include "support/alloc_fault.h"
#include "support/script_ledger.h"
#include "support/worker_loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

enum { SOON_MS = 30000 };

struct client {
    struct peer_link *link;
    struct slice frame;
    bool answered, closed;
    enum ledger_status status;
};

static void on_client_opened(struct peer_link *link, void *arg, struct slice name)
{
    struct client *client = arg;
    (void)name;
    if (!peer_link_send(link, &client->frame, 1))
        peer_link_close(link, "closed");
}

static void on_client_frame(struct peer_link *link, void *arg, struct slice frame)
{
    struct client *client = arg;
    struct ledger_wire_head head;
    struct slice body;
    (void)link;
    assert_true(ledger_wire_decode_answer_head(frame, &head, &body));
    client->answered = true;
    client->status = head.status;
}

static void on_client_closed(struct peer_link *link, void *arg, const char *why)
{
    struct client *client = arg;
    (void)link;
    (void)why;
    client->link = NULL;
    client->closed = true;
}

static const struct peer_link_owner owner = {
    .on_opened = on_client_opened, .on_frame = on_client_frame, .on_closed = on_client_closed};

static bool is_client_done(void *arg)
{
    const struct client *client = arg;
    return client->answered || client->closed || !client->link;
}

static void encode_request(struct buffer *frame)
{
    static const struct slice members[1] = {SLICE("m")};
    struct clock clock = {0};
    struct ledger_client requester = {.clock = &clock};
    struct ledger_request *request = ledger_request_make(&requester, LEDGER_CHAT_CREATE, NULL);
    request->input.chat = SLICE("c");
    request->input.user = SLICE("u");
    request->input.ids = members;
    request->input.id_count = 1;
    ledger_wire_encode_request(frame, 1, request);
    ledger_request_free(request);
}

/* An answer that needs memory. */
static void answer_with_chat(void *arg, struct ledger_request *request)
{
    (void)arg;
    request->outcome.chat.created = true;
    request->outcome.chat.chat.id = request->input.chat;
}

static void request_once(struct worker_loop *worker, struct script_ledger *script,
                         struct client *client)
{
    char error[LISTENER_ERROR_TEXT_MAX], address[64];
    struct peer_link_options options = {.loop = &worker->loop,
                                        .streams = &worker->streams,
                                        .random = &worker->random,
                                        .secret = SLICE("secret"),
                                        .name = SLICE("client")};
    struct ledger_service *service =
        ledger_service_open(&options, &script->ledger, "127.0.0.1:0", error);
    if (!service)
        return;
    snprintf(address, sizeof(address), "127.0.0.1:%u", ledger_service_port(service));
    client->link = peer_link_dial(&options, address, &owner, client);
    assert_true(worker_loop_until(worker, is_client_done, client, SOON_MS));
    peer_link_drop(&client->link);
    ledger_service_free(&service);
}

static void run_with_fault(void (*fault)(size_t n))
{
    struct buffer frame = BUFFER_INIT;
    bool answered = false;
    encode_request(&frame);
    for (size_t n = 1, failed = 1; failed > 0; n++) {
        struct worker_loop worker;
        struct script_ledger script;
        struct client client = {.frame = buffer_slice(&frame)};
        worker_loop_open(&worker);
        script_ledger_init(&script);
        script.answer = answer_with_chat;
        fault(n);
        request_once(&worker, &script, &client);
        failed = alloc_fault_off();
        answered = client.answered && client.status == LEDGER_OK;
        assert_true(answered || failed);
        assert_true(!client.answered || answered || client.status == LEDGER_BUSY);
        worker_loop_close(&worker);
    }
    assert_true(answered);
    buffer_free(&frame);
}

static void test_one_failing_allocation_leaks_nothing(void **unused)
{
    (void)unused;
    run_with_fault(alloc_fault_after);
}

static void test_all_allocations_failing_from_a_point_leak_nothing(void **unused)
{
    (void)unused;
    run_with_fault(alloc_fault_from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_failing_allocation_leaks_nothing),
        cmocka_unit_test(test_all_allocations_failing_from_a_point_leak_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
