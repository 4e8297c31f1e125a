/* Erasures of users that are under way on a worker (service_erasure.c). */
#ifndef ROLLCALL_API_SERVICE_SERVICE_ERASURE_H
#define ROLLCALL_API_SERVICE_SERVICE_ERASURE_H

#include "api/api_context.h"

/* The worker ends: gives up those that wait for time to pass. Requests under way end by themselves. */
void service_erasure_stop(struct api_context *context);

#endif
