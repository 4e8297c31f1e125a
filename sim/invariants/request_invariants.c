#include "invariants/invariants.h"
#include "world/world.h"

/* While no fault is near, an answer takes at most so long. */
enum { ANSWER_US_MAX = 20 * 1000 * 1000 };

void invariants_on_answer(struct world *world, struct device *device, unsigned id)
{
    for (size_t i = 0; i < POPULATION_REQUESTS_MAX; i++) {
        if (device->requests[i].id != id)
            continue;
        device->requests[i] = (struct request){0};
        world->counts.answered++;
        return;
    }
    invariants_violate(world, REQUEST_IS_ANSWERED_ONCE,
                       "%s got an answer to %u, which did not wait", device->name, id);
}

static void check_requests(struct world *world, const struct device *device)
{
    for (size_t i = 0; i < POPULATION_REQUESTS_MAX; i++) {
        const struct request *request = &device->requests[i];
        if (request->id && kernel_now_us() - request->asked_us > ANSWER_US_MAX)
            invariants_violate(world, REQUEST_IS_ANSWERED_ONCE, "request %u of %s has no answer",
                               request->id, device->name);
    }
}

void request_invariants_check(struct world *world)
{
    const struct population *population = &world->population;
    if (!invariants_is_calm(world))
        return;
    for (size_t i = 0; i < population->device_count; i++)
        if (population->devices[i].is_connected)
            check_requests(world, &population->devices[i]);
}

/* Devices end their calls when the quiet period begins, and nobody rings longer than half a minute. */
void call_invariants_check_end(struct world *world)
{
    const struct population *population = &world->population;
    for (size_t i = 0; i < population->device_count; i++)
        if (population->devices[i].process && population->devices[i].call != CALL_NONE)
            invariants_violate(world, CALLS_END, "%s is still in call %s (%d)",
                               population->devices[i].name, population->devices[i].call_id,
                               population->devices[i].call);
}
