#include "hooks/connect_hook.h"

#include "auth/jwt_claims.h"
#include "base/buffer.h"
#include "log/log.h"
#include "text/display_name.h"
#include "text/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNDECIDED_TEXT "the application cannot decide about this connection at present"
#define REFUSED_TEXT "the application refused this connection"

enum { REFUSAL_BYTES_MAX = 256 };

struct connect_question {
    uint32_t scopes; /* of the token */
    connect_hook_done done;
    void *arg;
};

/* ---- the question ---- */

static void write_connect_scope(struct buffer *out, const struct identity *identity)
{
    static const struct {
        enum identity_scope scope;
        const char *name;
    } scopes[] = {{IDENTITY_SCOPE_ADMIN, "admin"},
                  {IDENTITY_SCOPE_DELIVER, "deliver"},
                  {IDENTITY_SCOPE_SERVICE, "service"}};
    struct buffer text = BUFFER_INIT;
    for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++)
        if (identity_has_scope(identity, scopes[i].scope))
            buffer_printf(&text, "%s%s", text.len ? " " : "", scopes[i].name);
    out->failed = out->failed || text.failed;
    json_write_key_string(out, SLICE("scope"), buffer_slice(&text));
    buffer_free(&text);
}

static struct buffer write_connect_question(const struct identity *identity, struct slice device_id,
                                            const struct ulid *conn_id)
{
    char conn_text[ULID_TEXT_LEN];
    struct buffer json = BUFFER_INIT;
    ulid_write(conn_text, conn_id);
    json_write_object(&json);
    json_write_key_string(&json, SLICE("user_id"), identity_user(identity));
    json_write_key_string(&json, SLICE("device_id"), device_id);
    json_write_key_string(&json, SLICE("conn_id"), (struct slice){conn_text, sizeof(conn_text)});
    write_connect_scope(&json, identity);
    json_write_object_end(&json);
    return json;
}

/* ---- the answer ---- */

struct connect_fields {
    bool has_allow, allow, has_message, has_scope, has_display_name;
    struct slice message, scope, display_name;
};

/* null counts as absent. */
static bool read_connect_text(struct json *json, bool *has, struct slice *text)
{
    if (json_peek(json) == JSON_NULL)
        return json_null(json);
    *has = true;
    return json_string(json, text);
}

/* Reads a copy, since strings are unescaped in place. Returns NULL, or what is wrong. */
static const char *read_connect_fields(struct buffer *copy, struct connect_fields *out)
{
    struct json json;
    struct slice key;
    bool is_read = true;
    json_init(&json, copy->data, copy->len);
    json_object(&json);
    while (is_read && json_member(&json, &key)) {
        if (slice_is(key, "allow"))
            is_read = out->has_allow = json_bool(&json, &out->allow);
        else if (slice_is(key, "message"))
            is_read = read_connect_text(&json, &out->has_message, &out->message);
        else if (slice_is(key, "scope"))
            is_read = read_connect_text(&json, &out->has_scope, &out->scope);
        else if (slice_is(key, "display_name"))
            is_read = read_connect_text(&json, &out->has_display_name, &out->display_name);
        else
            is_read = json_skip(&json);
    }
    if (!is_read || !json_done(&json))
        return "it is not an object with the right fields";
    if (!out->has_allow)
        return "allow must be true or false";
    if (out->has_display_name && !display_name_valid(out->display_name))
        return "display_name has at most 64 characters and no control characters";
    return NULL;
}

static uint32_t grant_connect_scopes(struct slice scope, uint32_t of_token)
{
    uint32_t reserved = IDENTITY_SCOPE_ADMIN | IDENTITY_SCOPE_SERVICE;
    return jwt_claims_scopes(scope) & (of_token | ~reserved);
}

static void judge_connect_fields(const struct connect_question *question,
                                 const struct connect_fields *fields, char text[REFUSAL_BYTES_MAX],
                                 struct connect_answer *out)
{
    if (fields->allow) {
        out->verdict = CONNECT_ACCEPTED;
        out->display_name = fields->has_display_name ? fields->display_name : SLICE_NONE;
        out->has_scope = fields->has_scope;
        out->scopes = grant_connect_scopes(fields->scope, question->scopes);
        return;
    }
    out->verdict = CONNECT_REFUSED;
    snprintf(text, REFUSAL_BYTES_MAX, "%.*s", SLICE_FORMAT(fields->message));
    out->text = fields->has_message ? text : REFUSED_TEXT;
}

static void on_connect_answered(void *arg, const struct hook_answer *hook_answer)
{
    struct connect_question *question = arg;
    struct connect_answer answer = {.verdict = CONNECT_UNDECIDED, .text = UNDECIDED_TEXT};
    struct connect_fields fields = {0};
    struct buffer copy = BUFFER_INIT; /* strings are unescaped in place */
    char text[REFUSAL_BYTES_MAX];
    const char *problem = NULL;
    if (hook_answer->body.len)
        buffer_append_slice(&copy, hook_answer->body);
    if (hook_answer->result == HOOK_REFUSED) {
        answer = (struct connect_answer){.verdict = CONNECT_REFUSED, .text = REFUSED_TEXT};
    } else if (hook_answer->result == HOOK_ACCEPTED && !hook_answer->body.len) {
        answer.verdict = CONNECT_ACCEPTED;
    } else if (hook_answer->result == HOOK_ACCEPTED) {
        problem = copy.failed ? "out of memory" : read_connect_fields(&copy, &fields);
        if (!problem)
            judge_connect_fields(question, &fields, text, &answer);
    }
    if (problem)
        log_warn("connect_hook_answer", "problem=%s", log_sentence(slice_of(problem)));
    question->done(question->arg, &answer);
    buffer_free(&copy);
    free(question);
}

void connect_hook_ask(struct hook *hook, const struct identity *identity, struct slice device_id,
                      const struct ulid *conn_id, connect_hook_done done, void *arg)
{
    struct buffer body = write_connect_question(identity, device_id, conn_id);
    struct connect_question *question = body.failed ? NULL : malloc(sizeof(*question));
    enum hook_admission admission = HOOK_TOO_MANY;
    if (question) {
        *question = (struct connect_question){identity->scopes, done, arg};
        admission = hook_ask(hook, buffer_slice(&body), on_connect_answered, question);
    }
    buffer_free(&body);
    if (admission == HOOK_ADMITTED)
        return;
    free(question);
    done(arg, &(struct connect_answer){.verdict = CONNECT_UNDECIDED, .text = UNDECIDED_TEXT});
}
