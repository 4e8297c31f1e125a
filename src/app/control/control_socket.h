/*
 * The control socket of a running server: a Unix socket DIRECTORY/control.sock, through which commands work on the ledger
 * that the server has open (control_call.h).
 *
 *   client: one JSON array of texts and a newline ──► server: {"status":0,"output":"…","error":"…"}, then it closes
 *
 * Only processes of the same user, or of root, are served. At most CONTROL_CLIENTS_MAX at a time, CONTROL_CLIENT_MS and
 * CONTROL_REQUEST_BYTES_MAX for each; others wait in the kernel's queue. Servers that share a directory share the socket:
 * the first one has it, and another takes it over within CONTROL_RETRY_MS after it ends. A socket file that a killed
 * server has left behind is replaced.
 *
 * One per process, on one loop's thread. control_socket_ask() is the client's side, which blocks.
 */
#ifndef ROLLCALL_APP_CONTROL_CONTROL_SOCKET_H
#define ROLLCALL_APP_CONTROL_CONTROL_SOCKET_H

#include "app/control/control_call.h"
#include "base/buffer.h"
#include "net/loop.h"

#define CONTROL_SOCKET_NAME "control.sock"

enum {
    CONTROL_CLIENTS_MAX = 8,
    CONTROL_CLIENT_MS = 15000,
    CONTROL_REQUEST_BYTES_MAX = 65536,
    CONTROL_RETRY_MS = 2000,
    CONTROL_DIRECTORY_BYTES_MAX = 4096,
};

struct control_socket;

struct control_client {
    struct loop_source source; /* fd -1: this place is free */
    struct control_socket *socket;
    struct wheel_timer deadline;
    struct buffer in;
    struct buffer out;
    size_t written;
    bool running; /* its command has not completed: its place is not free */
};

struct control_socket {
    struct loop_source source; /* fd -1: not listening */
    struct loop *loop;
    struct ledger_client *ledger;
    struct random *random;
    struct wheel_timer retry;
    struct control_client clients[CONTROL_CLIENTS_MAX];
    bool is_open;
    char directory[CONTROL_DIRECTORY_BYTES_MAX];
};

/* Listens as soon as it can; logs why it cannot. */
void control_socket_open(struct control_socket *control, struct loop *loop, const char *directory,
                         struct ledger_client *ledger, struct random *random);

/* Removes the socket file and ends all clients. Does nothing if it was never opened. */
void control_socket_close(struct control_socket *control);

/* Sends a command to the server of a directory. Returns false when none listens there. Otherwise prints what it says and
 * sets *exit_status. */
bool control_socket_ask(const char *directory, const struct slice *arguments, size_t count,
                        const char *command, int *exit_status);

#endif
