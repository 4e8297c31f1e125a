/*
 * The HTTP API of Rollcall for C: contacts, chats, settings, history and, with a service token or an API key, all of
 * the service API. docs/openapi.json describes the requests.
 *
 *     char path[ROLLCALL_API_PATH_BYTES];
 *     rollcall_api_path(path, "/v1/chats/{}/members/{}", "team", "bob");
 *     rollcall_api_request(api, "PUT", path, NULL, on_answer, arg);
 *
 * As with rollcall.h there are no threads, and nothing blocks except name resolution: your loop waits on the
 * descriptor and calls rollcall_api_process(). The requests of one `struct rollcall_api` go out in order, one at a
 * time, over one connection that is kept; open several for more at once. Each request gets exactly one answer, at
 * the latest ROLLCALL_API_TIMEOUT_MS after it was sent; rollcall_api_free() drops those that wait, unanswered.
 *
 * A 401 makes the client ask for a fresh token, once, and repeat the request. Other errors are yours to handle:
 * `code` is the server's (docs/PROTOCOL.md), or DISCONNECTED or TIMEOUT without an answer; the request may then have
 * taken effect. With RATE_LIMITED and SERVICE_UNAVAILABLE, wait for `retry_after_ms` before you try again.
 */
#ifndef ROLLCALL_API_H
#define ROLLCALL_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ROLLCALL_API_REQUESTS_MAX = 64, /* waiting at once */
    ROLLCALL_API_TIMEOUT_MS = 30000,
    ROLLCALL_API_PATH_BYTES = 4096,
    ROLLCALL_API_BODY_BYTES_MAX = 1 << 20,   /* of a request */
    ROLLCALL_API_ANSWER_BYTES_MAX = 8 << 20, /* a longer answer is TOO_LARGE */
};

struct rollcall_api;

struct rollcall_api_options {
    const char *host;
    uint16_t port;
    const char *token; /* of a user or a service, or an API key */
    /* Returns a fresh token after the server has refused the last one; may be NULL or return NULL. The client copies
     * it. It must not call the library. */
    const char *(*fresh_token)(void *arg);
    void *arg;
    bool tls;            /* as in struct rollcall_options */
    const char *ca_file; /* likewise */
};

/* Texts are terminated and never NULL, and valid during the callback. */
struct rollcall_api_answer {
    unsigned status;  /* of HTTP; 0: there was no answer */
    const char *code; /* "" for 2xx */
    const char *text; /* explains the code for people */
    const char *json; /* the body; "" for none */
    size_t json_len;
    int64_t retry_after_ms; /* 0: the server did not say */
};

/* May call rollcall_api_request(), but neither rollcall_api_process() nor rollcall_api_free(). */
typedef void rollcall_api_answered(void *arg, const struct rollcall_api_answer *answer);

/* Returns NULL when out of memory. Connects with the first request. */
struct rollcall_api *rollcall_api_open(const struct rollcall_api_options *options);
void rollcall_api_free(struct rollcall_api **api);

/* For your loop, as in rollcall.h. */
int rollcall_api_fd(const struct rollcall_api *api);
short rollcall_api_poll_events(const struct rollcall_api *api);
int rollcall_api_wait_ms(const struct rollcall_api *api);
void rollcall_api_process(struct rollcall_api *api, short revents);

/* Replaces each "{}" of the pattern with the next text, escaped. Returns false if the path is too long. */
bool rollcall_api_path(char path[ROLLCALL_API_PATH_BYTES], const char *pattern, ...);

/* Queues a request; everything is copied. `json` is the body, or NULL. Returns false and calls nothing if too many
 * are waiting, or the method, the path or the body cannot be sent. */
bool rollcall_api_request(struct rollcall_api *api, const char *method, const char *path,
                          const char *json, rollcall_api_answered *answered, void *arg);

#ifdef __cplusplus
}
#endif

#endif
