/*
 * A world of named users and numbered devices for tests of the call store. Every call below makes one
 * call of the port, waits for the answer and gives it back by value; the harness itself checks that an
 * answer comes once and shows a call exactly where its result says so.
 */
#ifndef ROLLCALL_TESTS_CALL_STORE_HARNESS_H
#define ROLLCALL_TESTS_CALL_STORE_HARNESS_H

#include "conformance/call_store_suite.h"

enum { SUITE_PORTS = 2, SUITE_TEXT_BYTES_MAX = 4096 };

struct suite_world {
    const struct call_store_suite_backend *backend;
    struct call_store *ports[SUITE_PORTS];
    size_t next_port; /* every call goes through another gateway than the last */
    bool answered;
    enum call_result result;
    bool has_call;
    struct call call; /* of the last answer; texts are in `texts` */
    struct call ended[CALL_REAP_MAX];
    size_t ended_count;
    size_t lost_count;
    char texts[CALL_REAP_MAX * SUITE_TEXT_BYTES_MAX];
    size_t texts_len;
};

/* Device `number` of a user on its connection `connection`; ids last for the program. */
struct call_device suite_device(const char *user, unsigned number, unsigned connection);

enum call_result suite_request(struct suite_world *world, const char *id, struct call_device caller,
                               const char *callee);
enum call_result suite_declare(struct suite_world *world, const char *id,
                               struct call_device caller);
enum call_result suite_answer(struct suite_world *world, const char *id, struct call_device callee);
enum call_result suite_reject(struct suite_world *world, const char *id, const char *user);
enum call_result suite_end(struct suite_world *world, const char *id, const char *user);
/* `id` NULL: the one the user is in. */
enum call_result suite_get(struct suite_world *world, const char *id, const char *user);
enum call_result suite_attach(struct suite_world *world, struct call_device device);
enum call_result suite_detach(struct suite_world *world, struct call_device device);
/* Whether the store still knew it. */
bool suite_renew(struct suite_world *world, struct call_device device);
/* How many ended; they are in world->ended. */
size_t suite_reap(struct suite_world *world, size_t max);
void suite_pass(struct suite_world *world, int64_t duration_ms);

void call_store_suite_follows_a_model(void **state);

#endif
