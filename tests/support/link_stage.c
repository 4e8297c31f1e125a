#include "support/link_stage.h"

#include "net/tls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void changed(struct redis_connection *link, void *arg)
{
    (void)link;
    (void)arg;
}

static void push(struct redis_connection *link, void *arg, const struct resp_value *value)
{
    (void)link;
    (void)value;
    ((struct link_stage *)arg)->pushes++;
}

static const struct redis_connection_owner owner = {changed, push};

static bool has_problem(void *arg)
{
    struct link_stage *stage = arg;
    return redis_connection_problem(stage->link) == stage->wanted;
}

static bool all_answered(void *arg)
{
    struct link_stage *stage = arg;
    return stage->answered == stage->asked;
}

void link_stage_await_problem(struct link_stage *stage, enum redis_problem problem,
                              int64_t limit_ms)
{
    stage->wanted = problem;
    worker_loop_until(&stage->worker, has_problem, stage, limit_ms);
    assert_string_equal(redis_problem_name(redis_connection_problem(stage->link)),
                        redis_problem_name(problem));
}

void link_stage_await_answers(struct link_stage *stage)
{
    assert_true(worker_loop_until(&stage->worker, all_answered, stage, LINK_STAGE_SOON_MS));
}

/* Each answer must be the next number. */
static void take_number(void *arg, const struct resp_value *reply)
{
    struct link_stage *stage = arg;
    char expected[16];
    snprintf(expected, sizeof(expected), "%u", stage->answered++);
    if (!reply)
        stage->without_reply++;
    else if (reply->type == RESP_ERROR)
        stage->errors++;
    else if (!slice_is(reply->text, expected))
        stage->in_disorder++;
}

void link_stage_take(void *arg, const struct resp_value *reply)
{
    struct link_stage *stage = arg;
    stage->answered++;
    struct slice text =
        reply ? slice_first(reply->text, sizeof(stage->last) - 1) : SLICE("nothing");
    snprintf(stage->last, sizeof(stage->last), "%.*s", SLICE_FORMAT(text));
}

bool link_stage_send(struct link_stage *stage, const struct slice *words, size_t count,
                     void (*done)(void *arg, const struct resp_value *reply))
{
    struct buffer command = BUFFER_INIT;
    resp_write_command(&command, words, count);
    bool taken = redis_connection_send(stage->link, buffer_slice(&command), done, stage);
    buffer_free(&command);
    stage->asked += taken;
    return taken;
}

bool link_stage_echo(struct link_stage *stage)
{
    char number[16];
    snprintf(number, sizeof(number), "%u", stage->asked);
    return link_stage_send(stage, (const struct slice[]){SLICE("ECHO"), slice_of(number)}, 2,
                           take_number);
}

const char *link_stage_ask(struct link_stage *stage, const char *line)
{
    struct slice words[8];
    size_t count = 0;
    for (struct slice rest = slice_of(line); rest.data; count++)
        rest = slice_split(rest, ' ', &words[count]);
    assert_true(link_stage_send(stage, words, count, link_stage_take));
    link_stage_await_answers(stage);
    return stage->last;
}

void link_stage_open_at(struct link_stage *stage, const char *host, uint16_t port)
{
    struct redis_endpoint endpoint;
    redis_endpoint_set(&endpoint, slice_of(host), port);
    stage->link = redis_connection_make(&stage->links, &endpoint, &owner, stage);
    assert_non_null(stage->link);
}

void link_stage_open(struct link_stage *stage, const char *const *options)
{
    redis_server_start(&stage->server, options);
    link_stage_open_at(stage, "127.0.0.1", stage->server.port);
}

int link_stage_set_up(void **state)
{
    struct link_stage *stage = calloc(1, sizeof(*stage));
    assert_non_null(stage);
    *state = stage;
    worker_loop_open(&stage->worker);
    stage->links = (struct redis_connection_context){
        .loop = &stage->worker.loop,
        .streams = &stage->worker.streams,
        .random = &stage->worker.random,
        .metrics = &stage->worker.metrics,
        .identity = {.user = "", .password = "", .name = "rollcall", .alone = true}};
    list_init(&stage->links.ending);
    return 0;
}

int link_stage_tear_down(void **state)
{
    struct link_stage *stage = *state;
    redis_connection_end(&stage->link);
    redis_connection_context_reap(&stage->links);
    tls_context_drop(&stage->links.tls);
    redis_server_stop(&stage->server);
    worker_loop_close(&stage->worker);
    free(stage);
    return 0;
}
