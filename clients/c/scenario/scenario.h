/*
 * The driver that lets the scenarios of clients/scenarios use the C client; their README describes the lines.
 *
 *   main.c                  the loop: lines of the input, all clients' descriptors
 *   scenario_operations.c   what a command does
 *   scenario_client.c       one client: its events, and the commands that wait for them
 *
 * One thread. A client lives until the program ends, because events may not free it.
 */
#ifndef ROLLCALL_CLIENTS_C_SCENARIO_SCENARIO_H
#define ROLLCALL_CLIENTS_C_SCENARIO_SCENARIO_H

#include "base/buffer.h"
#include "base/slice.h"
#include "rollcall.h"
#include "rollcall_api.h"

enum { SCENARIO_KEY_BYTES = 320, SCENARIO_TOKEN_BYTES = 8192 };

/* A command whose answer comes with an event. The key names it: "sent ID", "open CHAT", "call ID", "close". */
struct pending_answer {
    struct pending_answer *next;
    int64_t id;
    bool follows; /* open_chat: follow the chat from its latest message on */
    char key[SCENARIO_KEY_BYTES];
};

struct scenario_client {
    struct scenario_client *next;
    char *name;
    char *token_file;
    char token[SCENARIO_TOKEN_BYTES];
    struct rollcall *client;
    struct rollcall_api *api;
    struct pending_answer *pending;
};

/* One line of the input. The slices point into it; those that are absent are empty. */
struct scenario_command {
    int64_t id;
    struct slice client;
    struct slice operation;
    struct slice args; /* raw until its members are read */
    struct slice url;
    struct slice token_file;
    struct slice device_id;
    struct slice chat_id;
    struct slice user_id;
    struct slice body;
    struct slice client_message_id;
    struct slice to;
    struct slice call_id;
    struct slice request_id;
    struct slice name;
    struct slice user_ids;  /* raw */
    struct slice members;   /* raw */
    struct slice data;      /* raw */
    int64_t after_sequence; /* -1: absent */
    int64_t before_sequence;
    int64_t sequence;
    int64_t limit;
    bool typing;
};

/* scenario_client.c */
/* Returns a terminated copy, which the caller frees. */
char *scenario_copy(struct slice text);
/* Opens a client; ends the program when it cannot. */
struct scenario_client *scenario_client_open(const struct scenario_command *command);
void scenario_client_free(struct scenario_client **client);
/* The command is answered when an event with this key comes. */
struct pending_answer *scenario_client_await(struct scenario_client *client, int64_t id,
                                             const char *kind, const char *key);
void scenario_print_result(int64_t id, struct slice json);
void scenario_print_error(int64_t id, const char *code, const char *text);

/* scenario_operations.c */
/* `client` is NULL for "open", which returns the new one. */
struct scenario_client *scenario_perform(struct scenario_client *client,
                                         const struct scenario_command *command);

#endif
