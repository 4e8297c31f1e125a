/*
 * The other end of a connection, for tests: speaks HTTP and WebSocket by hand over a socket pair, in a
 * way that owes nothing to the code under test. It reads only when asked to, so it can be as slow as
 * a test wants, and holds no memory but the struct, so it may be used while allocations fail.
 */
#ifndef ROLLCALL_TESTS_CLIENT_H
#define ROLLCALL_TESTS_CLIENT_H

#include "support/world.h"

enum { CLIENT_BYTES_MAX = 256 * 1024, CLIENT_SID_MAX = 64 };

enum client_event {
    CLIENT_NOTHING, /* nothing whole has come */
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
    size_t len; /* read and not looked at */
    char in[CLIENT_BYTES_MAX];
    /* of the last event: */
    unsigned close_code;
    size_t text_len;
    char text[CLIENT_BYTES_MAX]; /* terminated */
};

/* An accepted connection that has said nothing yet. With `send_bytes` not 0 the server's socket takes
 * about so much before it is full. */
void client_dial(struct client *client, struct world *world, int send_bytes);

/* Writes raw bytes; all of them must fit. */
void client_write(struct client *client, const void *data, size_t len);
void client_print(struct client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Asks for the upgrade with this token and settles. */
void client_upgrade(struct client *client, const char *token);

/* The status of the next HTTP answer, whose head and body go to text; 0 when none is whole. */
unsigned client_answer(struct client *client);

/* Dials, and asks for a WebSocket of Socket.IO's, with more of a query ("&sid=…") or ""; the status. */
unsigned client_dial_socketio(struct client *client, struct world *world, const char *query,
                              int send_bytes);

/* Dials, and sends a polling request of Socket.IO's, with a body of which so many bytes are announced. `sid` is "" for
 * a session yet to be opened; client_find_sid() reads it from the answer to that, and is false where there is none. */
void client_dial_polling(struct client *client, struct world *world, const char *method,
                         const char *sid, size_t body_len, const char *body);
bool client_find_sid(const struct client *client, char sid[CLIENT_SID_MAX]);

/* dial, upgrade, 101 and connection_established. */
void client_connect(struct client *client, struct world *world, const char *user);
void client_connect_slow(struct client *client, struct world *world, const char *user);

/* Alice, carol and bob connect, in this order. Alice and bob are contacts, and she has read that he came;
 * carol is a stranger to both. */
void client_connect_three(struct world *world, struct client *alice, struct client *bob,
                          struct client *carol);

/* A masked frame; the text is sent and the world settles. */
void client_frame(struct client *client, unsigned opcode, const void *data, size_t len);
void client_send(struct client *client, const char *json);

/* Reads what has come, at most `max` bytes of it (0: all). */
void client_read(struct client *client, size_t max);

/* Settles, reads and takes the next frame. */
enum client_event client_next(struct client *client);

/* The same, which must be a text that begins so. */
void client_expect_text(struct client *client, const char *beginning);

/* The same, which must be a text whose "type" this is; answers it. */
const char *client_expect(struct client *client, const char *type);

/* The same, with this piece of JSON somewhere in it. */
void client_expect_with(struct client *client, const char *type, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* presence_changed of this user. */
void client_expect_change(struct client *client, const char *user, const char *status);

void client_expect_nothing(struct client *client);
void client_expect_close(struct client *client, unsigned code);
void client_expect_end(struct client *client);

/* connection_closing with this reason, the close frame, our answer to it, the end. */
void client_expect_farewell(struct client *client, const char *reason, unsigned code);

/* Whether the last text has this piece of JSON. */
bool client_has(const struct client *client, const char *piece);

/* Tells that its user has gone or come back, and reads that this was taken. */
void client_set_away(struct client *client, bool away);

/* Nothing happens to one that is gone already. */
void client_hang_up(struct client *client);

#define CLIENTS(...) ((struct client *const[]){__VA_ARGS__, NULL})

/* Hangs up each of CLIENTS(&alice, &bob) and closes the world: what a tear-down does. */
void client_end_world(struct world *world, struct client *const *clients);

#endif
