/* The tables as a CloudFormation template, written from their description (dynamodb_tables.h). */
#ifndef ROLLCALL_LEDGER_DYNAMODB_CLIENT_DYNAMODB_TEMPLATE_H
#define ROLLCALL_LEDGER_DYNAMODB_CLIENT_DYNAMODB_TEMPLATE_H

#include "base/buffer.h"

/* Appends the template; check out->failed. deploy/dynamodb_tables.yaml is this text. */
void dynamodb_template_write(struct buffer *out);

#endif
