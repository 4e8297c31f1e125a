/*
 * Settings from a YAML file.
 *
 * Sections may be nested mappings, dotted keys, or both; a list setting takes a YAML list or text
 * with commas. A key given twice, an unknown key, a value without sense, a second document,
 * anchors, aliases and tags are errors that name the line. An empty section, or an empty file, is
 * fine.
 */
#ifndef ROLLCALL_CONFIG_CONFIG_FILE_H
#define ROLLCALL_CONFIG_CONFIG_FILE_H

#include "config/config.h"

/* Reads at most CONFIG_FILE_BYTES_MAX bytes of the file named. */
bool config_file_read(struct config *config, const char *path, struct config_error *error);

#endif
