/* Commands about the connection and the server. */
#include "redis_model/model_call.h"
#include "redis_model/model_cluster.h"
#include "redis_model/model_tracking.h"

#include <stdio.h>

static bool is_replica(const struct redis_model *model)
{
    return model->is_replica ||
           (model->cluster && model->cluster->nodes[model->place].master != model->place);
}

static void run_ping(struct model_call *call)
{
    if (call->count == 2)
        model_reply_bulk(call, call->args[1]);
    else
        model_reply_status(call, "PONG");
}

static void run_hello(struct model_call *call)
{
    int64_t version = call->session->resp;
    if (call->count > 1 &&
        (!resp_parse_integer(call->args[1], &version) || version < 2 || version > 3)) {
        model_reply_error(call, "NOPROTO unsupported protocol version");
        return;
    }
    call->session->resp = call->resp = (int)version;
    model_reply_map(call, 7);
    model_reply_bulk(call, SLICE("server"));
    model_reply_bulk(call, SLICE("redis"));
    model_reply_bulk(call, SLICE("version"));
    model_reply_bulk(call, SLICE("7.0.15"));
    model_reply_bulk(call, SLICE("proto"));
    model_reply_int(call, version);
    model_reply_bulk(call, SLICE("id"));
    model_reply_int(call, 1);
    model_reply_bulk(call, SLICE("mode"));
    model_reply_bulk(call, call->model->cluster ? SLICE("cluster") : SLICE("standalone"));
    model_reply_bulk(call, SLICE("role"));
    model_reply_bulk(call, is_replica(call->model) ? SLICE("replica") : SLICE("master"));
    model_reply_bulk(call, SLICE("modules"));
    model_reply_array(call, 0);
}

static void run_select(struct model_call *call)
{
    int64_t database;
    if (!model_call_int(call, 1, &database))
        return;
    if (database == 0)
        model_reply_ok(call);
    else
        model_reply_error(call, "ERR DB index is out of range");
}

static void run_client(struct model_call *call)
{
    if (model_slice_is_word(call->args[1], "SETNAME") ||
        model_slice_is_word(call->args[1], "SETINFO"))
        model_reply_ok(call);
    else if (model_slice_is_word(call->args[1], "ID"))
        model_reply_int(call, 1);
    else if (!model_tracking_command(call))
        model_reply_error(call, "ERR unknown subcommand");
}

static void run_time(struct model_call *call)
{
    model_reply_array(call, 2);
    model_reply_number_text(call, call->model->now_us / 1000000);
    model_reply_number_text(call, call->model->now_us % 1000000);
}

static void run_info(struct model_call *call)
{
    char text[256];
    snprintf(text, sizeof(text),
             "# Server\r\nredis_version:7.0.15\r\n# Clients\r\nconnected_clients:1\r\n# Memory\r\n"
             "used_memory:1000000\r\nmaxmemory:0\r\n# Replication\r\nrole:%s\r\n"
             "master_replid:%040llx\r\n",
             is_replica(call->model) ? "slave" : "master",
             (unsigned long long)call->model->replication_id);
    model_reply_bulk(call, slice_of(text));
}

static void run_dbsize(struct model_call *call)
{
    model_reply_int(call, (int64_t)call->model->keys.size);
}

static void run_flushall(struct model_call *call)
{
    redis_model_clear(call->model);
    model_reply_ok(call);
}

static void run_quit(struct model_call *call)
{
    call->session->is_closing = true;
    model_reply_ok(call);
}

const struct model_command model_server_commands[] = {
    {"PING", run_ping, 1, 2, MODEL_NO_KEYS},
    {"HELLO", run_hello, 1, 0, MODEL_NO_SCRIPT | MODEL_WHILE_LOADING | MODEL_NO_KEYS},
    {"SELECT", run_select, 2, 2, MODEL_WHILE_LOADING | MODEL_NO_KEYS},
    {"CLIENT", run_client, 2, 0, MODEL_NO_SCRIPT | MODEL_WHILE_LOADING | MODEL_NO_KEYS},
    {"TIME", run_time, 1, 1, MODEL_WHILE_LOADING | MODEL_NO_KEYS},
    {"INFO", run_info, 1, 0, MODEL_WHILE_LOADING | MODEL_NO_KEYS},
    {"DBSIZE", run_dbsize, 1, 1, MODEL_NO_KEYS},
    {"FLUSHALL", run_flushall, 1, 2, MODEL_WRITES | MODEL_NO_SCRIPT | MODEL_NO_KEYS},
    {"QUIT", run_quit, 1, 1, MODEL_NO_SCRIPT | MODEL_WHILE_LOADING | MODEL_NO_KEYS},
    {0},
};
