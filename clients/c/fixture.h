/*
 * For tests: a client, an application that logs its events, and a server on loopback that the test controls frame
 * by frame. The client's clock is virtual: only fixture_advance() and fixture_advance_clock() move it.
 *
 * Each event is one entry in `log`, with a space behind it: a state's name, a message's body,
 * "sent:ID:SEQUENCE", "refused:ID:CODE", "error:CHAT:CODE".
 */
#ifndef ROLLCALL_CLIENTS_C_FIXTURE_H
#define ROLLCALL_CLIENTS_C_FIXTURE_H

#include "client.h"

enum { FIXTURE_BYTES_MAX = 256 * 1024, FIXTURE_LOG_BYTES = 16 * 1024 };

struct fixture {
    struct rollcall *client;
    int listener;
    int fd; /* of the last accepted connection; -1: none */
    char request[4096];
    char log[FIXTURE_LOG_BYTES];
    int64_t wait_ms;   /* of the last BACKOFF */
    char why[512];     /* of the last BACKOFF or STOPPED: its code and text */
    char call_id[64];  /* of the last event about a call */
    size_t body_len;   /* of the last message */
    const char *fresh; /* what the application's fresh_token() returns */
    int fresh_token_count;
    size_t in_len;
    char in[FIXTURE_BYTES_MAX];
    char text[FIXTURE_BYTES_MAX]; /* the payload of the last frame from the client */
};

/* Creates a client that has not begun to connect, with the token "first" and the device "a phone". */
void fixture_open(struct fixture *fixture);
void fixture_close(struct fixture *fixture);

/* The same as cmocka's set-up and tear-down; the test's state is the fixture. */
int fixture_set_up(void **state);
int fixture_tear_down(void **state);

/* fixture_process() lets the client do all work that is due. fixture_advance_clock() moves the clock;
 * fixture_advance() does both. */
void fixture_process(struct fixture *fixture);
void fixture_advance(struct fixture *fixture, int64_t ms);
void fixture_advance_clock(int64_t ms);

/* Accepts the client's connection and reads its request; fixture_accept() also answers 101. */
void fixture_accept_tcp(struct fixture *fixture);
void fixture_accept(struct fixture *fixture);

/* Sends connection_established: a heartbeat every 5 s, expiry after 15 s. */
void fixture_establish(struct fixture *fixture);

/* Accepts, establishes, and reads the first heartbeat. */
void fixture_connect(struct fixture *fixture);

/* The server sends; the client has processed it when these return. */
void fixture_send_raw(struct fixture *fixture, const char *text);
void fixture_send_frame(struct fixture *fixture, unsigned opcode, const void *data, size_t len);
void fixture_send(struct fixture *fixture, const char *json);
void fixture_sendf(struct fixture *fixture, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void fixture_send_close(struct fixture *fixture, unsigned code);
void fixture_hang_up(struct fixture *fixture);

/* Receives the next frame: returns its opcode (0: none arrives), with the payload in `text`. */
unsigned fixture_next_opcode(struct fixture *fixture);
/* Returns the next text; NULL: none arrives. */
const char *fixture_next(struct fixture *fixture);
/* Returns the next text, which must be of this type; heartbeats before it are skipped. */
const char *fixture_expect(struct fixture *fixture, const char *type);
void fixture_expect_nothing(struct fixture *fixture);
void fixture_expect_no(struct fixture *fixture, const char *type);

#endif
