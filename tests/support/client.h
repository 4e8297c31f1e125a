/*
 * A client for tests: speaks HTTP and WebSocket over a socket pair with code of its own, independent of the
 * code under test. It reads only when a test calls a reading function, so it can be a slow consumer, and it
 * allocates nothing, so it can be used while allocations fail.
 */
#ifndef ROLLCALL_TESTS_CLIENT_H
#define ROLLCALL_TESTS_CLIENT_H

#include "support/world.h"

enum { CLIENT_BYTES_MAX = 256 * 1024, CLIENT_SID_MAX = 64 };

enum client_event {
    CLIENT_NOTHING, /* no complete frame has arrived */
    CLIENT_TEXT = 0x1,
    CLIENT_BINARY = 0x2,
    CLIENT_CLOSE = 0x8,
    CLIENT_PING = 0x9,
    CLIENT_PONG = 0xa,
    CLIENT_END = 0x100, /* the server's end of the socket is closed */
};

struct client {
    struct world *world;
    int fd;
    bool ended;
    size_t len; /* bytes read and not taken yet */
    char in[CLIENT_BYTES_MAX];
    /* of the last event: */
    unsigned close_code;
    size_t text_len;
    char text[CLIENT_BYTES_MAX]; /* terminated */
};

/* Opens a connection and sends nothing yet. If `send_bytes` is not 0, the server's socket takes about so many
 * bytes before it is full. */
void client_dial(struct client *client, struct world *world, int send_bytes);

/* Writes raw bytes; all of them must fit. */
void client_write(struct client *client, const void *data, size_t len);
void client_print(struct client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Requests the upgrade with this token and settles. */
void client_upgrade(struct client *client, const char *token);

/* Returns the status of the next HTTP response and puts its head and body into `text`; 0: none is complete. */
unsigned client_response(struct client *client);

/* Dials and requests a Socket.IO WebSocket, with more of a query ("&sid=…") or "". Returns the status. */
unsigned client_dial_socketio(struct client *client, struct world *world, const char *query,
                              int send_bytes);

/* Connects by a Socket.IO WebSocket, joins, and takes what came with it. */
void client_connect_socketio(struct client *client, struct world *world, const char *user);

/* Returns the names of the Socket.IO events that have come, each followed by a blank; valid until the next call. */
const char *client_event_names(struct client *client);

/* Dials and sends a Socket.IO polling request, whose head declares a body of `body_len` bytes. `sid` is "" for
 * a new Engine.IO session; client_find_sid() reads it from the response, and returns false if there is none. */
void client_dial_polling(struct client *client, struct world *world, const char *method,
                         const char *sid, size_t body_len, const char *body);
bool client_find_sid(const struct client *client, char sid[CLIENT_SID_MAX]);

/* Dials, upgrades and expects 101 and connection_established. */
void client_connect(struct client *client, struct world *world, const char *user);
void client_connect_slow(struct client *client, struct world *world, const char *user);

/* Connects alice, carol and bob, in this order. Alice and bob are contacts, and alice has read that bob is
 * online; carol is a contact of neither. */
void client_connect_three(struct world *world, struct client *alice, struct client *bob,
                          struct client *carol);

/* Sends a masked frame; client_send() sends a text and settles. */
void client_frame(struct client *client, unsigned opcode, const void *data, size_t len);
void client_send(struct client *client, const char *json);

/* Reads the bytes that have arrived, at most `max` (0: all). */
void client_read(struct client *client, size_t max);

/* Settles, reads and takes the next frame. */
enum client_event client_next(struct client *client);

/* The same; the frame must be a text with this beginning. */
void client_expect_text(struct client *client, const char *beginning);

/* The same; the frame must be a text of this "type", which is returned. */
const char *client_expect(struct client *client, const char *type);

/* The same; the text must contain this piece of JSON. */
void client_expect_with(struct client *client, const char *type, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Expects presence_changed of this user. */
void client_expect_change(struct client *client, const char *user, const char *status);

void client_expect_nothing(struct client *client);
void client_expect_close(struct client *client, unsigned code);
void client_expect_end(struct client *client);

/* Expects connection_closing with this reason and the close frame, answers it, and expects the end. */
void client_expect_closing(struct client *client, const char *reason, unsigned code);

/* Whether the last text contains this piece of JSON. */
bool client_has(const struct client *client, const char *piece);

/* Sets its user away or back, and reads the heartbeat_ack. */
void client_set_away(struct client *client, bool away);

/* Closes the socket; does nothing if it is closed. */
void client_hang_up(struct client *client);

#define CLIENTS(...) ((struct client *const[]){__VA_ARGS__, NULL})

/* Hangs up each of CLIENTS(&alice, &bob) and closes the world, as a tear-down needs. */
void client_end_world(struct world *world, struct client *const *clients);

#endif
