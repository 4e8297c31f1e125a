/* Requests of the application while memory runs out: each has one answer or ends its connection, and nothing leaks. */
#include "support/alloc_fault.h"
#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PATIENCE_MS = 5000 };

static struct world world;
static struct client backend;
static char token[WORLD_TOKEN_BYTES_MAX];

/* A request, and the answer that it gets with enough memory. */
struct service_case {
    const char *method;
    const char *path;
    const char *body;
    bool with_key;
    unsigned status;
};

static const struct service_case *current;

/* Returns the status of the only answer; 0: there is none. */
static unsigned read_status(void)
{
    client_read(&backend, 0);
    if (backend.len == 0)
        return 0;
    backend.in[backend.len < CLIENT_BYTES_MAX ? backend.len : CLIENT_BYTES_MAX - 1] = '\0';
    assert_memory_equal(backend.in, "HTTP/1.1 ", 9);
    assert_null(strstr(backend.in + 1, "HTTP/1.1 "));
    return (unsigned)strtoul(backend.in + 9, NULL, 10);
}

static bool is_expected_failure(unsigned status)
{
    return status == 0 || status == 401 || status == 500 || status == 503 ||
           status == current->status;
}

static size_t request_without_memory(alloc_fault_start fail_at, size_t n)
{
    client_dial(&backend, &world, 0);
    world_settle(&world);
    fail_at(n);
    client_print(&backend,
                 "%s %s HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer %s\r\n"
                 "Content-Length: %zu\r\n\r\n%s",
                 current->method, current->path,
                 current->with_key ? "rk_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG" : token,
                 strlen(current->body), current->body);
    world_settle(&world);
    world_advance(&world, PATIENCE_MS);
    size_t failed = alloc_fault_off();
    world_advance(&world, PATIENCE_MS);
    unsigned status = read_status();
    if (!failed)
        assert_int_equal(status, current->status);
    assert_true(is_expected_failure(status));
    client_hang_up(&backend);
    world_advance(&world, PATIENCE_MS);
    return failed;
}

static void try_case(const struct service_case *tried)
{
    current = tried;
    world_open(&world, WORLD_DEFAULTS);
    world.ledger.answers_all = true;
    world_token(&world, "backend", "service", 36000000, token);
    assert_true(alloc_fault_sweep(alloc_fault_after, request_without_memory) > 4);
    world_close(&world);
}

static void import_without_memory_has_one_answer(void **state)
{
    (void)state;
    try_case(&(struct service_case){
        "POST", "/v1/service/import",
        "{\"contact\":[\"a\",\"b\"]}\n{\"block\":[\"a\",\"c\"]}\n"
        "{\"user\":{\"user_id\":\"a\",\"display_name\":\"A\"}}\n"
        "{\"chat\":{\"chat_id\":\"t\",\"members\":[\"a\",\"b\"]}}\nnonsense\n",
        false, 200});
}

static void export_without_memory_has_one_answer(void **state)
{
    (void)state;
    try_case(&(struct service_case){"GET", "/v1/service/users/alice/export", "", false, 200});
}

static void erasure_without_memory_has_one_answer(void **state)
{
    (void)state;
    try_case(&(struct service_case){"DELETE", "/v1/service/users/alice", "", false, 204});
}

static void deliveries_without_memory_have_one_answer(void **state)
{
    (void)state;
    try_case(&(struct service_case){"POST", "/v1/service/deliver",
                                    "{\"to\":{\"users\":[\"a\",\"b\"]},\"data\":1}", false, 200});
    try_case(&(struct service_case){"POST", "/v1/service/deliver",
                                    "{\"to\":{\"everyone\":true},\"data\":1}", false, 200});
}

static void contact_list_without_memory_has_one_answer(void **state)
{
    (void)state;
    try_case(&(struct service_case){"PUT", "/v1/service/users/alice/contacts",
                                    "{\"contacts\":[\"bob\",\"carol\"]}", false, 200});
}

static void key_without_memory_admits_nobody(void **state)
{
    (void)state;
    try_case(&(struct service_case){"GET", "/v1/service/online", "", true, 401});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(import_without_memory_has_one_answer),
        cmocka_unit_test(export_without_memory_has_one_answer),
        cmocka_unit_test(erasure_without_memory_has_one_answer),
        cmocka_unit_test(deliveries_without_memory_have_one_answer),
        cmocka_unit_test(contact_list_without_memory_has_one_answer),
        cmocka_unit_test(key_without_memory_admits_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
