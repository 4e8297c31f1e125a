#include "invariants/invariants.h"
#include "world/trace.h"
#include "world/world.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static void chat_reserve(struct chat *chat, int64_t sequence)
{
    if ((size_t)sequence < chat->capacity)
        return;
    size_t capacity = 2 * (size_t)sequence + 64;
    chat->ids = realloc(chat->ids, capacity * sizeof(chat->ids[0]));
    chat->acknowledged = realloc(chat->acknowledged, capacity * sizeof(chat->acknowledged[0]));
    for (size_t i = chat->capacity; i < capacity; i++) {
        chat->ids[i] = 0;
        chat->acknowledged[i] = false;
    }
    chat->capacity = capacity;
}

/* Whether another sequence has the same message; all texts differ. */
static bool chat_has(const struct chat *chat, uint64_t id)
{
    for (int64_t i = 0; i < chat->last_sequence; i++)
        if (chat->ids[i] == id)
            return true;
    return false;
}

/* Every sight of a sequence must be of the same message. */
static void check_sequence(struct world *world, const struct device *device, struct chat *chat,
                           int64_t sequence, const char *body)
{
    uint64_t id = XXH3_64bits(body, strlen(body)) | 1;
    chat_reserve(chat, sequence);
    if (chat->ids[sequence - 1] == 0 && chat_has(chat, id))
        invariants_violate(world, MESSAGE_IS_STORED_ONCE, "%s got %s as %s:%lld, and before",
                           device->name, body, chat->id, (long long)sequence);
    if (chat->ids[sequence - 1] == 0)
        chat->ids[sequence - 1] = id;
    else if (chat->ids[sequence - 1] != id)
        invariants_violate(world, SEQUENCE_IS_UNIQUE, "%s got %s as %s:%lld, which was another",
                           device->name, body, chat->id, (long long)sequence);
    if (sequence > chat->last_sequence)
        chat->last_sequence = sequence;
}

/* A message that waits for no answer any more gets another one. */
static void check_answer(struct world *world, struct device *device,
                         const struct rollcall_event *event)
{
    if (device->unanswered_count == 0)
        invariants_violate(world, REQUEST_IS_ANSWERED_ONCE, "%s got a second answer to %s",
                           device->name, event->client_message_id);
    else
        device->unanswered_count--;
}

void invariants_on_refused(struct world *world, struct device *device,
                           const struct rollcall_event *event)
{
    check_answer(world, device, event);
    trace_line("%s refused %s %s", device->name, event->client_message_id, event->code);
}

void invariants_on_acknowledged(struct world *world, struct device *device,
                                const struct rollcall_event *event)
{
    check_answer(world, device, event);
    struct chat *chat = device->user->chat;
    check_sequence(world, device, chat, event->sequence, event->client_message_id);
    chat->acknowledged[event->sequence - 1] = true;
    world->counts.acknowledged++;
    trace_line("%s sent %s as %lld", device->name, event->client_message_id,
               (long long)event->sequence);
}

void invariants_on_message(struct world *world, struct device *device,
                           const struct rollcall_event *event)
{
    check_sequence(world, device, device->user->chat, event->sequence, event->body);
    world->counts.delivered++;
    if (event->sequence != device->last_sequence + 1)
        invariants_violate(world, SEQUENCE_IS_DENSE, "%s got %lld after %lld of %s", device->name,
                           (long long)event->sequence, (long long)device->last_sequence,
                           event->chat_id);
    device->last_sequence = event->sequence;
}

/* ---- the end ---- */

/* What was acknowledged or delivered once, somebody has: it did not get lost with a crash. */
static void check_chat_end(struct world *world, const struct chat *chat)
{
    for (int64_t i = 0; i < chat->last_sequence; i++)
        if (chat->ids[i] == 0)
            invariants_violate(world, FAILFAST_PERSISTENCE, "nobody has %s:%lld", chat->id,
                               (long long)i + 1);
}

static void check_device_end(struct world *world, const struct device *device)
{
    const struct chat *chat = device->user->chat;
    if (!device->process)
        return;
    if (!device->is_connected)
        invariants_violate(world, RECONNECT_HEALS, "%s is not connected", device->name);
    else if (device->unanswered_count > 0)
        invariants_violate(world, NO_SILENT_MESSAGE_LOSS, "%u messages of %s wait",
                           device->unanswered_count, device->name);
    else if (device->last_sequence < chat->last_sequence)
        invariants_violate(world, MULTI_DEVICE_DELIVERY, "%s has %s up to %lld of %lld",
                           device->name, chat->id, (long long)device->last_sequence,
                           (long long)chat->last_sequence);
}

void message_invariants_check_end(struct world *world)
{
    const struct population *population = &world->population;
    for (size_t i = 0; i < population->chat_count; i++)
        check_chat_end(world, &population->chats[i]);
    for (size_t i = 0; i < population->device_count; i++)
        check_device_end(world, &population->devices[i]);
}
