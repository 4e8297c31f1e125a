/*
 * One WebSocket client with blocking reads, for tests of a single connection: its round trips or its end.
 * Uses Rollcall's native dialect.
 *
 * The pool (pool.h) ends the program when a server closes a connection; this client returns the end to its
 * caller, whose test is about it. Any other failure ends the program.
 */
#ifndef ROLLCALL_BENCH_SOLO_H
#define ROLLCALL_BENCH_SOLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame.h"

#define SOLO_BUFFER_BYTES 131072

struct solo {
    int fd;
    size_t used;  /* bytes of the frame that was returned last */
    size_t count; /* bytes in the buffer */
    char buffer[SOLO_BUFFER_BYTES];
};

/* Connects, upgrades and reads connection_established. `receive_bytes`: size of the socket's buffer; 0: default. */
void solo_open(struct solo *solo, uint16_t port, const char *token, int receive_bytes);
void solo_close(struct solo *solo);

void solo_send(struct solo *solo, const char *text);

/* Waits for the next frame, which is valid until the next read. Returns false when the server has ended the
 * stream. */
bool solo_read(struct solo *solo, struct frame_view *frame);

#endif
