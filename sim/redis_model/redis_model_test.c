/*
 * Holds the model to the real Redis: random commands, and random calls of scripts, go to both, and the answers must be the same. The seed of a
 * run is printed; REDIS_MODEL_SEED repeats it, REDIS_MODEL_STEPS makes it longer.
 *
 * What Redis leaves open is made equal before the comparison: the order of members of hashes and sets, and the milliseconds that
 * pass between the two.
 */
#include "redis_model/redis_model.h"

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
    STEPS = 20000,
    ARGUMENTS_MAX = 16,
    TEXT_MAX = 64,
    TTL_TOLERANCE_MS = 60000,
    LIFETIMES = 99991
};

struct pair {
    struct redis_server server;
    int fd;
    struct redis_model model;
    struct redis_session session;
    struct random random;
    uint64_t lifetimes; /* given so far: no two are the same */
};

/* A command with texts of its own. */
struct step {
    char texts[ARGUMENTS_MAX][TEXT_MAX];
    const char *source; /* of a script: the second argument */
    struct slice args[ARGUMENTS_MAX];
    size_t count;
};

/* ---- both sides ---- */

static int64_t read_wall_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int connect_to_server(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void ask_server(struct pair *pair, const struct step *step, struct buffer *answer)
{
    struct buffer command = BUFFER_INIT;
    struct resp_parser parser = {0};
    const struct resp_value *value;
    size_t len;
    resp_write_command(&command, step->args, step->count);
    assert_int_equal(send(pair->fd, command.data, command.len, 0), command.len);
    buffer_free(&command);
    while (resp_parse(&parser, buffer_slice(answer), &value, &len) == RESP_INCOMPLETE) {
        assert_true(buffer_reserve(answer, 65536));
        ssize_t got = recv(pair->fd, answer->data + answer->len, 65536, 0);
        assert_true(got > 0);
        answer->len += (size_t)got;
    }
    resp_parser_free(&parser);
}

static void ask_model(struct pair *pair, const struct step *step, struct buffer *answer)
{
    struct buffer command = BUFFER_INIT;
    pair->model.now_us = read_wall_us();
    resp_write_command(&command, step->args, step->count);
    redis_session_receive(&pair->session, buffer_slice(&command));
    buffer_append_slice(answer, buffer_slice(&pair->session.out));
    buffer_clear(&pair->session.out);
    buffer_free(&command);
}

/* ---- comparing ---- */

static void write_value(struct buffer *out, const struct resp_value *value);

static int compare_items(const void *a, const void *b)
{
    const struct slice *left = a, *right = b;
    size_t shorter = left->len < right->len ? left->len : right->len;
    int order = memcmp(left->data, right->data, shorter);
    return order ? order : (left->len > right->len) - (left->len < right->len);
}

/* Pairs of a map stay together. */
static void write_sorted(struct buffer *out, const struct resp_value *value, size_t together)
{
    size_t count = value->count / together;
    struct slice *items = calloc(count + 1, sizeof(*items));
    assert_non_null(items);
    for (size_t i = 0; i < count; i++) {
        struct buffer item = BUFFER_INIT;
        for (size_t j = 0; j < together; j++)
            write_value(&item, &value->items[i * together + j]);
        items[i].data = buffer_detach(&item, &items[i].len);
    }
    qsort(items, count, sizeof(*items), compare_items);
    for (size_t i = 0; i < count; i++) {
        buffer_append_slice(out, items[i]);
        free((char *)items[i].data);
    }
    free(items);
}

static void write_value(struct buffer *out, const struct resp_value *value)
{
    static const char *const kinds[] = {"null", "text", "error", "int", "array", "push"};
    buffer_printf(out, "%s ", kinds[value->type]);
    if (value->type == RESP_INTEGER)
        buffer_printf(out, "%lld", (long long)value->integer);
    else if (value->type == RESP_ERROR) /* the first word: the rest is prose */
        for (size_t i = 0; i < value->text.len && value->text.data[i] != ' '; i++)
            buffer_append_byte(out, value->text.data[i]);
    else if (value->type == RESP_TEXT)
        buffer_append_slice(out, value->text);
    buffer_append_byte(out, '\n');
    for (size_t i = 0; i < value->count; i++)
        write_value(out, &value->items[i]);
}

static bool is_named(const struct step *step, const char *name)
{
    return slice_is(step->args[0], name);
}

/* Writes an answer so that equal answers are equal texts. */
static void write_answer(struct buffer *out, const struct step *step, struct slice answer)
{
    struct resp_parser parser = {0};
    const struct resp_value *value;
    size_t len;
    assert_int_equal(resp_parse(&parser, answer, &value, &len), RESP_COMPLETE);
    bool is_set = is_named(step, "SMEMBERS") || is_named(step, "SINTER") ||
                  is_named(step, "HKEYS") || is_named(step, "KEYS");
    if (value->type == RESP_INTEGER && is_named(step, "PTTL") && value->integer > 0)
        buffer_append_text(out, "a time to live"); /* compare_times_to_live() */
    else if (value->type == RESP_ARRAY && (is_set || is_named(step, "HGETALL")))
        write_sorted(out, value, is_set ? 1 : 2);
    else
        write_value(out, value);
    buffer_append_byte(out, '\0');
    resp_parser_free(&parser);
}

/* Returns the number of an answer ":5\r\n"; -1 for any other answer. */
static int64_t read_number(struct slice answer)
{
    struct slice line;
    int64_t number;
    slice_split(answer, '\r', &line);
    bool is_number =
        line.len > 1 && line.data[0] == ':' && resp_parse_integer(slice_after(line, 1), &number);
    return is_number ? number : -1;
}

/* Time passes between the two. */
static void compare_times_to_live(const struct step *step, struct slice real, struct slice model)
{
    if (!is_named(step, "PTTL"))
        return;
    int64_t difference = read_number(real) - read_number(model);
    assert_in_range(difference + TTL_TOLERANCE_MS, 0, 2 * TTL_TOLERANCE_MS);
}

static void write_command(struct buffer *out, const struct step *step)
{
    for (size_t i = 0; i < step->count; i++)
        buffer_printf(out, "%.*s ", (int)(step->args[i].len > 60 ? 60 : step->args[i].len),
                      step->args[i].data);
    buffer_append_byte(out, '\0');
}

static void compare_step(struct pair *pair, const struct step *step, unsigned number)
{
    struct buffer real = BUFFER_INIT, model = BUFFER_INIT, real_text = BUFFER_INIT,
                  model_text = BUFFER_INIT, command = BUFFER_INIT;
    ask_server(pair, step, &real);
    ask_model(pair, step, &model);
    compare_times_to_live(step, buffer_slice(&real), buffer_slice(&model));
    write_answer(&real_text, step, buffer_slice(&real));
    write_answer(&model_text, step, buffer_slice(&model));
    write_command(&command, step);
    if (!slice_equal(buffer_slice(&real_text), buffer_slice(&model_text)))
        fail_msg("step %u: %s\nRedis: %s\nmodel: %s", number, command.data, real_text.data,
                 model_text.data);
    buffer_free(&real);
    buffer_free(&model);
    buffer_free(&real_text);
    buffer_free(&model_text);
    buffer_free(&command);
}

/* ---- random commands ---- */

static void add_text(struct step *step, const char *text)
{
    snprintf(step->texts[step->count], TEXT_MAX, "%s", text);
    step->args[step->count] = slice_of(step->texts[step->count]);
    step->count++;
}

/*
 * A command is described by its arguments: k a key, m a member, v a value, n a small number, s a score, b a bound of scores,
 * t a lifetime; in capitals a word as it is.
 */
static const char *const shapes[] = {
    "GET k",
    "SET k v",
    "SET k v NX",
    "SET k v XX",
    "SET k v PX t",
    "SET k v KEEPTTL",
    "SET k v EX t NX",
    "DEL k k",
    "UNLINK k",
    "EXISTS k k",
    "TYPE k",
    "PEXPIRE k t",
    "PEXPIRE k t NX",
    "PEXPIRE k t GT",
    "PEXPIRE k t LT",
    "PTTL k",
    "PERSIST k",
    "INCRBY k n",
    "MGET k k k",
    "HSET k m v",
    "HSET k m v m v",
    "HSET k m n",
    "HSETNX k m v",
    "HGET k m",
    "HMGET k m m",
    "HGETALL k",
    "HDEL k m m",
    "HLEN k",
    "HEXISTS k m",
    "HINCRBY k m n",
    "HKEYS k",
    "SADD k m m",
    "SREM k m",
    "SISMEMBER k m",
    "SMISMEMBER k m m",
    "SCARD k",
    "SMEMBERS k",
    "SINTER k k",
    "ZADD k s m",
    "ZADD k s m s m",
    "ZADD k NX s m",
    "ZADD k XX s m",
    "ZADD k GT CH s m",
    "ZADD k LT s m",
    "ZREM k m",
    "ZSCORE k m",
    "ZCARD k",
    "ZRANGE k n n",
    "ZRANGE k n n WITHSCORES",
    "ZREVRANGE k n n",
    "ZCOUNT k b b",
    "ZRANGEBYSCORE k b b",
    "ZRANGEBYSCORE k b b LIMIT n n",
    "ZRANGEBYSCORE k b b WITHSCORES LIMIT 0 n",
    "ZREMRANGEBYSCORE k b b",
    "LPUSH k v v",
    "RPUSH k v",
    "LLEN k",
    "LPOP k",
    "LPOP k n",
    "LRANGE k n n",
    "LTRIM k n n",
    "KEYS k",
    "GET",
    "HSET k m",
    "ZADD k s",
    "ZADD k v m",
    "SET k v PX 0",
    "PEXPIRE k -1",
    "INCRBY k v",
    "NOSUCH k",
    "SET k v HUH",
    "DBSIZE",
};

static void add_random_argument(struct pair *pair, struct step *step, char kind)
{
    static const char *const values[] = {"", "0", "7", "-3", "text", "9007199254740993", "1e3"};
    static const char *const bounds[] = {"-inf", "+inf", "0", "(2", "2.5", "(-1", "3"};
    char text[TEXT_MAX];
    struct random *random = &pair->random;
    switch (kind) {
    case 'k':
        snprintf(text, sizeof(text), "key%u", (unsigned)random_below(random, 12));
        break;
    case 'm':
        snprintf(text, sizeof(text), "member%u", (unsigned)random_below(random, 8));
        break;
    case 'v':
        snprintf(text, sizeof(text), "%s",
                 values[random_below(random, sizeof(values) / sizeof(values[0]))]);
        break;
    case 'n':
        snprintf(text, sizeof(text), "%d", (int)random_below(random, 9) - 4);
        break;
    case 's':
        snprintf(text, sizeof(text), "%g", (double)((int)random_below(random, 40) - 10) / 4);
        break;
    case 'b':
        snprintf(text, sizeof(text), "%s",
                 bounds[random_below(random, sizeof(bounds) / sizeof(bounds[0]))]);
        break;
    default: /* 't': long enough to outlast the test, and a minute from any other */
        snprintf(text, sizeof(text), "%llu",
                 10000000ull + 60000ull * (++pair->lifetimes * 7919 % LIFETIMES));
    }
    add_text(step, text);
}

static void make_random_step(struct pair *pair, struct step *step)
{
    const char *shape = shapes[random_below(&pair->random, sizeof(shapes) / sizeof(shapes[0]))];
    struct slice rest = slice_of(shape), word;
    step->count = 0;
    while (rest.data) {
        char text[TEXT_MAX];
        rest = slice_split(rest, ' ', &word);
        snprintf(text, sizeof(text), "%.*s", SLICE_FORMAT(word));
        if (word.len == 1 && strchr("kmvnsbt", text[0]))
            add_random_argument(pair, step, text[0]);
        else
            add_text(step, text);
    }
}

/* Makes a script of the command: its answer passes through Lua. */
static void make_script_step(struct pair *pair, struct step *step)
{
    static const char *const sources[] = {
        "return redis.call(unpack(ARGV))",
        "return redis.pcall(unpack(ARGV))",
        "local r = redis.pcall(unpack(ARGV)) return {type(r), r}",
        "local r = redis.call(unpack(ARGV)) return tostring(type(r) == 'table' and #r or r)",
        "redis.call('SET', KEYS[1], ARGV[2] or 1) return {1, 2.7, 'x', false, {}, nil, 3}",
        "return {ok = 'FINE'}",
        "return redis.error_reply('MINE it failed')",
        "return tonumber(ARGV[2]) or false",
        "undefined_global = 1",
        "return math.floor(ARGV[2]) .. ''",
    };
    struct step inner;
    make_random_step(pair, &inner);
    step->count = 0;
    step->source = sources[random_below(&pair->random, sizeof(sources) / sizeof(sources[0]))];
    add_text(step, "EVAL");
    step->args[step->count++] = slice_of(step->source);
    add_text(step, "1");
    add_random_argument(pair, step, 'k');
    for (size_t i = 0; i < inner.count && step->count < ARGUMENTS_MAX; i++)
        add_text(step, inner.texts[i]);
}

/* ---- the test ---- */

static long read_environment(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

static bool has_open_order(const struct step *step)
{
    static const char *const names[] = {"SMEMBERS", "SINTER", "HKEYS", "HGETALL", "KEYS", "PTTL"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        for (size_t j = 2; j < step->count; j++)
            if (slice_is(step->args[j], names[i]))
                return true;
    return false;
}

static void open_pair(struct pair *pair, uint64_t seed)
{
    redis_server_start(&pair->server, REDIS_DEFAULTS);
    pair->fd = connect_to_server(pair->server.port);
    random_init_seeded(&pair->random, seed);
    redis_model_init(&pair->model, read_wall_us(), seed);
    redis_session_open(&pair->session, &pair->model);
}

static void close_pair(struct pair *pair)
{
    redis_session_close(&pair->session);
    redis_model_free(&pair->model);
    close(pair->fd);
    redis_server_stop(&pair->server);
}

static void test_model_answers_as_redis_does(void **state)
{
    (void)state;
    struct pair pair = {0};
    long seed = read_environment("REDIS_MODEL_SEED", (long)(read_wall_us() & 0xffffff));
    unsigned steps = (unsigned)read_environment("REDIS_MODEL_STEPS", STEPS);
    print_message("REDIS_MODEL_SEED=%ld\n", seed);
    open_pair(&pair, (uint64_t)seed);
    for (unsigned i = 0; i < steps; i++) {
        struct step step = {.count = 0};
        if (random_below(&pair.random, 4) == 0)
            make_script_step(&pair, &step);
        else
            make_random_step(&pair, &step);
        if (!step.source || !has_open_order(&step))
            compare_step(&pair, &step, i);
    }
    close_pair(&pair);
}

/* ---- tracking ---- */

static struct step make_step(const char *first, const char *second, const char *third,
                             const char *fourth)
{
    struct step step = {0};
    const char *const words[] = {first, second, third, fourth};
    for (size_t i = 0; i < 4 && words[i]; i++)
        step.args[step.count++] = slice_of(words[i]);
    return step;
}

/* Both get the command; what comes back, pushes too, is the same. */
static void compare_bytes(struct pair *pair, struct step step)
{
    struct buffer real = BUFFER_INIT, modelled = BUFFER_INIT, command = BUFFER_INIT;
    resp_write_command(&command, step.args, step.count);
    assert_int_equal(send(pair->fd, command.data, command.len, 0), command.len);
    ask_model(pair, &step, &modelled);
    while (real.len < modelled.len) {
        assert_true(buffer_reserve(&real, 4096));
        ssize_t got = recv(pair->fd, real.data + real.len, 4096, 0);
        assert_true(got > 0);
        real.len += (size_t)got;
    }
    assert_int_equal(real.len, modelled.len);
    assert_memory_equal(real.data, modelled.data, real.len);
    buffer_free(&command);
    buffer_free(&real);
    buffer_free(&modelled);
}

static void test_model_tracks_keys_as_redis_does(void **state)
{
    (void)state;
    struct pair both = {0}, *pair = &both;
    open_pair(pair, 1);
    struct step hello = make_step("HELLO", "3", NULL, NULL);
    struct buffer ignored = BUFFER_INIT;
    ask_server(pair, &hello, &ignored);
    buffer_clear(&ignored);
    ask_model(pair, &hello, &ignored);
    buffer_free(&ignored);
    compare_bytes(pair, make_step("CLIENT", "TRACKING", "ON", "OPTIN"));
    compare_bytes(pair, make_step("SADD", "tracked", "a", NULL));
    compare_bytes(pair, make_step("SMEMBERS", "tracked", NULL, NULL)); /* not asked for */
    compare_bytes(pair, make_step("SADD", "tracked", "b", NULL));
    compare_bytes(pair, make_step("CLIENT", "CACHING", "YES", NULL));
    compare_bytes(pair, make_step("SCARD", "tracked", NULL, NULL));
    compare_bytes(pair, make_step("SADD", "tracked", "c", NULL)); /* once … */
    compare_bytes(pair, make_step("SADD", "tracked", "d", NULL)); /* … only */
    compare_bytes(pair, make_step("CLIENT", "CACHING", "YES", NULL));
    compare_bytes(pair, make_step("EXISTS", "tracked", "absent", NULL));
    compare_bytes(pair, make_step("SET", "absent", "x", NULL));
    compare_bytes(pair, make_step("DEL", "tracked", NULL, NULL));
    compare_bytes(pair, make_step("CLIENT", "TRACKING", "OFF", NULL));
    close_pair(pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_model_answers_as_redis_does),
                                       cmocka_unit_test(test_model_tracks_keys_as_redis_does)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
