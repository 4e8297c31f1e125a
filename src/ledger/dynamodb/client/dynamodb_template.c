#include "ledger/dynamodb/client/dynamodb_template.h"

#include "ledger/dynamodb/client/dynamodb_url.h"
#include "ledger/dynamodb/dynamodb_tables.h"

#include <ctype.h>

static const char TEMPLATE_HEAD[] =
    "# The tables of Rollcall's ledger for CloudFormation. Written by `rollcall tables template`, never by hand.\n"
    "# Removing the stack leaves the tables: they are retained and protected from deletion.\n"
    "AWSTemplateFormatVersion: '2010-09-09'\n"
    "Description: Tables of the Rollcall ledger\n"
    "Parameters:\n"
    "  Prefix:\n"
    "    Type: String\n"
    "    Default: " DYNAMODB_PREFIX_DEFAULT "\n"
    "    Description: The beginning of the tables' names, as in --ledger dynamodb://REGION?prefix=NAME\n"
    "Resources:\n";

/* "chat_counters" → "ChatCounters": names of resources have letters and digits only. */
static void write_resource_name(struct buffer *out, const char *table)
{
    bool is_first = true;
    for (; *table; table++) {
        if (*table != '_')
            buffer_append_byte(out, is_first ? (char)toupper((unsigned char)*table) : *table);
        is_first = *table == '_';
    }
}

static void write_template_key(struct buffer *out, const struct dynamodb_table_description *table)
{
    const char *sort_type = table->sort_is_number ? "N" : "S";
    buffer_printf(out, "      AttributeDefinitions:\n");
    buffer_printf(out, "        - {AttributeName: %s, AttributeType: S}\n", table->partition);
    if (table->sort)
        buffer_printf(out, "        - {AttributeName: %s, AttributeType: %s}\n", table->sort,
                      sort_type);
    buffer_printf(out, "      KeySchema:\n");
    buffer_printf(out, "        - {AttributeName: %s, KeyType: HASH}\n", table->partition);
    if (table->sort)
        buffer_printf(out, "        - {AttributeName: %s, KeyType: RANGE}\n", table->sort);
}

static void write_template_table(struct buffer *out, const struct dynamodb_table_description *table)
{
    buffer_append_text(out, "  ");
    write_resource_name(out, table->name);
    buffer_printf(out,
                  ":\n"
                  "    Type: AWS::DynamoDB::Table\n"
                  "    DeletionPolicy: Retain\n"
                  "    UpdateReplacePolicy: Retain\n"
                  "    Properties:\n"
                  "      TableName: !Sub '${Prefix}%s'\n"
                  "      BillingMode: PAY_PER_REQUEST\n"
                  "      DeletionProtectionEnabled: true\n"
                  "      PointInTimeRecoverySpecification: {PointInTimeRecoveryEnabled: true}\n",
                  table->name);
    write_template_key(out, table);
    if (table->expires)
        buffer_printf(out, "      TimeToLiveSpecification: {AttributeName: %s, Enabled: true}\n",
                      table->expires);
}

void dynamodb_template_write(struct buffer *out)
{
    buffer_append_text(out, TEMPLATE_HEAD);
    for (unsigned at = 0; at < DYNAMODB_TABLE_COUNT; at++)
        write_template_table(out, &dynamodb_tables[at]);
}
