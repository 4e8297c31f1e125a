/**
 * What requests cost in DynamoDB's units, from what they write and read. DynamoDB Local miscounts its own figures, so this
 * follows the documented rules:
 *
 *   a write costs 1 unit for each started KB of the item, at least 1; in a transaction 2, also for a condition alone
 *   a consistent read costs 1 unit for each started 4 KB, at least 1; in a transaction 2
 *   a query costs as one item of the size of all it read
 */
const KB = 1024;

/** An attribute's value counts its bytes; a number about half of its digits and one more. */
const valueBytes = ([[type, value]]) =>
  type === 'N' ? Math.ceil(value.replace(/[-.]/g, '').length / 2) + 1 : Buffer.byteLength(String(value));

export const itemBytes = (item) =>
  Object.entries(item ?? {}).reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + valueBytes(Object.entries(value)), 0);

const writeUnits = (bytes) => Math.max(1, Math.ceil(bytes / KB));
const readUnits = (bytes) => Math.max(1, Math.ceil(bytes / (4 * KB)));

/** The writes of a request as `{ table, key | item, factor }`. */
function writesOf({ target, body }) {
  const write = ({ TableName: table, Item: item, Key: key }, factor) => ({ table, item, key, factor });
  if (target === 'TransactWriteItems')
    return body.TransactItems.map((part) => write(Object.values(part)[0], 2));
  if (target === 'BatchWriteItem')
    return Object.entries(body.RequestItems).flatMap(([TableName, parts]) =>
      parts.map(({ PutRequest, DeleteRequest }) => write({ TableName, ...PutRequest, ...DeleteRequest }, 1)));
  return ['PutItem', 'UpdateItem', 'DeleteItem'].includes(target) ? [write(body, 1)] : [];
}

const readsOf = ({ target, body }) => {
  if (target === 'TransactGetItems') return body.TransactItems.map(() => 2);
  if (target === 'BatchGetItem') return Object.values(body.RequestItems).flatMap(({ Keys }) => Keys.map(() => 1));
  return ['GetItem', 'Query'].includes(target) ? [1] : [];
};

/** Adds up requests. `find` promises the item of a table and key as it is now; reads count as items of up to 4 KB. */
export async function countUnits(requests, find) {
  const total = { writeUnits: 0, readUnits: 0, writes: {} };
  for (const request of requests) {
    for (const { table, item, key, factor } of writesOf(request)) {
      const units = factor * writeUnits(itemBytes(item ?? (await find(table, key))));
      total.writeUnits += units;
      const name = table.replace(/^.*-/, '');
      total.writes[name] = (total.writes[name] ?? 0) + units;
    }
    total.readUnits += readsOf(request).reduce((sum, factor) => sum + factor * readUnits(0), 0);
  }
  return total;
}
