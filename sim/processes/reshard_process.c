#include "processes/reshard_process.h"

#include "base/container.h"
#include "kernel/kernel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ANSWER_MS = 2000,
    PAUSE_MS_MAX = 200, /* between two slots */
    KEYS_AT_ONCE = 100,
    NUMBER_BYTES = 16,
};

/* ---- the plan ---- */

/* A set of slots, of which one in a few is drawn. */
struct slot_draw {
    struct reshard_plan *plan;
    bool has[REDIS_SLOTS];
};

static void note_key_slot(struct table_node *node, void *arg)
{
    struct slot_draw *draw = arg;
    draw->has[redis_slot(CONTAINER_OF(node, const struct model_key, node)->name)] = true;
}

static void note_channel_slots(struct slot_draw *draw, const struct redis_model *model)
{
    for (struct list *at = model->sessions.next; at != &model->sessions; at = at->next) {
        const struct model_value *channels =
            CONTAINER_OF(at, struct redis_session, place)->shard_channels;
        for (size_t i = 0; i < channels->count; i++)
            draw->has[redis_slot(channels->members[i]->name)] = true;
    }
}

struct reshard_plan *reshard_plan_make(const struct model_cluster *cluster, size_t from, size_t to,
                                       int64_t until_us)
{
    static const unsigned PACES_MS[] = {3, 40, 400};
    struct reshard_plan *plan = calloc(1, sizeof(*plan));
    struct slot_draw *draw = calloc(1, sizeof(*draw));
    if (!plan || !draw)
        abort();
    *plan = (struct reshard_plan){
        .from = cluster->nodes[from],
        .to = cluster->nodes[to],
        .until_us = until_us,
        .step_ms_max =
            PACES_MS[random_below(kernel_random(), sizeof(PACES_MS) / sizeof(PACES_MS[0]))],
    };
    draw->plan = plan;
    table_each(&cluster->nodes[from].model->keys, note_key_slot, draw);
    note_channel_slots(draw, cluster->nodes[from].model);
    for (unsigned slot = 0; slot < REDIS_SLOTS && plan->count < RESHARD_SLOTS_MAX; slot++)
        if (draw->has[slot] && cluster->owner[slot] == from && random_below(kernel_random(), 3) > 0)
            plan->slots[plan->count++] = slot;
    free(draw);
    return plan;
}

/* ---- commands ---- */

struct cli {
    int fd;
    struct buffer answer;
    struct resp_parser parser;
};

static void cli_wait(int ms)
{
    poll(&(struct pollfd){.fd = -1}, 1, ms);
}

static bool cli_wait_for(const struct cli *cli, short events)
{
    struct pollfd fd = {.fd = cli->fd, .events = events};
    return poll(&fd, 1, ANSWER_MS) > 0;
}

static bool cli_open(struct cli *cli, const struct model_node *node)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(node->port)};
    *cli = (struct cli){.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)};
    inet_pton(AF_INET, node->host, &address.sin_addr);
    return connect(cli->fd, (struct sockaddr *)&address, sizeof(address)) == 0 ||
           (errno == EINPROGRESS && cli_wait_for(cli, POLLOUT));
}

static void cli_close(struct cli *cli)
{
    close(cli->fd);
    buffer_free(&cli->answer);
    resp_parser_free(&cli->parser);
}

/* Returns the answer, which lasts until the next command; NULL: there is none, or it is an error. */
static const struct resp_value *cli_ask(struct cli *cli, const struct slice *args, size_t count)
{
    struct buffer command = BUFFER_INIT;
    const struct resp_value *value = NULL;
    size_t len;
    resp_write_command(&command, args, count);
    ssize_t sent = send(cli->fd, command.data, command.len, MSG_NOSIGNAL);
    bool is_sent = sent == (ssize_t)command.len;
    buffer_free(&command);
    buffer_clear(&cli->answer);
    resp_parser_free(&cli->parser);
    cli->parser = (struct resp_parser){0};
    while (is_sent &&
           resp_parse(&cli->parser, buffer_slice(&cli->answer), &value, &len) == RESP_INCOMPLETE) {
        char bytes[4096];
        value = NULL;
        if (!cli_wait_for(cli, POLLIN))
            return NULL;
        ssize_t got = recv(cli->fd, bytes, sizeof(bytes), 0);
        if (got <= 0)
            return NULL;
        buffer_append(&cli->answer, bytes, (size_t)got);
    }
    return value && value->type != RESP_ERROR ? value : NULL;
}

/* ---- slots ---- */

static bool set_slot(struct cli *cli, unsigned slot, const char *state, const char *id)
{
    char number[NUMBER_BYTES];
    snprintf(number, sizeof(number), "%u", slot);
    const struct slice args[] = {SLICE("CLUSTER"), SLICE("SETSLOT"), slice_of(number),
                                 slice_of(state), slice_of(id)};
    return cli_ask(cli, args, 5) != NULL;
}

static bool move_key(struct cli *from, const struct reshard_plan *plan, struct slice key)
{
    char port[NUMBER_BYTES];
    snprintf(port, sizeof(port), "%u", plan->to.port);
    const struct slice args[] = {
        SLICE("MIGRATE"), slice_of(plan->to.host), slice_of(port), key, SLICE("0"), SLICE("1000")};
    cli_wait((int)random_below(&kernel_process()->random, plan->step_ms_max + 1));
    return cli_ask(from, args, 6) != NULL;
}

/* Returns how many keys it moved; -1: it failed. */
static int move_some_keys(struct cli *from, const struct reshard_plan *plan, unsigned slot)
{
    char number[NUMBER_BYTES];
    snprintf(number, sizeof(number), "%u", slot);
    const struct slice args[] = {SLICE("CLUSTER"), SLICE("GETKEYSINSLOT"), slice_of(number),
                                 SLICE("100")};
    const struct resp_value *keys = cli_ask(from, args, 4);
    struct buffer names[KEYS_AT_ONCE] = {0};
    size_t count = keys && keys->type == RESP_ARRAY ? keys->count : 0;
    bool works = keys != NULL;
    for (size_t i = 0; i < count; i++)
        buffer_append_slice(&names[i], keys->items[i].text);
    for (size_t i = 0; i < count; i++) {
        works = works && move_key(from, plan, buffer_slice(&names[i]));
        buffer_free(&names[i]);
    }
    return works ? (int)count : -1;
}

/* The tool tells the target first; here both know at once, and the source's clients must hear of it from the source. */
static bool move_slot(struct cli *from, struct cli *to, const struct reshard_plan *plan,
                      unsigned slot)
{
    int moved;
    if (!set_slot(to, slot, "IMPORTING", plan->from.id) ||
        !set_slot(from, slot, "MIGRATING", plan->to.id))
        return false;
    while ((moved = move_some_keys(from, plan, slot)) > 0)
        ;
    return moved == 0 && set_slot(from, slot, "NODE", plan->to.id) &&
           set_slot(to, slot, "NODE", plan->to.id);
}

int reshard_run(void *arg)
{
    const struct reshard_plan *plan = arg;
    struct cli from, to;
    bool works = cli_open(&from, &plan->from);
    works = cli_open(&to, &plan->to) && works;
    for (size_t i = 0; i < plan->count && works && kernel_now_us() < plan->until_us; i++) {
        works = move_slot(&from, &to, plan, plan->slots[i]);
        cli_wait((int)random_below(&kernel_process()->random, PAUSE_MS_MAX));
    }
    cli_close(&from);
    cli_close(&to);
    return works ? 0 : 1;
}
