/*
 * A Redis server as a simulated process: the model (redis_model/) behind a socket. The model's data belongs to the
 * simulator, so that it survives a crash as it would on a disk; a restart may also begin empty.
 */
#ifndef ROLLCALL_SIM_PROCESSES_REDIS_PROCESS_H
#define ROLLCALL_SIM_PROCESSES_REDIS_PROCESS_H

#include "kernel/kernel.h"
#include "redis_model/redis_model.h"

enum { REDIS_LISTEN_BYTES = 24 };

struct redis_server {
    struct redis_model model;
    struct machine *machine;
    struct process *process;         /* NULL: it does not run */
    char listen[REDIS_LISTEN_BYTES]; /* HOST:PORT */
    struct redis_model replica;
    bool has_replica;
};

void redis_server_init(struct redis_server *server, struct machine *machine, const char *listen);
void redis_server_free(struct redis_server *server);

/* `empty`: without the data that it had. */
void redis_server_start(struct redis_server *server, bool empty);
void redis_server_crash(struct redis_server *server);

/* From now on a replica gets nothing more. redis_server_fail_over() ends the server, and starts the other one, which may be the
 * same, with what the replica has. */
void redis_server_fall_behind(struct redis_server *server);
void redis_server_fail_over(struct redis_server *server, struct redis_server *other);

#endif
