#include "config/config.h"

#include "config/config_assign.h"
#include "config/config_check.h"
#include "config/config_derive.h"
#include "config/config_environment.h"
#include "config/config_file.h"

#include <assert.h>

static bool read_config_defaults(struct config *config, struct config_error *error)
{
    struct config_place place = {.source = CONFIG_FROM_DEFAULT, .label = "defaults"};
    for (size_t i = 0; i < setting_count(); i++)
        if (!config_assign(config, &place, setting_at(i), slice_of(setting_at(i)->initial), error))
            return false;
    return true;
}

static bool read_config_assignments(struct config *config, const struct config_inputs *inputs,
                                    struct config_error *error)
{
    struct config_place place = {.source = CONFIG_FROM_SET, .label = "--set"};
    for (size_t i = 0; i < inputs->assignment_count; i++) {
        struct slice name;
        struct slice value = slice_split(slice_of(inputs->assignments[i]), '=', &name);
        const struct setting *setting = setting_find(name);
        if (!setting)
            return config_fail_unknown(error, &place, name);
        if (!value.data)
            return config_fail(error, &place, "%s has no value; expected %s=VALUE", setting->name,
                               setting->name);
        if (!config_assign(config, &place, setting, value, error))
            return false;
    }
    return true;
}

static bool read_config_flags(struct config *config, const struct config_inputs *inputs,
                              struct config_error *error)
{
    for (size_t i = 0; i < inputs->flag_count; i++) {
        const struct config_flag *flag = &inputs->flags[i];
        struct config_place place = {.source = CONFIG_FROM_FLAG, .label = flag->flag};
        const struct setting *setting = setting_find(slice_of(flag->setting));
        assert(setting);
        if (!config_assign(config, &place, setting, slice_of(flag->value), error))
            return false;
    }
    return true;
}

bool config_load(struct config *config, const struct config_inputs *inputs,
                 struct config_error *error)
{
    *config = (struct config){0};
    if (read_config_defaults(config, error) &&
        (!inputs->file || config_file_read(config, inputs->file, error)) &&
        config_environment_read(config, inputs->environment, error) &&
        read_config_assignments(config, inputs, error) &&
        read_config_flags(config, inputs, error) &&
        config_derive(config, inputs->default_node_id, error) && config_check(config, error))
        return true;
    config_free(config);
    return false;
}

void config_free(struct config *config)
{
    for (size_t i = 0; i < setting_count(); i++)
        setting_release(setting_at(i), config);
    *config = (struct config){0};
}

const char *config_source_name(enum config_source source)
{
    static const char *const names[] = {
        [CONFIG_FROM_DEFAULT] = "default", [CONFIG_FROM_FILE] = "file",
        [CONFIG_FROM_ENVIRONMENT] = "env", [CONFIG_FROM_SET] = "set",
        [CONFIG_FROM_FLAG] = "flag",
    };
    return names[source];
}
