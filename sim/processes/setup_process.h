/*
 * Makes the population known to the fleet before the devices connect: contacts, chats and privacy, over REST, as an application would.
 */
#ifndef ROLLCALL_SIM_PROCESSES_SETUP_PROCESS_H
#define ROLLCALL_SIM_PROCESSES_SETUP_PROCESS_H

#include "world/population.h"

struct setup {
    const struct population *population;
    uint32_t address; /* of the gateways */
    uint16_t port;
};

/* The main of the process; `arg` is a struct setup. Returns 0 when everything is there. */
int setup_run(void *arg);

#endif
