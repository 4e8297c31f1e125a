#include "store/budget_store.h"

static const char *const BUDGET_CLASS_NAMES[BUDGET_CLASS_COUNT] = {
    [BUDGET_NONE] = "none",       [BUDGET_MESSAGES] = "messages",
    [BUDGET_REST] = "rest",       [BUDGET_CONTACT_REQUESTS] = "contact_requests",
    [BUDGET_CHATS] = "chats",     [BUDGET_SETTINGS] = "settings",
    [BUDGET_READS] = "reads",     [BUDGET_SIGNALS] = "signals",
    [BUDGET_CALLS] = "calls",     [BUDGET_EVENTS] = "events",
    [BUDGET_SERVICE] = "service", [BUDGET_REFUSALS] = "refusals",
};

const char *budget_class_name(enum budget_class budget)
{
    return BUDGET_CLASS_NAMES[budget];
}
