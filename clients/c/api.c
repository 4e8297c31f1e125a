/* Requests to the HTTP API, in order over one connection. */
#include "api_internal.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { READ_BYTES = 16 * 1024, READS_AT_ONCE_MAX = 16 };

static const char *const METHODS[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};

void api_request_free(struct api_request **request)
{
    struct api_request *freed = *request;
    *request = NULL;
    if (!freed)
        return;
    free(freed->path);
    free(freed->json);
    free(freed);
}

/* ---- the connection ---- */

static void api_receive(struct rollcall_api *api)
{
    char data[READ_BYTES];
    for (unsigned reads = 0; api->link.fd >= 0 && reads < READS_AT_ONCE_MAX; reads++) {
        ssize_t got = link_receive(&api->link, data, sizeof(data));
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) {
            api_lost(api, "DISCONNECTED", got < 0 ? link_error(&api->link) : "the server hung up");
            return;
        }
        api_handle_bytes(api, data, (size_t)got);
    }
}

static void api_flush(struct rollcall_api *api)
{
    while (api->link.fd >= 0 && api->out_sent < api->out.len) {
        ssize_t went =
            link_send(&api->link, api->out.data + api->out_sent, api->out.len - api->out_sent);
        if (went < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOTCONN))
            return;
        if (went <= 0) {
            api_lost(api, "DISCONNECTED", went < 0 ? link_error(&api->link) : "the server hung up");
            return;
        }
        api->out_sent += (size_t)went;
    }
}

/* ---- requests ---- */

static bool api_write_request(struct rollcall_api *api, const struct api_request *request)
{
    struct buffer *out = &api->out;
    buffer_clear(out);
    api->out_sent = 0;
    buffer_printf(out, "%s %s HTTP/1.1\r\n", request->method, request->path);
    link_write_host(out, &api->link.target);
    buffer_printf(out, "Authorization: Bearer %s\r\n", api->token);
    if (request->json)
        buffer_append_text(out, "Content-Type: application/json\r\n");
    if (request->json || strcmp(request->method, "GET") != 0)
        buffer_printf(out, "Content-Length: %zu\r\n", request->json ? strlen(request->json) : 0);
    buffer_append_text(out, "\r\n");
    if (request->json)
        buffer_append_text(out, request->json);
    return !out->failed;
}

/* Sends the first request that waits. One that cannot be sent is answered, and the next is tried. */
static void api_begin(struct rollcall_api *api)
{
    while (api->requests && !api->sent) {
        api->deadline_ms = api->clock.now_ms + ROLLCALL_API_TIMEOUT_MS;
        const char *why = api->link.fd < 0 ? link_dial(&api->link, 0) : NULL;
        if (!why && !api_write_request(api, api->requests))
            why = "out of memory";
        api->sent = true;
        if (why)
            api_lost(api, "DISCONNECTED", why);
    }
}

void rollcall_api_process(struct rollcall_api *api, short revents)
{
    assert(!api->in_callback);
    clock_advance(&api->clock);
    bool tls_waits = link_begin_turn(&api->link);
    bool begins =
        api->requests && !api->sent; /* notice first that the server ended the connection */
    if (api->link.fd >= 0 && (tls_waits || begins || (revents & (POLLIN | POLLERR | POLLHUP))))
        api_receive(api);
    if (api->sent && api->clock.now_ms >= api->deadline_ms)
        api_lost(api, "TIMEOUT", "no answer in time");
    api_begin(api);
    if (api->link.fd >= 0 && (api->link.connected || (revents & POLLOUT)))
        api_flush(api);
}

int rollcall_api_fd(const struct rollcall_api *api)
{
    return api->link.fd;
}

short rollcall_api_poll_events(const struct rollcall_api *api)
{
    return link_poll_events(&api->link, api->out_sent < api->out.len);
}

int rollcall_api_wait_ms(const struct rollcall_api *api)
{
    struct clock clock;
    clock_advance(&clock);
    if (!api->requests)
        return -1;
    int64_t left_ms = api->sent ? api->deadline_ms - clock.now_ms : 0;
    return left_ms < 0 ? 0 : (int)left_ms;
}

static const char *api_find_method(const char *method)
{
    for (size_t i = 0; i < sizeof(METHODS) / sizeof(METHODS[0]); i++)
        if (strcmp(METHODS[i], method) == 0)
            return METHODS[i];
    return NULL;
}

/* A blank or a control character would end the path, and let a part of it become a header. */
static bool api_is_path(const char *path)
{
    bool is_printable = true;
    for (const char *at = path; *at; at++)
        is_printable &= *at > ' ' && *at < 0x7f;
    return path[0] == '/' && is_printable && strlen(path) < ROLLCALL_API_PATH_BYTES;
}

bool rollcall_api_request(struct rollcall_api *api, const char *method, const char *path,
                          const char *json, rollcall_api_answered *answered, void *arg)
{
    const char *known = api_find_method(method);
    if (!known || !api_is_path(path) || api->request_count == ROLLCALL_API_REQUESTS_MAX ||
        (json && strlen(json) > ROLLCALL_API_BODY_BYTES_MAX))
        return false;
    struct api_request *request = calloc(1, sizeof(*request));
    if (!request)
        return false;
    *request = (struct api_request){.method = known, .answered = answered, .arg = arg};
    request->path = strdup(path);
    request->json = json ? strdup(json) : NULL;
    if (!request->path || (json && !request->json)) {
        api_request_free(&request);
        return false;
    }
    struct api_request **end = &api->requests;
    while (*end)
        end = &(*end)->next;
    *end = request;
    api->request_count++;
    return true;
}

bool rollcall_api_path(char path[ROLLCALL_API_PATH_BYTES], const char *pattern, ...)
{
    struct buffer out = BUFFER_BOUNDED(ROLLCALL_API_PATH_BYTES);
    va_list texts;
    va_start(texts, pattern);
    for (const char *at = pattern; *at; at++) {
        if (at[0] == '{' && at[1] == '}') {
            link_write_escaped(&out, va_arg(texts, const char *));
            at++;
        } else {
            buffer_append_byte(&out, *at);
        }
    }
    va_end(texts);
    buffer_append_byte(&out, '\0');
    bool fits = !out.failed;
    if (fits)
        memcpy(path, out.data, out.len);
    buffer_free(&out);
    return fits;
}

/* ---- opening ---- */

struct rollcall_api *rollcall_api_open(const struct rollcall_api_options *options)
{
    struct rollcall_api *api = calloc(1, sizeof(*api));
    if (!api)
        return NULL;
    api->host = strdup(options->host);
    api->token = strdup(options->token);
    api->ca_file = options->ca_file ? strdup(options->ca_file) : NULL;
    api->fresh_token = options->fresh_token;
    api->arg = options->arg;
    api->answer = BUFFER_BOUNDED(ROLLCALL_API_ANSWER_BYTES_MAX + 1);
    api->link = (struct link){.fd = -1,
                              .target = {.host = api->host,
                                         .port = options->port,
                                         .tls = options->tls,
                                         .ca_file = api->ca_file}};
    clock_advance(&api->clock);
    if (!api->host || !api->token || (options->ca_file && !api->ca_file))
        rollcall_api_free(&api);
    return api;
}

void rollcall_api_free(struct rollcall_api **api)
{
    struct rollcall_api *freed = *api;
    *api = NULL;
    if (!freed)
        return;
    assert(!freed->in_callback);
    while (freed->requests) {
        struct api_request *next = freed->requests->next;
        api_request_free(&freed->requests);
        freed->requests = next;
    }
    link_free(&freed->link);
    buffer_free(&freed->out);
    buffer_free(&freed->in);
    buffer_free(&freed->answer);
    free(freed->host);
    free(freed->token);
    free(freed->ca_file);
    free(freed);
}
