/* Rules that a text must follow, each with the phrase that says so. */
#ifndef ROLLCALL_CONFIG_SETTING_RULE_H
#define ROLLCALL_CONFIG_SETTING_RULE_H

#include "base/slice.h"

struct setting_rule {
    bool (*holds)(struct slice text);
    const char *expected; /* completes "expected …"; for a list: each item */
};

extern const struct setting_rule setting_rule_address;
extern const struct setting_rule setting_rule_optional_address;
extern const struct setting_rule setting_rule_node_id;
extern const struct setting_rule setting_rule_network;
extern const struct setting_rule setting_rule_origin;
extern const struct setting_rule setting_rule_state_url;
extern const struct setting_rule setting_rule_ledger_url;
extern const struct setting_rule setting_rule_feed_url;
extern const struct setting_rule setting_rule_jwks_url;
extern const struct setting_rule setting_rule_optional_http_url;
extern const struct setting_rule setting_rule_webhook_endpoint;
extern const struct setting_rule setting_rule_ice_url;
extern const struct setting_rule setting_rule_turn_url;
extern const struct setting_rule setting_rule_not_empty;

#endif
