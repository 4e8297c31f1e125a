/* The inside of a client: its parts and who owns what. Not installed. */
#ifndef ROLLCALL_CLIENTS_C_CLIENT_H
#define ROLLCALL_CLIENTS_C_CLIENT_H

#include "base/buffer.h"
#include "base/clock.h"
#include "base/random.h"
#include "frame/websocket.h"
#include "rollcall.h"

enum {
    CLIENT_HANDSHAKE_MS = 10000, /* from the first packet to connection_established */
    CLIENT_OUT_BYTES_MAX = 1 << 20,
    CLIENT_MESSAGE_BYTES_MAX = 1 << 20,
    CLIENT_RETRY_MS = 1000, /* a refused message that may be sent again waits so long */
    CLIENT_SYNC_PAGE = 200,
    CLIENT_REORDER_MAX = 64, /* messages that came before the ones they follow */
};

/* A message that is not acknowledged yet. */
struct outgoing {
    struct outgoing *next;
    char *chat_id;
    char *client_message_id;
    char *body;
    bool on_its_way;
    int64_t not_before_ms;
};

struct chat {
    struct chat *next;
    bool followed;
    bool open;
    bool syncing;
    bool again;       /* a gap was seen while syncing */
    int64_t sequence; /* the last one given out */
    char id[];
};

struct watched {
    struct watched *next;
    char user_id[];
};

struct rollcall {
    struct rollcall_options options;
    char *host;
    char *token;
    char *device_id;
    enum rollcall_state state;
    struct clock clock;
    struct random random;

    int fd;
    bool connected; /* the TCP connection stands */
    bool upgraded;  /* the 101 has come */
    bool closing;   /* our close frame is out */
    bool refused;   /* the last handshake was answered 401, or closed with 4001 */
    bool in_callback;
    struct websocket_decoder decoder;
    struct buffer in; /* of the handshake's answer */
    struct buffer out;
    size_t out_sent;

    unsigned attempts; /* since it was last READY */
    int64_t retry_at_ms;
    int64_t server_wait_ms; /* what connection_closing asked for; < 0: nothing */
    bool stop_after;        /* reconnecting is not allowed */
    int64_t deadline_ms;    /* of the handshake */
    int64_t heartbeat_ms;
    int64_t expiry_ms;
    int64_t next_heartbeat_ms;
    int64_t heard_ms;
    int activity; /* -1 unsaid, 0 idle, 1 active */

    struct outgoing *outbox;
    size_t outbox_count;
    struct chat *chats;
    size_t chat_count;
    struct watched *watched;
    size_t watched_count;
};

/* client.c */
void client_set_state(struct rollcall *client, enum rollcall_state state);
void client_emit(struct rollcall *client, const struct rollcall_event *event);
void client_lost(struct rollcall *client);
void client_established(struct rollcall *client, int64_t heartbeat_ms, int64_t expiry_ms);

/* transport.c: the socket, the handshake, frames */
void transport_connect(struct rollcall *client);
void transport_process(struct rollcall *client, short revents);
void transport_close(struct rollcall *client, unsigned code);
void transport_drop(struct rollcall *client);
bool transport_send(struct rollcall *client, struct slice json);

/* incoming.c: what the server says */
void incoming_message(struct rollcall *client, char *json, size_t len);

/* chats.c: following, syncing, opening */
struct chat *chats_find(struct rollcall *client, struct slice chat_id);
struct chat *chats_add(struct rollcall *client, struct slice chat_id);
void chats_resume(struct rollcall *client);
void chats_reset(struct rollcall *client);
bool chats_synced(const struct rollcall *client);
void chats_message(struct rollcall *client, const struct rollcall_event *event);
void chats_page(struct rollcall *client, struct slice chat_id, bool has_more);
void chats_free(struct rollcall *client);

/* outbox.c: messages until they are acknowledged */
void outbox_flush(struct rollcall *client);
void outbox_reset(struct rollcall *client);
int64_t outbox_due_ms(const struct rollcall *client);
void outbox_answered(struct rollcall *client, const char *client_message_id);
void outbox_retry(struct rollcall *client, const char *client_message_id, int64_t after_ms);
void outbox_free(struct rollcall *client);

#endif
