#include "redis/protocol/redis_handshake.h"

#include <stdio.h>

static void handshake_write_step(struct redis_handshake *handshake, enum redis_step step,
                                 struct buffer *out, const struct slice *arguments, size_t count)
{
    resp_write_command(out, arguments, count);
    handshake->steps[handshake->step_count++] = step;
}

void redis_handshake_begin(struct redis_handshake *handshake, const struct redis_identity *identity,
                           struct buffer *out)
{
    struct slice args[7] = {SLICE("HELLO"), SLICE("3")};
    size_t count = 2;
    *handshake = (struct redis_handshake){.identity = identity};
    if (identity->password[0]) {
        args[count++] = SLICE("AUTH");
        args[count++] = slice_of(identity->user[0] ? identity->user : "default");
        args[count++] = slice_of(identity->password);
    }
    if (identity->name[0]) {
        args[count++] = SLICE("SETNAME");
        args[count++] = slice_of(identity->name);
    }
    handshake_write_step(handshake, REDIS_STEP_HELLO, out, args, count);
}

static void handshake_write_select_and_ping(struct redis_handshake *handshake, struct buffer *out)
{
    char number[12];
    if (handshake->identity->database > 0) {
        snprintf(number, sizeof(number), "%u", handshake->identity->database);
        handshake_write_step(handshake, REDIS_STEP_SELECT, out,
                             (const struct slice[]){SLICE("SELECT"), slice_of(number)}, 2);
    }
    handshake_write_step(handshake, REDIS_STEP_PING, out, (const struct slice[]){SLICE("PING")}, 1);
}

static void handshake_write_version_2(struct redis_handshake *handshake, struct buffer *out)
{
    const struct redis_identity *identity = handshake->identity;
    const struct slice login[] = {SLICE("AUTH"), slice_of(identity->user),
                                  slice_of(identity->password)};
    const struct slice password[] = {SLICE("AUTH"), slice_of(identity->password)};
    handshake->version_2 = true;
    handshake->step = handshake->step_count = 0;
    if (identity->password[0] && identity->user[0])
        handshake_write_step(handshake, REDIS_STEP_AUTH, out, login, 3);
    else if (identity->password[0])
        handshake_write_step(handshake, REDIS_STEP_AUTH, out, password, 2);
    if (identity->name[0])
        handshake_write_step(
            handshake, REDIS_STEP_NAME, out,
            (const struct slice[]){SLICE("CLIENT"), SLICE("SETNAME"), slice_of(identity->name)}, 3);
    handshake_write_select_and_ping(handshake, out);
}

/* The value of a field in the reply to HELLO; SLICE_NONE when it is missing. */
static struct slice handshake_hello_field(const struct resp_value *hello, const char *name)
{
    for (size_t i = 0; hello->type == RESP_ARRAY && i + 1 < hello->count; i += 2)
        if (slice_is(hello->items[i].text, name))
            return hello->items[i + 1].text;
    return SLICE_NONE;
}

static enum redis_handshake_result handshake_fail(const struct resp_value *reply,
                                                  enum redis_step step, enum redis_problem *problem)
{
    *problem = redis_problem_of(reply);
    if (*problem == REDIS_FINE &&
        slice_starts_with(reply->text, SLICE("ERR max number of clients")))
        *problem = REDIS_CROWDED;
    if (*problem == REDIS_FINE)
        *problem = step == REDIS_STEP_AUTH ? REDIS_LOGIN_REFUSED : REDIS_HANDSHAKE_REFUSED;
    return REDIS_HANDSHAKE_FAILED;
}

enum redis_handshake_result redis_handshake_answer(struct redis_handshake *handshake,
                                                   const struct resp_value *reply,
                                                   struct buffer *out, enum redis_problem *problem)
{
    enum redis_step step = handshake->steps[handshake->step++];
    bool failed = reply->type == RESP_ERROR;
    bool has_hello = !resp_is_error(reply, "NOPROTO") &&
                     !slice_starts_with(reply->text, SLICE("ERR unknown command"));
    if (step == REDIS_STEP_HELLO && failed && !has_hello) {
        handshake_write_version_2(handshake, out);
        return REDIS_HANDSHAKE_RUNNING;
    }
    if (failed && step != REDIS_STEP_NAME) /* some services refuse SETNAME */
        return handshake_fail(reply, step, problem);
    if (step == REDIS_STEP_PING && !slice_is(reply->text, "PONG")) {
        *problem = REDIS_NOT_UNDERSTOOD;
        return REDIS_HANDSHAKE_FAILED;
    }
    if (step == REDIS_STEP_HELLO) {
        struct slice role = handshake_hello_field(reply, "role");
        bool is_cluster = slice_is(handshake_hello_field(reply, "mode"), "cluster");
        bool is_replica = role.data && !slice_is(role, "master");
        if (handshake->identity->alone && (is_cluster || is_replica)) {
            *problem = is_cluster ? REDIS_CLUSTER_ON : REDIS_READ_ONLY;
            return REDIS_HANDSHAKE_FAILED;
        }
        handshake->step = handshake->step_count = 0;
        handshake_write_select_and_ping(handshake, out);
    }
    return handshake->step < handshake->step_count ? REDIS_HANDSHAKE_RUNNING : REDIS_HANDSHAKE_DONE;
}
