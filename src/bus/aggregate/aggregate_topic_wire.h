/* The bodies of calls and notices about topics: an event is a topic and the rest of the body, a list is topics one after the
 * other. */
#ifndef ROLLCALL_BUS_AGGREGATE_AGGREGATE_TOPIC_WIRE_H
#define ROLLCALL_BUS_AGGREGATE_AGGREGATE_TOPIC_WIRE_H

#include "bus/aggregate/aggregate_carrier.h"
#include "peer/wire.h"

static inline void aggregate_pass_topic(struct wire *wire, struct slice *topic)
{
    wire_text(wire, topic, 1, AGGREGATE_TOPIC_NAME_MAX);
}

static inline void aggregate_pass_topic_event(struct wire *wire, struct slice *topic,
                                              struct slice *payload)
{
    aggregate_pass_topic(wire, topic);
    wire_rest(wire, payload);
}

/* Reads the next topic of a list. Returns false at its end, or when the rest is none. */
static inline bool aggregate_read_topic(struct wire *wire, struct slice *topic)
{
    if (wire->in.len == 0)
        return false;
    aggregate_pass_topic(wire, topic);
    return !wire->failed;
}

#endif
