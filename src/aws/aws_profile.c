#include "aws/aws_profile.h"

#include "aws/aws_file.h"

#include <limits.h>
#include <stdio.h>

struct aws_section {
    bool found;
    bool is_indirect; /* it tells how to get keys */
    struct aws_key_text text;
};

/* ---- one file ---- */

/* "[profile NAME]" in the config file, where the word may be left out for the default. */
static bool is_section_of(struct slice line, struct slice profile, bool is_config)
{
    struct slice name = aws_trim(slice_first(slice_after(line, 1), line.len - 2));
    struct slice word = SLICE("profile");
    if (is_config && slice_starts_with(name, word) && name.len > word.len)
        return slice_equal(aws_trim(slice_after(name, word.len)), profile);
    return slice_equal(name, profile) && (!is_config || slice_is(profile, "default"));
}

/* A comment begins with a '#' or ';' behind a blank. */
static struct slice value_without_comment(struct slice value)
{
    for (size_t i = 1; i < value.len; i++)
        if ((value.data[i] == '#' || value.data[i] == ';') &&
            (value.data[i - 1] == ' ' || value.data[i - 1] == '\t'))
            return aws_trim(slice_first(value, i));
    return aws_trim(value);
}

static void read_section_line(struct slice line, struct aws_section *section)
{
    struct slice name;
    struct slice value = value_without_comment(slice_split(line, '=', &name));
    name = aws_trim(name);
    if (slice_is(name, "aws_access_key_id"))
        section->text.access_key_id = value;
    else if (slice_is(name, "aws_secret_access_key"))
        section->text.secret_access_key = value;
    else if (slice_is(name, "aws_session_token"))
        section->text.session_token = value;
    else if (slice_is(name, "role_arn") || slice_is(name, "credential_process") ||
             slice_starts_with(name, SLICE("sso_")))
        section->is_indirect = true;
}

static void read_section(struct slice text, struct slice profile, bool is_config,
                         struct aws_section *section)
{
    bool inside = false;
    *section = (struct aws_section){0};
    while (text.data) {
        struct slice line;
        text = slice_split(text, '\n', &line);
        bool is_nested = line.len && (line.data[0] == ' ' || line.data[0] == '\t');
        line = aws_trim(line);
        if (!line.len || is_nested || line.data[0] == '#' || line.data[0] == ';')
            continue;
        if (line.data[0] == '[' && line.data[line.len - 1] == ']') {
            inside = is_section_of(line, profile, is_config);
            section->found = section->found || inside;
        } else if (inside) {
            read_section_line(line, section);
        }
    }
}

/* ---- both files ---- */

/* Reads the section of the file at `path`, or in the home folder; a file that cannot be read has none. */
static void read_profile_file(const char *path, const struct aws_environment *environment,
                              bool is_config, struct buffer *file, struct aws_section *section)
{
    char in_home[PATH_MAX];
    *section = (struct aws_section){0};
    if (!path && !environment->home)
        return;
    if (!path) {
        int len = snprintf(in_home, sizeof(in_home), "%s/.aws/%s", environment->home,
                           is_config ? "config" : "credentials");
        if (len < 0 || (size_t)len >= sizeof(in_home))
            return;
        path = in_home;
    }
    buffer_clear(file);
    if (aws_file_read(path, file))
        read_section(buffer_slice(file),
                     slice_of(environment->profile ? environment->profile : "default"), is_config,
                     section);
}

static bool has_any_key(const struct aws_section *section)
{
    return section->text.access_key_id.len || section->text.secret_access_key.len;
}

bool aws_profile_read(const struct aws_environment *environment, struct buffer *file,
                      struct aws_key_text *out, const char **error)
{
    struct aws_section section;
    bool found = false;
    bool is_indirect = false;
    for (int is_config = 0; is_config <= 1; is_config++) {
        const char *path = is_config ? environment->config_file : environment->credentials_file;
        read_profile_file(path, environment, is_config, file, &section);
        if (file->failed) {
            *error = "out of memory"; /* the next kind must not be tried for that */
            return true;
        }
        found = found || section.found;
        is_indirect = is_indirect || section.is_indirect;
        if (has_any_key(&section)) {
            *out = section.text;
            return true;
        }
    }
    if (is_indirect)
        *error = "the profile has no keys but role_arn, credential_process or sso_…, "
                 "which are not supported";
    else if (environment->profile)
        *error = found ? "the profile of AWS_PROFILE has no keys"
                       : "there is no profile named as AWS_PROFILE";
    return *error != NULL;
}
