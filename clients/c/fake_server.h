/*
 * For tests: a client and the server it talks to, on loopback and in virtual time. The server is played
 * by the test: it says and hears WebSocket by hand. Time stands still unless scene_pass() moves it.
 *
 * What the application is told is written to `log`, one word each: a state's name, a message's body,
 * "sent:ID:SEQUENCE", "refused:ID:CODE", "error:CHAT:CODE".
 */
#ifndef ROLLCALL_CLIENTS_C_FAKE_SERVER_H
#define ROLLCALL_CLIENTS_C_FAKE_SERVER_H

#include "client.h"

enum { SCENE_BYTES_MAX = 256 * 1024, SCENE_LOG_BYTES = 16 * 1024 };

struct scene {
    struct rollcall *client;
    int listener;
    int fd; /* of the connection last accepted; -1: none */
    char request[4096];
    char log[SCENE_LOG_BYTES];
    int64_t wait_ms; /* of the last BACKOFF */
    char why[512];   /* of the last BACKOFF or STOPPED: its code and text */
    size_t body_len; /* of the last message */
    const char *fresh;
    int fresh_asked;
    size_t in_len;
    char in[SCENE_BYTES_MAX];
    char text[SCENE_BYTES_MAX]; /* what scene_next() found */
};

/* A client that has not begun to connect, with the token "first" and the device "a phone". */
void scene_open(struct scene *scene);
void scene_close(struct scene *scene);

/* The same for cmocka: a test's state is its scene. */
int scene_set_up(void **state);
int scene_tear_down(void **state);

/* Lets the client do what is due; scene_pass() after so long. scene_let_pass() only moves time. */
void scene_turn(struct scene *scene);
void scene_pass(struct scene *scene, int64_t ms);
void scene_let_pass(int64_t ms);

/* Takes the client's connection and reads its request; scene_accept() answers 101 as well. */
void scene_accept_raw(struct scene *scene);
void scene_accept(struct scene *scene);

/* connection_established: a heartbeat every 5 s, dead after 15 s. */
void scene_establish(struct scene *scene);

/* All of that, and takes the first heartbeat. */
void scene_connect(struct scene *scene);

/* What the server says; the client has heard it when they return. */
void scene_write(struct scene *scene, const char *text);
void scene_frame(struct scene *scene, unsigned opcode, const void *data, size_t len);
void scene_say(struct scene *scene, const char *json);
void scene_sayf(struct scene *scene, const char *format, ...) __attribute__((format(printf, 2, 3)));
void scene_close_frame(struct scene *scene, unsigned code);
void scene_hang_up(struct scene *scene);

/* What the server hears: the next frame's opcode (0: none comes), its payload in `text`. */
unsigned scene_next_opcode(struct scene *scene);
/* The next text; NULL: none comes. */
const char *scene_next(struct scene *scene);
/* The next text of this type; others than heartbeats must not come before it. */
const char *scene_expect(struct scene *scene, const char *type);
void scene_expect_nothing(struct scene *scene);
void scene_expect_no(struct scene *scene, const char *type);

#endif
