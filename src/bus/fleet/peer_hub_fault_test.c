/* Two hubs while memory runs out: each allocation fails once, and all from some point on for a while. They
 * link to each other afterwards, an event comes once or not at all, and nothing leaks. */
#include "bus/fleet/peer_hub.h"

#include "support/alloc_fault.h"
#include "support/worker_loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { SOON_TURNS = 30000, SHORT_OF_MEMORY_TURNS = 30, ALLOCATIONS_MAX = 200 };

struct hub_process {
    struct worker_loop worker;
    struct mailbox mailbox;
    struct peer_hub *hub;
    unsigned received_count;
};

static void on_hub_event(void *arg, struct slice topic, struct slice payload)
{
    (void)topic, (void)payload;
    ((struct hub_process *)arg)->received_count++;
}

static void open_process(struct hub_process *process)
{
    *process = (struct hub_process){0};
    worker_loop_open(&process->worker);
    assert_true(mailbox_init(&process->mailbox, &process->worker.loop, MAILBOX_MAIL_MAX, process));
}

static bool open_hub(struct hub_process *process, struct slice name)
{
    char error[LISTENER_ERROR_TEXT_MAX];
    process->hub = peer_hub_make(&(struct peer_hub_options){.loop = &process->worker.loop,
                                                            .streams = &process->worker.streams,
                                                            .random = &process->worker.random,
                                                            .metrics = &process->worker.metrics,
                                                            .mailbox = &process->mailbox,
                                                            .name = name,
                                                            .secret = SLICE("an open secret"),
                                                            .on_event = on_hub_event,
                                                            .arg = process});
    return process->hub && peer_hub_listen(process->hub, "127.0.0.1:0", error);
}

static void close_process(struct hub_process *process)
{
    mailbox_free(&process->mailbox);
    peer_hub_free(&process->hub);
    worker_loop_close(&process->worker);
}

static void turn(struct hub_process processes[2], int times)
{
    for (int i = 0; i < times; i++) {
        loop_turn(&processes[0].worker.loop, 1);
        loop_turn(&processes[1].worker.loop, 0);
    }
}

static void send_event(struct hub_process *process)
{
    peer_hub_send(process->hub, &process->worker.metrics, SLICE("topic"), SLICE("payload"));
}

static bool are_linked(const struct hub_process processes[2])
{
    return peer_hub_open_links(processes[0].hub) && peer_hub_open_links(processes[1].hub);
}

/* Links the hubs and sends an event while memory is short. Returns false when the second hub could not be made. */
static bool link_hubs(struct hub_process processes[2])
{
    char address[32];
    snprintf(address, sizeof(address), "127.0.0.1:%u", peer_hub_port(processes[0].hub));
    struct peer_hub_entry entries[] = {{SLICE("down"), SLICE("127.0.0.1:1")},
                                       {SLICE("also-down"), SLICE("127.0.0.1:2")}};
    if (!open_hub(&processes[1], SLICE("west")) || !peer_hub_add(processes[1].hub, address))
        return false;
    peer_hub_learn(processes[1].hub, entries, 2);
    for (int i = 0; i < SHORT_OF_MEMORY_TURNS && !are_linked(processes); i++)
        turn(processes, 1);
    peer_hub_learn(processes[1].hub, entries, 1);
    send_event(&processes[0]);
    turn(processes, 2);
    return true;
}

static size_t link_with_failures(alloc_fault_start fail_at, size_t n)
{
    struct hub_process processes[2];
    open_process(&processes[0]);
    open_process(&processes[1]);
    assert_true(open_hub(&processes[0], SLICE("east")));
    fail_at(n);
    bool linked = link_hubs(processes);
    size_t failed = alloc_fault_off();
    assert_true(linked || failed > 0);
    for (int i = 0; linked && i < SOON_TURNS && !are_linked(processes); i++)
        turn(processes, 1);
    assert_true(!linked || are_linked(processes));
    unsigned before = processes[1].received_count;
    assert_in_range(before, failed == 0, 1);
    if (linked)
        send_event(&processes[0]);
    for (int i = 0; linked && i < SOON_TURNS && processes[1].received_count == before; i++)
        turn(processes, 1);
    assert_int_equal(processes[1].received_count, before + linked);
    close_process(&processes[0]);
    close_process(&processes[1]);
    return failed;
}

static void hubs_link_after_any_failed_allocation(void **state)
{
    (void)state;
    assert_in_range(alloc_fault_sweep(alloc_fault_after, link_with_failures), 10, ALLOCATIONS_MAX);
}

static void hubs_link_after_a_time_without_memory(void **state)
{
    (void)state;
    assert_in_range(alloc_fault_sweep(alloc_fault_from, link_with_failures), 10, ALLOCATIONS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hubs_link_after_any_failed_allocation),
        cmocka_unit_test(hubs_link_after_a_time_without_memory),
    };
    return cmocka_run_group_tests_name("peer_hub_fault", tests, NULL, NULL);
}
