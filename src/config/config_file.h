/*
 * Settings from a YAML file.
 *
 * Sections may be nested mappings, dotted keys, or both; a list setting accepts a YAML list or text
 * with commas. A duplicate or unknown key, an invalid value, a second document, anchors, aliases
 * and tags are errors that name the line. An empty section or an empty file is valid.
 */
#ifndef ROLLCALL_CONFIG_CONFIG_FILE_H
#define ROLLCALL_CONFIG_CONFIG_FILE_H

#include "config/config.h"

/* Reads the file, of at most CONFIG_FILE_BYTES_MAX bytes. */
bool config_file_read(struct config *config, const char *path, struct config_error *error);

#endif
