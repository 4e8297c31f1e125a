#include "processes/settings_process.h"

#include "processes/requester.h"
#include "world/trace.h"
#include "world/world.h"

#include <poll.h>
#include <stdio.h>

enum { CHANGE_MS_MAX = 20 * 1000, PATH_BYTES = 96, BODY_BYTES = 96 };

struct settings {
    struct world *world;
    struct requester requester;
};

/* What the fleet has not confirmed may be either way. */
static void settings_toggle_hiding(struct settings *self, struct user *user)
{
    bool hides = !user->hides;
    char body[BODY_BYTES];
    snprintf(body, sizeof(body), "{\"presence_visibility\":\"%s\"}",
             hides ? "nobody" : "contacts_only");
    user->hides_us = POPULATION_PENDING_US;
    trace_line("%s begins to %s", user->name, hides ? "hide" : "show itself");
    if (!requester_ask(&self->requester, user, "PATCH", "/v1/me", body))
        return;
    user->hides = hides;
    user->hides_us = kernel_now_us();
    self->world->counts.settings++;
    trace_line("%s %s", user->name, hides ? "hides" : "shows itself");
}

static bool settings_request_contact(struct settings *self, const struct user *from,
                                     const struct user *to)
{
    char body[BODY_BYTES];
    snprintf(body, sizeof(body), "{\"to\":\"%s\"}", to->name);
    return requester_ask(&self->requester, from, "POST", "/v1/contact-requests", body);
}

static void settings_toggle_block(struct settings *self, struct user *user, size_t contact)
{
    struct population *population = &self->world->population;
    struct user *other = &population->users[user->contacts[contact]];
    struct tie tie = user->ties[contact];
    bool blocks = !tie.is_severed;
    char path[PATH_BYTES];
    if (other->keeps_settings || (tie.is_severed && !tie.is_blocked_by_us))
        return;
    snprintf(path, sizeof(path), "/v1/blocks/%s", other->name);
    tie.changed_us = POPULATION_PENDING_US;
    population_set_tie(population, user, contact, tie);
    trace_line("%s begins to %s %s", user->name, blocks ? "block" : "unblock", other->name);
    bool done = requester_ask(&self->requester, user, blocks ? "PUT" : "DELETE", path, "") &&
                (blocks || (settings_request_contact(self, user, other) &&
                            settings_request_contact(self, other, user)));
    if (!done)
        return;
    tie = (struct tie){blocks, blocks, kernel_now_us()};
    population_set_tie(population, user, contact, tie);
    self->world->counts.settings++;
    trace_line("%s %s %s", user->name, blocks ? "blocks" : "unblocks", other->name);
}

static void settings_change_one(struct settings *self, struct random *random)
{
    const struct population *population = &self->world->population;
    struct user *user = &population->users[random_below(random, population->user_count)];
    if (user->keeps_settings)
        return;
    if (random_below(random, 2))
        settings_toggle_hiding(self, user);
    else if (user->contact_count > 0)
        settings_toggle_block(self, user, random_below(random, user->contact_count));
}

static int settings_run(void *arg)
{
    struct world *world = arg;
    struct settings self = {
        .world = world,
        .requester = {.address = world->setup.address, .port = world->setup.port, .fd = -1}};
    struct random random;
    random_init_seeded(&random, random_u64(&kernel_process()->random));
    while (!world->is_quiet) {
        poll(&(struct pollfd){.fd = -1}, 1, (int)random_below(&random, CHANGE_MS_MAX));
        if (!world->is_quiet)
            settings_change_one(&self, &random);
    }
    requester_close(&self.requester);
    return 0;
}

void settings_process_start(struct world *world, struct machine *machine)
{
    process_start(machine, "settings", settings_run, world);
}
