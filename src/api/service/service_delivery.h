/*
 * A delivery of the service API on its way: to users in batches, or to everyone at once.
 *
 *   made ──service_delivery_to_users()──► a batch ──SERVICE_DELIVERY_STEP_MS──► … ──► {"accepted":n}
 *   made ──service_delivery_to_everyone()──► counted ──► one publication per gateway ──► {"accepted":n}
 *
 * Each answers the exchange exactly once and frees the delivery. A 2xx is binding: the event is on its way to every device
 * of the users that were counted. If routes become unknown on the way, the answer is 503, and users of earlier batches
 * have got the event; the application repeats it.
 *
 * One thread. The delivery borrows its exchange, whose body holds the event.
 */
#ifndef ROLLCALL_API_SERVICE_SERVICE_DELIVERY_H
#define ROLLCALL_API_SERVICE_SERVICE_DELIVERY_H

#include "api/api_context.h"

enum { SERVICE_DELIVERY_BATCH_USERS = 256, SERVICE_DELIVERY_STEP_MS = 2 };

struct service_delivery;

/* `message` is a MESSAGE_DELIVERY whose slices live as long as the exchange. Returns NULL after answering 503. */
struct service_delivery *service_delivery_make(struct exchange **exchange,
                                               const struct message *message);

/* Frees a delivery that was not sent; the exchange is not answered. */
void service_delivery_free(struct service_delivery **delivery);

struct exchange *service_delivery_exchange(const struct service_delivery *delivery);

/* Copies the users, who may repeat. Takes the delivery. */
void service_delivery_to_users(struct service_delivery *delivery, const struct slice *users,
                               size_t count);
void service_delivery_to_everyone(struct service_delivery *delivery);

#endif
