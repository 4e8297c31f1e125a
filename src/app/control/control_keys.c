#include "app/control/control_keys.h"

#include "auth/api_key.h"
#include "base/buffer.h"
#include "ledger/ledger_keys.h"
#include "log/log.h"
#include "text/time_text.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

/* A call while the ledger works. */
struct key_call {
    control_done done;
    void *arg;
    char text[API_KEY_TEXT_LEN + 1]; /* of a new key, and a newline */
    size_t name_len;
    char name[API_KEY_NAME_BYTES_MAX];
};

bool control_keys_scope_valid(struct slice scope)
{
    size_t named = 0;
    while (scope.len) {
        struct slice name;
        scope = slice_split(scope, ' ', &name);
        if (name.len == 0)
            continue;
        if (!slice_is(name, "service") && !slice_is(name, "deliver") && !slice_is(name, "admin"))
            return false;
        named++;
    }
    return named > 0;
}

static void end_key_call(struct key_call *key, int exit_status, struct slice output,
                         const char *error)
{
    key->done(key->arg, exit_status, output, error ? slice_of(error) : SLICE_NONE);
    OPENSSL_cleanse(key->text, sizeof(key->text));
    free(key);
}

static const char *key_problem(enum ledger_status status)
{
    switch (status) {
    case LEDGER_CONFLICT:
        return "there is a key of this name: revoke it first, or choose another name";
    case LEDGER_LIMIT:
        return "there are 1000 keys: revoke some first";
    default:
        return "the ledger does not answer";
    }
}

static void on_key_created(void *arg, const struct ledger_change_outcome *outcome)
{
    struct key_call *key = arg;
    if (outcome->status != LEDGER_OK) {
        end_key_call(key, 1, SLICE_NONE, key_problem(outcome->status));
        return;
    }
    log_info("api_key_created", "name=%s", log_quote((struct slice){key->name, key->name_len}));
    end_key_call(key, 0, (struct slice){key->text, sizeof(key->text)}, NULL);
}

static void on_key_revoked(void *arg, const struct ledger_change_outcome *outcome)
{
    struct key_call *key = arg;
    if (outcome->status != LEDGER_OK) {
        end_key_call(key, 1, SLICE_NONE, key_problem(outcome->status));
        return;
    }
    log_info("api_key_revoked", "name=%s", log_quote((struct slice){key->name, key->name_len}));
    end_key_call(key, !outcome->changed, SLICE_NONE,
                 outcome->changed ? NULL : "there is no key of this name");
}

static void write_key_time(struct buffer *out, int64_t wall_ms)
{
    char text[TIME_TEXT_LEN];
    buffer_append_byte(out, '\t');
    if (wall_ms == 0) {
        buffer_append_text(out, "never");
        return;
    }
    time_text_write(text, wall_ms);
    buffer_append(out, text, sizeof(text));
}

static void on_key_list_read(void *arg, const struct ledger_keys_outcome *outcome)
{
    struct key_call *call = arg;
    struct buffer out = BUFFER_INIT;
    for (size_t i = 0; i < outcome->count; i++) {
        const struct ledger_key *key = &outcome->keys[i];
        buffer_append_slice(&out, key->name);
        buffer_append_byte(&out, '\t');
        buffer_append_slice(&out, key->scope);
        write_key_time(&out, key->created_at_ms);
        write_key_time(&out, key->last_used_ms);
        buffer_append_byte(&out, '\n');
    }
    if (outcome->status != LEDGER_OK)
        end_key_call(call, 1, SLICE_NONE, key_problem(outcome->status));
    else
        end_key_call(call, out.failed, buffer_slice(&out), out.failed ? "out of memory" : NULL);
    buffer_free(&out);
}

static void create_key(const struct control_call *call, struct key_call *key, struct slice scope)
{
    char hash[API_KEY_HASH_LEN];
    struct slice name = {key->name, key->name_len};
    bool made = api_key_make(call->random, key->text) &&
                api_key_hash((struct slice){key->text, API_KEY_TEXT_LEN}, hash);
    key->text[API_KEY_TEXT_LEN] = '\n';
    if (made)
        ledger_key_put(call->ledger, name, (struct slice){hash, sizeof(hash)}, scope,
                       on_key_created, key);
    else
        end_key_call(key, 1, SLICE_NONE, "out of memory");
}

void control_keys_run(const struct control_call *call)
{
    struct slice action = call->count > 1 ? call->arguments[1] : SLICE_NONE;
    struct slice name = call->count > 2 ? call->arguments[2] : SLICE_NONE;
    bool creates = slice_is(action, "create") && call->count == 4;
    bool revokes = slice_is(action, "revoke") && call->count == 3;
    bool lists = slice_is(action, "list") && call->count == 2;
    if ((!creates && !revokes && !lists) || (!lists && !api_key_name_valid(name)) ||
        (creates && !control_keys_scope_valid(call->arguments[3]))) {
        control_call_fail(call, "wrong arguments");
        return;
    }
    struct key_call *key = calloc(1, sizeof(*key));
    if (!key) {
        control_call_fail(call, "out of memory");
        return;
    }
    *key = (struct key_call){.done = call->done, .arg = call->arg, .name_len = name.len};
    if (name.len)
        memcpy(key->name, name.data, name.len);
    if (creates)
        create_key(call, key, call->arguments[3]);
    else if (revokes)
        ledger_key_delete(call->ledger, name, on_key_revoked, key);
    else
        ledger_keys_list(call->ledger, on_key_list_read, key);
}
