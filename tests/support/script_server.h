/*
 * An HTTP server on loopback for unit tests: it keeps connections open, records each request and answers it with the
 * next bytes of a script. It has no thread and allocates nothing: the test calls script_server_serve() between the
 * turns of its loop.
 */
#ifndef ROLLCALL_TESTS_SCRIPT_SERVER_H
#define ROLLCALL_TESTS_SCRIPT_SERVER_H

#include <stddef.h>

enum {
    SCRIPT_SERVER_CONNECTIONS_MAX = 8,
    SCRIPT_SERVER_EXCHANGES_MAX = 32,
    SCRIPT_SERVER_REQUEST_BYTES_MAX = 16 * 1024,
};

struct script_server {
    int listener;
    int fds[SCRIPT_SERVER_CONNECTIONS_MAX]; /* -1: free */
    char partial[SCRIPT_SERVER_CONNECTIONS_MAX][SCRIPT_SERVER_REQUEST_BYTES_MAX];
    size_t partial_len[SCRIPT_SERVER_CONNECTIONS_MAX];
    size_t connection_count; /* accepted so far */
    char url[64];            /* "http://127.0.0.1:PORT" */
    const char *answers[SCRIPT_SERVER_EXCHANGES_MAX];
    size_t answer_count;
    char requests[SCRIPT_SERVER_EXCHANGES_MAX][SCRIPT_SERVER_REQUEST_BYTES_MAX];
    size_t request_count;
};

void script_server_start(struct script_server *server);
void script_server_stop(struct script_server *server);

/* Appends the whole bytes of an answer to the script, borrowed; NULL: never answer. A request beyond the script's end
 * is not answered either. */
void script_server_then(struct script_server *server, const char *answer);

/* Forgets the requests and answers so far; connections stay. */
void script_server_restart_script(struct script_server *server);

/* Accepts, reads and answers what can be done without waiting. */
void script_server_serve(struct script_server *server);

#endif
