#include "api_internal.h"

#include "answer_head.h"
#include "text/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HEAD_BYTES_MAX = 16 * 1024 };

/* For answers without an error object, such as those of a proxy. */
static const char *api_code_of_status(unsigned status)
{
    static const struct {
        unsigned status;
        const char *code;
    } CODES[] = {{400, "INVALID_MESSAGE"}, {401, "UNAUTHENTICATED"},   {403, "FORBIDDEN"},
                 {404, "NOT_FOUND"},       {413, "MESSAGE_TOO_LARGE"}, {429, "RATE_LIMITED"}};
    for (size_t i = 0; i < sizeof(CODES) / sizeof(CODES[0]); i++)
        if (CODES[i].status == status)
            return CODES[i].code;
    return "SERVICE_UNAVAILABLE";
}

struct api_error {
    struct slice code;
    struct slice text;
    double retry_after_s;
};

static bool api_read_error_member(struct json *json, struct slice key, struct api_error *error)
{
    enum json_type type = json_peek(json);
    if (slice_is(key, "code") && type == JSON_STRING)
        return json_string(json, &error->code);
    if (slice_is(key, "message") && type == JSON_STRING)
        return json_string(json, &error->text);
    if (slice_is(key, "retry_after_seconds") && type == JSON_NUMBER)
        return json_double(json, &error->retry_after_s);
    return json_skip(json);
}

/* Reads {"error":{…}}; the slices point into the text, which parsing changes. */
static void api_read_error(char *text, size_t len, struct api_error *error)
{
    struct json json;
    struct slice key;
    json_init(&json, text, len);
    json_object(&json);
    while (json_member(&json, &key)) {
        if (!slice_is(key, "error") || json_peek(&json) != JSON_OBJECT) {
            json_skip(&json);
            continue;
        }
        json_object(&json);
        while (json_member(&json, &key))
            api_read_error_member(&json, key, error);
    }
}

/* Terminates a slice in place: the byte behind it is a quote or the end of the answer. */
static const char *api_terminate(struct slice text, const char *otherwise)
{
    if (!text.data)
        return otherwise;
    ((char *)text.data)[text.len] = '\0';
    return text.data;
}

/* The first request is done; the callback may queue others. */
static void api_answer(struct rollcall_api *api, const struct rollcall_api_answer *answer)
{
    struct api_request *done = api->requests;
    api->requests = done->next;
    api->request_count--;
    api->sent = false;
    api->in_callback = true;
    done->answered(done->arg, answer);
    api->in_callback = false;
    api_request_free(&done);
}

static void api_answer_failure(struct rollcall_api *api, const char *code, const char *why)
{
    api_answer(api, &(struct rollcall_api_answer){.code = code, .text = why, .json = ""});
}

/* ---- the end of a connection ---- */

static void api_drop(struct rollcall_api *api)
{
    link_drop(&api->link);
    api->kept = api->has_head = false;
    api->out_sent = 0;
    buffer_clear(&api->out);
    buffer_clear(&api->in);
    buffer_clear(&api->answer);
}

/* A kept connection may have ended before the server saw the request: then it is sent again, unless that could make
 * it take effect twice. */
void api_lost(struct rollcall_api *api, const char *code, const char *why)
{
    struct api_request *request = api->sent ? api->requests : NULL;
    bool was_unseen = api->kept && !api->has_head && api->in.len == 0;
    char text[LINK_ERROR_BYTES];
    snprintf(text, sizeof(text), "%s", why); /* it may be the link's own */
    api_drop(api);
    api->sent = false;
    if (!request)
        return;
    if (was_unseen && !request->repeated && strcmp(request->method, "POST") != 0 &&
        strcmp(code, "DISCONNECTED") == 0)
        request->repeated = true;
    else
        api_answer_failure(api, code, text);
}

static bool api_replace_token(struct rollcall_api *api)
{
    const char *fresh = api->fresh_token ? api->fresh_token(api->arg) : NULL;
    char *copy = fresh ? strdup(fresh) : NULL;
    if (!copy)
        return false;
    free(api->token);
    api->token = copy;
    return true;
}

static void api_answer_error(struct rollcall_api *api, struct rollcall_api_answer *answer)
{
    char *parsed = malloc(answer->json_len + 1); /* a proxy's answer may have any bytes */
    struct api_error error = {0};
    if (parsed) {
        memcpy(parsed, answer->json, answer->json_len + 1);
        api_read_error(parsed, answer->json_len, &error);
    }
    answer->code = api_terminate(error.code, api_code_of_status(answer->status));
    answer->text = api_terminate(error.text, "the server answered with an error");
    if (error.retry_after_s > 0 && error.retry_after_s < INT32_MAX)
        answer->retry_after_ms = (int64_t)(error.retry_after_s * 1000);
    api_answer(api, answer);
    free(parsed);
}

/* The answer is complete. The buffer is detached, because the callback may begin the next request. */
static void on_answer_complete(struct rollcall_api *api)
{
    unsigned status = api->status;
    struct api_request *request = api->requests;
    struct buffer body = api->answer;
    api->answer = BUFFER_BOUNDED(ROLLCALL_API_ANSWER_BYTES_MAX + 1);
    api->has_head = false;
    api->kept = true;
    if (api->closes)
        api_drop(api);
    buffer_append_byte(&body, '\0');
    if (status == 401 && !request->repeated && api_replace_token(api)) {
        request->repeated = true;
        api->sent = false;
    } else if (body.failed) {
        api_answer_failure(api, "TOO_LARGE", "the answer is too long, or memory ran out");
    } else {
        struct rollcall_api_answer answer = {.status = status,
                                             .code = "",
                                             .text = "",
                                             .json = body.data,
                                             .json_len = body.len - 1,
                                             .retry_after_ms = api->retry_after_ms};
        if (status / 100 == 2)
            api_answer(api, &answer);
        else
            api_answer_error(api, &answer);
    }
    buffer_free(&body);
}

static void api_begin_body(struct rollcall_api *api, struct slice head)
{
    struct slice coding = answer_head_value(head, "Transfer-Encoding");
    struct slice length = answer_head_value(head, "Content-Length");
    struct http1_head framing = {.chunked = coding.len > 0,
                                 .content_length = answer_head_number(length)};
    struct slice connection = answer_head_value(head, "Connection");
    api->closes = connection.len == 5 && strncasecmp(connection.data, "close", 5) == 0;
    api->retry_after_ms =
        (int64_t)answer_head_number(answer_head_value(head, "Retry-After")) * 1000;
    http1_body_start(&api->body, &framing, ROLLCALL_API_ANSWER_BYTES_MAX);
    api->has_head = true;
}

static void api_handle_body(struct rollcall_api *api, struct slice input)
{
    struct slice data;
    for (;;) {
        switch (http1_body_decode(&api->body, &input, &data)) {
        case HTTP1_BODY_DATA:
            buffer_append_slice(&api->answer, data);
            break;
        case HTTP1_BODY_END:
            on_answer_complete(api);
            return;
        case HTTP1_BODY_ERROR:
            api_lost(api, "TOO_LARGE", "the answer is too long or malformed");
            return;
        case HTTP1_BODY_NEED_MORE:
            return;
        }
    }
}

void api_handle_bytes(struct rollcall_api *api, const char *data, size_t len)
{
    if (!api->sent) {
        api_drop(api); /* bytes that answer nothing, such as a 408 */
        return;
    }
    if (api->has_head) {
        api_handle_body(api, (struct slice){data, len});
        return;
    }
    buffer_append(&api->in, data, len);
    struct slice head = answer_head_find(buffer_slice(&api->in));
    if (api->in.failed || (!head.data && api->in.len > HEAD_BYTES_MAX)) {
        api_lost(api, "TOO_LARGE", "the head of the answer is too long");
        return;
    }
    if (!head.data)
        return;
    api->status = answer_head_status(head);
    if (api->status < 200) {
        api_lost(api, "DISCONNECTED", "the answer is not HTTP/1.1");
        return;
    }
    api_begin_body(api, head);
    struct buffer input = api->in; /* must outlive a connection that ends meanwhile */
    api->in = BUFFER_INIT;
    api_handle_body(api, slice_after(buffer_slice(&input), head.len + 2));
    buffer_free(&input);
}
