/*
 * Holds the model of a cluster to a real one of three masters: random commands go to random servers of both while slots move between
 * them, and the answers must be the same bytes: redirections, refusals and values. The seed of a run is printed; REDIS_MODEL_SEED
 * repeats it, REDIS_MODEL_STEPS makes it longer.
 */
#include "redis_model/model_cluster.h"

#include "base/random.h"
#include "support/redis_server.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    MASTERS = REDIS_CLUSTER_MASTERS,
    STEPS = 5000,
    ARGUMENTS_MAX = 10,
    TAGS = 6,
    NAMES = 3,
    PATIENCE_MS = 20000,
    STEP_MS = 5
};

/* The tags are of different slots, and every master has some. */
static const char *const TAG[TAGS] = {"a", "b", "c", "d", "user-1", "user-2"};

struct clusters {
    struct redis_server *servers;
    int fds[MASTERS];
    struct model_cluster cluster;
    struct redis_model models[MASTERS];
    struct redis_session sessions[MASTERS];
    struct random random;
    struct buffer sent; /* the last command, for messages */
    unsigned step;
};

/* ---- both sides ---- */

static int64_t read_wall_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int connect_to(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void ask_real(int fd, struct slice command, struct buffer *answer)
{
    struct resp_parser parser = {0};
    const struct resp_value *value;
    size_t len;
    assert_int_equal(send(fd, command.data, command.len, 0), command.len);
    while (resp_parse(&parser, buffer_slice(answer), &value, &len) == RESP_INCOMPLETE) {
        assert_true(buffer_reserve(answer, 4096));
        ssize_t got = recv(fd, answer->data + answer->len, 4096, 0);
        assert_true(got > 0);
        answer->len += (size_t)got;
    }
    resp_parser_free(&parser);
}

/* The prose behind "-ERR" is Redis's own. */
static struct slice comparable(struct slice answer)
{
    return slice_starts_with(answer, SLICE("-ERR ")) ? slice_first(answer, 5) : answer;
}

/* Sends the words, which NULL ends, to one server of both. Returns whether the answer is no error. */
static bool compare(struct clusters *both, size_t at, ...)
{
    struct buffer real = BUFFER_INIT, modelled = BUFFER_INIT;
    struct slice args[ARGUMENTS_MAX];
    size_t count = 0;
    const char *word;
    va_list words;
    va_start(words, at);
    while ((word = va_arg(words, const char *)) && count < ARGUMENTS_MAX)
        args[count++] = slice_of(word);
    va_end(words);
    buffer_clear(&both->sent);
    resp_write_command(&both->sent, args, count);
    ask_real(both->fds[at], buffer_slice(&both->sent), &real);
    both->models[at].now_us = read_wall_us();
    redis_session_receive(&both->sessions[at], buffer_slice(&both->sent));
    buffer_append_slice(&modelled, buffer_slice(&both->sessions[at].out));
    buffer_clear(&both->sessions[at].out);
    if (!slice_equal(comparable(buffer_slice(&real)), comparable(buffer_slice(&modelled))))
        fail_msg("step %u at %zu: %.*s\nRedis: %.*s\nmodel: %.*s", both->step, at,
                 (int)both->sent.len, both->sent.data, (int)real.len, real.data, (int)modelled.len,
                 modelled.data);
    bool works = real.data[0] != '-';
    buffer_free(&real);
    buffer_free(&modelled);
    return works;
}

/* ---- random commands ---- */

static size_t draw(struct clusters *both, size_t below)
{
    return (size_t)random_below(&both->random, below);
}

static const char *draw_key(struct clusters *both, const char *tag, char key[32])
{
    snprintf(key, 32, "{%s}%zu", tag, draw(both, NAMES));
    return key;
}

/* The second key is mostly in the slot of the first. */
static void compare_random(struct clusters *both)
{
    static const char SCRIPT[] = "redis.call('INCR', KEYS[1]) return redis.call('EXISTS', ARGV[1])";
    char one[32], two[32];
    const char *tag = TAG[draw(both, TAGS)];
    size_t at = draw(both, MASTERS);
    draw_key(both, tag, one);
    draw_key(both, draw(both, 6) ? tag : TAG[draw(both, TAGS)], two);
    if (draw(both, 3) == 0)
        compare(both, at, "ASKING", NULL);
    switch (draw(both, 10)) {
    case 0:
        compare(both, at, "SET", one, two, NULL);
        break;
    case 1:
        compare(both, at, "GET", one, NULL);
        break;
    case 2:
        compare(both, at, "MGET", one, two, NULL);
        break;
    case 3:
        compare(both, at, "DEL", one, two, NULL);
        break;
    case 4:
        compare(both, at, "EXISTS", one, two, one, NULL);
        break;
    case 5:
        compare(both, at, "EVAL", SCRIPT, "1", one, two, NULL);
        break;
    case 6:
        compare(both, at, "EVAL", "return #KEYS", "2", one, two, NULL);
        break;
    case 7:
        compare(both, at, "SPUBLISH", one, "text", NULL);
        break;
    case 8:
        compare(both, at, "PING", NULL);
        break;
    default:
        compare(both, at, "CLUSTER", "KEYSLOT", two, NULL);
    }
}

/* ---- slots that move ---- */

struct move {
    char slot[8];
    char port[8];
    const char *tag;
    size_t from;
    size_t to;
};

static void migrate_names(struct clusters *both, const struct move *move)
{
    for (size_t i = 0; i < NAMES; i++) {
        char key[32];
        snprintf(key, sizeof(key), "{%s}%zu", move->tag, i);
        for (size_t more = draw(both, 30); more > 0; more--)
            compare_random(both);
        compare(both, move->from, "MIGRATE", "127.0.0.1", move->port, key, "0", "5000", "REPLACE",
                NULL);
    }
}

/* The target claims the slot with a new epoch. A server that is told of it before it knows that epoch may lose it again to an old
 * claim of the source, so the others hear of it from the target. */
static void await_redirection(struct clusters *both, const struct move *move, size_t at)
{
    char key[32];
    struct buffer command = BUFFER_INIT;
    snprintf(key, sizeof(key), "{%s}0", move->tag);
    const struct slice args[] = {SLICE("GET"), slice_of(key)};
    resp_write_command(&command, args, 2);
    bool is_redirected = false;
    for (int waited_ms = 0; !is_redirected && waited_ms < PATIENCE_MS; waited_ms += STEP_MS) {
        struct buffer answer = BUFFER_INIT;
        ask_real(both->fds[at], buffer_slice(&command), &answer);
        is_redirected = slice_starts_with(buffer_slice(&answer), SLICE("-MOVED")) &&
                        memmem(answer.data, answer.len, move->port, strlen(move->port));
        buffer_free(&answer);
        if (!is_redirected)
            usleep(STEP_MS * 1000);
    }
    buffer_free(&command);
    assert_true(is_redirected);
}

/* While the slot is open commands may have made keys anew, at the source too. */
static void move_slot(struct clusters *both)
{
    struct move move = {.tag = TAG[draw(both, TAGS)]};
    unsigned slot = redis_slot(slice_of(move.tag));
    move.from = both->cluster.owner[slot];
    move.to = (move.from + 1 + draw(both, MASTERS - 1)) % MASTERS;
    snprintf(move.slot, sizeof(move.slot), "%u", slot);
    snprintf(move.port, sizeof(move.port), "%u", both->servers[move.to].port);
    const char *from_id = both->cluster.nodes[move.from].id;
    const char *to_id = both->cluster.nodes[move.to].id;
    assert_true(
        compare(both, move.to, "CLUSTER", "SETSLOT", move.slot, "IMPORTING", from_id, NULL));
    assert_true(
        compare(both, move.from, "CLUSTER", "SETSLOT", move.slot, "MIGRATING", to_id, NULL));
    migrate_names(both, &move);
    compare(both, move.from, "CLUSTER", "COUNTKEYSINSLOT", move.slot, NULL);
    compare(both, move.to, "CLUSTER", "COUNTKEYSINSLOT", move.slot, NULL);
    assert_true(compare(both, move.to, "CLUSTER", "SETSLOT", move.slot, "NODE", to_id, NULL));
    for (size_t i = 0; i < MASTERS; i++)
        if (i != move.to)
            await_redirection(both, &move, i);
    assert_true(compare(both, move.from, "CLUSTER", "SETSLOT", move.slot, "NODE", to_id, NULL));
}

/* ---- the test ---- */

static long read_environment(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

static void open_clusters(struct clusters *both, struct redis_server *servers, uint64_t seed)
{
    *both = (struct clusters){.servers = servers};
    random_init_seeded(&both->random, seed);
    model_cluster_init(&both->cluster);
    for (size_t i = 0; i < MASTERS; i++) {
        char id[REDIS_SERVER_REPLY_MAX];
        redis_cluster_id(&servers[i], id);
        both->fds[i] = connect_to(servers[i].port);
        redis_model_init(&both->models[i], read_wall_us(), seed);
        model_cluster_add(&both->cluster, &both->models[i], id, "127.0.0.1", servers[i].port);
        model_cluster_assign(&both->cluster, (unsigned)(i * REDIS_SLOTS / MASTERS),
                             (unsigned)((i + 1) * REDIS_SLOTS / MASTERS - 1), i);
        redis_session_open(&both->sessions[i], &both->models[i]);
    }
}

static void close_clusters(struct clusters *both)
{
    for (size_t i = 0; i < MASTERS; i++) {
        redis_session_close(&both->sessions[i]);
        redis_model_free(&both->models[i]);
        close(both->fds[i]);
    }
    buffer_free(&both->sent);
}

static void test_model_answers_as_a_cluster_does(void **state)
{
    static struct clusters both;
    long seed = read_environment("REDIS_MODEL_SEED", (long)(read_wall_us() & 0xffffff));
    unsigned steps = (unsigned)read_environment("REDIS_MODEL_STEPS", STEPS);
    print_message("REDIS_MODEL_SEED=%ld\n", seed);
    open_clusters(&both, *state, (uint64_t)seed);
    for (both.step = 0; both.step < steps; both.step++) {
        if (draw(&both, 200) == 0)
            move_slot(&both);
        else
            compare_random(&both);
    }
    close_clusters(&both);
}

/* A subscriber hears that its channel's slot has moved. */
static void test_model_ends_subscriptions_of_moved_slots_as_a_cluster_does(void **state)
{
    static struct clusters both;
    open_clusters(&both, *state, 1);
    unsigned slot = redis_slot(SLICE("{moved}"));
    size_t from = both.cluster.owner[slot], to = (from + 1) % MASTERS;
    char text[8];
    snprintf(text, sizeof(text), "%u", slot);
    compare(&both, to, "SSUBSCRIBE", "{moved}channel", NULL);
    compare(&both, from, "SSUBSCRIBE", "{moved}channel", NULL);
    redis_server_expect(&both.servers[from], "OK", "CLUSTER", "SETSLOT", text, "NODE",
                        both.cluster.nodes[to].id, NULL);
    redis_server_expect(&both.servers[to], "OK", "CLUSTER", "SETSLOT", text, "NODE",
                        both.cluster.nodes[to].id, NULL);
    model_cluster_assign(&both.cluster, slot, slot, to);
    struct buffer real = BUFFER_INIT;
    ask_real(both.fds[from], SLICE(""), &real);
    assert_int_equal(real.len, both.sessions[from].out.len);
    assert_memory_equal(real.data, both.sessions[from].out.data, real.len);
    buffer_free(&real);
    close_clusters(&both);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_answers_as_a_cluster_does),
        cmocka_unit_test(test_model_ends_subscriptions_of_moved_slots_as_a_cluster_does)};
    return cmocka_run_group_tests(tests, redis_cluster_set_up, redis_cluster_tear_down);
}
