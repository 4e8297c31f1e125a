/*
 * Two gateways for tests of the call store. Each function below runs one operation of the port, waits for the
 * answer and returns its result; the answer's call is then in `call`. The harness itself checks that an answer
 * comes once, and that it has a call exactly where call_store.h says so.
 */
#ifndef ROLLCALL_TESTS_CALL_STORE_HARNESS_H
#define ROLLCALL_TESTS_CALL_STORE_HARNESS_H

#include "conformance/call_store_suite.h"

enum { HARNESS_PORTS = 2, HARNESS_TEXT_BYTES_MAX = 4096 };

struct harness {
    const struct call_store_suite_backend *backend;
    struct call_store *ports[HARNESS_PORTS];
    size_t next_port; /* each operation uses another gateway than the last one */
    bool answered;
    enum call_result result;
    bool has_call;
    struct call call; /* of the last answer; texts are in `texts` */
    struct call ended[CALL_REAP_MAX];
    size_t ended_count;
    size_t lost_count;
    char texts[CALL_REAP_MAX * HARNESS_TEXT_BYTES_MAX];
    size_t texts_len;
};

/* Returns device `number` of a user on its connection `connection`; the ids are never freed. */
struct call_device harness_device(const char *user, unsigned number, unsigned connection);

enum call_result harness_request(struct harness *harness, const char *id, struct call_device caller,
                                 const char *callee);
enum call_result harness_ring_unheard(struct harness *harness, const char *id,
                                      struct call_device caller, const char *callee);
enum call_result harness_declare(struct harness *harness, const char *id,
                                 struct call_device caller);
enum call_result harness_answer(struct harness *harness, const char *id, struct call_device callee);
enum call_result harness_reject(struct harness *harness, const char *id, const char *user);
enum call_result harness_end(struct harness *harness, const char *id, const char *user);
/* `id` NULL: the call that the user is in. */
enum call_result harness_get(struct harness *harness, const char *id, const char *user);
enum call_result harness_attach(struct harness *harness, struct call_device device);
enum call_result harness_detach(struct harness *harness, struct call_device device);
/* Returns false if the device was reported as lost. */
bool harness_renew(struct harness *harness, struct call_device device);
/* Returns how many calls ended; they are in harness->ended. */
size_t harness_reap(struct harness *harness, size_t max);
void harness_pass(struct harness *harness, int64_t duration_ms);

void call_store_suite_operations_match_a_model(void **state);

#endif
