/* The command `dead-letters` on a ledger (control_call.h): lists messages that could not be fanned out, and puts them back into the
 * outbox, from where a running server delivers them within seconds. */
#ifndef ROLLCALL_APP_CONTROL_CONTROL_LETTERS_H
#define ROLLCALL_APP_CONTROL_CONTROL_LETTERS_H

#include "app/control/control_call.h"

#include <stdbool.h>

/* dead-letters [list] · dead-letters replay [all | CHAT:SEQUENCE…] */
void control_letters_run(const struct control_call *call);

/* Reads CHAT:SEQUENCE. A chat id may contain colons, so the last one separates the number. */
bool control_letters_parse(struct slice id, struct slice *chat, uint64_t *sequence);

#endif
