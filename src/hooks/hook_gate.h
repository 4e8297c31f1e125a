/*
 * The gate of a hook decides which questions may be asked at present. One per hook and process, shared by its workers, so
 * that the bounds hold for the application and not for each worker alone:
 *
 *   in flight   at most hooks.in_flight_max questions wait for an answer; further ones are refused at once
 *   breaker     after too many failures nothing is asked for a while (ledger/breaker.h draws the states)
 *
 * Any thread. A gate outlives the hooks that use it.
 */
#ifndef ROLLCALL_HOOKS_HOOK_GATE_H
#define ROLLCALL_HOOKS_HOOK_GATE_H

#include "config/config.h"
#include "ledger/breaker.h"

enum hook_admission { HOOK_ADMITTED, HOOK_TOO_MANY, HOOK_BREAKER_OPEN };

struct hook_gate;

/* `name` is for the log, a static text. Returns NULL when out of memory. */
struct hook_gate *hook_gate_make(const char *name, const struct config_hooks *config);
void hook_gate_free(struct hook_gate **gate);

/* Each HOOK_ADMITTED is followed by one hook_gate_leave() with its ticket. */
enum hook_admission hook_gate_enter(struct hook_gate *gate, int64_t now_ms, uint32_t *ticket);
void hook_gate_leave(struct hook_gate *gate, uint32_t ticket, enum breaker_result result,
                     int64_t now_ms);

/* Whether the breaker lets nothing through at present. */
bool hook_gate_is_shut(struct hook_gate *gate, int64_t now_ms);

#endif
