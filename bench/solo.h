/*
 * One WebSocket client that waits for what it reads: for tests that look at a single connection, its
 * round trips or its end. Speaks Rollcall's native dialect.
 *
 * Where the pool (pool.h) ends the program when a server hangs up, this one hands the end out, since
 * the end is what its users look at. Everything else that goes wrong ends the program here too.
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
    size_t used;  /* bytes of the frame that was handed out last */
    size_t count; /* bytes in the buffer */
    char buffer[SOLO_BUFFER_BYTES];
};

/* Connects, upgrades and reads the greeting. `receive_bytes`: of the socket's buffer; 0: as usual. */
void solo_open(struct solo *solo, uint16_t port, const char *token, int receive_bytes);
void solo_close(struct solo *solo);

void solo_send(struct solo *solo, const char *text);

/* Waits for the next frame, which lasts until the next call. False: the server has ended the stream. */
bool solo_read(struct solo *solo, struct frame_view *frame);

#endif
