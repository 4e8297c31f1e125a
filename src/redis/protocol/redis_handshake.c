#include "redis/protocol/redis_handshake.h"

#include <stdio.h>

static void ask(struct redis_handshake *handshake, enum redis_step step, struct buffer *out,
                const struct slice *arguments, size_t count)
{
    resp_write_command(out, arguments, count);
    handshake->steps[handshake->step_count++] = step;
}

static void start_over(struct redis_handshake *handshake)
{
    handshake->step = 0;
    handshake->step_count = 0;
}

void redis_handshake_begin(struct redis_handshake *handshake, const struct redis_identity *identity,
                           struct buffer *out)
{
    struct slice words[7] = {SLICE("HELLO"), SLICE("3")};
    size_t count = 2;
    *handshake = (struct redis_handshake){.identity = identity};
    if (identity->password[0]) {
        words[count++] = SLICE("AUTH");
        words[count++] = slice_of(identity->user[0] ? identity->user : "default");
        words[count++] = slice_of(identity->password);
    }
    if (identity->name[0]) {
        words[count++] = SLICE("SETNAME");
        words[count++] = slice_of(identity->name);
    }
    ask(handshake, REDIS_STEP_HELLO, out, words, count);
}

static void ask_for_database(struct redis_handshake *handshake, struct buffer *out)
{
    char number[12];
    if (handshake->identity->database > 0) {
        snprintf(number, sizeof(number), "%u", handshake->identity->database);
        ask(handshake, REDIS_STEP_SELECT, out,
            (const struct slice[]){SLICE("SELECT"), slice_of(number)}, 2);
    }
    ask(handshake, REDIS_STEP_PING, out, (const struct slice[]){SLICE("PING")}, 1);
}

static void ask_in_version_2(struct redis_handshake *handshake, struct buffer *out)
{
    const struct redis_identity *identity = handshake->identity;
    const struct slice login[] = {SLICE("AUTH"), slice_of(identity->user),
                                  slice_of(identity->password)};
    const struct slice password[] = {SLICE("AUTH"), slice_of(identity->password)};
    handshake->version_2 = true;
    start_over(handshake);
    if (identity->password[0] && identity->user[0])
        ask(handshake, REDIS_STEP_AUTH, out, login, 3);
    else if (identity->password[0])
        ask(handshake, REDIS_STEP_AUTH, out, password, 2);
    if (identity->name[0])
        ask(handshake, REDIS_STEP_NAME, out,
            (const struct slice[]){SLICE("CLIENT"), SLICE("SETNAME"), slice_of(identity->name)}, 3);
    ask_for_database(handshake, out);
}

/* What HELLO says of the server under that name; SLICE_NONE when it does not. */
static struct slice server_fact(const struct resp_value *hello, const char *name)
{
    for (size_t i = 0; hello->type == RESP_ARRAY && i + 1 < hello->count; i += 2)
        if (slice_is(hello->items[i].text, name))
            return hello->items[i + 1].text;
    return SLICE_NONE;
}

/* Why a server alone would not do; REDIS_FINE when it does. */
static enum redis_problem problem_of_single(const struct resp_value *hello)
{
    struct slice role = server_fact(hello, "role");
    if (slice_is(server_fact(hello, "mode"), "cluster"))
        return REDIS_CLUSTER_ON;
    return role.data && !slice_is(role, "master") ? REDIS_READ_ONLY : REDIS_FINE;
}

static bool knows_no_hello(const struct resp_value *reply)
{
    return resp_is_error(reply, "NOPROTO") ||
           slice_starts_with(reply->text, SLICE("ERR unknown command"));
}

static enum redis_handshake_result refuse(const struct resp_value *reply, enum redis_step step,
                                          enum redis_problem *problem)
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
    if (step == REDIS_STEP_HELLO && failed && knows_no_hello(reply)) {
        ask_in_version_2(handshake, out);
        return REDIS_HANDSHAKE_RUNNING;
    }
    if (failed && step != REDIS_STEP_NAME) /* some services allow no names */
        return refuse(reply, step, problem);
    if (step == REDIS_STEP_PING && !slice_is(reply->text, "PONG")) {
        *problem = REDIS_NOT_UNDERSTOOD;
        return REDIS_HANDSHAKE_FAILED;
    }
    if (step == REDIS_STEP_HELLO) {
        *problem = handshake->identity->alone ? problem_of_single(reply) : REDIS_FINE;
        if (*problem != REDIS_FINE)
            return REDIS_HANDSHAKE_FAILED;
        start_over(handshake);
        ask_for_database(handshake, out);
    }
    return handshake->step < handshake->step_count ? REDIS_HANDSHAKE_RUNNING : REDIS_HANDSHAKE_DONE;
}
