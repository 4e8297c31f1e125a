/** Calls DynamoDB from a test, signed, as an operator with AWS's own tools may. */
import { computeSignature } from './aws_signature.mjs';

/**
 * Signs and sends one request. `change` may spoil it after it was signed.
 *
 * @returns {Promise<{status: number, type?: string, answer: object}>} `type` names the error
 */
export async function callDynamodb(endpoint, target, body, options = {}) {
  const { keys, region = 'eu-central-1', at = new Date(), change = () => {} } = options;
  const text = JSON.stringify(body);
  const date = at.toISOString().replace(/[-:]|\.\d+/g, '');
  const headers = {
    'content-type': 'application/x-amz-json-1.0',
    host: new URL(endpoint).host,
    'x-amz-date': date,
    ...(keys.sessionToken === undefined ? {} : { 'x-amz-security-token': keys.sessionToken }),
    'x-amz-target': `DynamoDB_20120810.${target}`,
  };
  const scope = { day: date.slice(0, 8), region, service: 'dynamodb', signedHeaders: Object.keys(headers) };
  const request = { method: 'POST', path: '/', headers, body: text };
  const signature = computeSignature(request, scope, keys.secretAccessKey);
  headers.authorization =
    `AWS4-HMAC-SHA256 Credential=${keys.accessKeyId}/${scope.day}/${region}/dynamodb/aws4_request, ` +
    `SignedHeaders=${scope.signedHeaders.join(';')}, Signature=${signature}`;
  const sent = { headers, body: text };
  change(sent);
  delete sent.headers.host; // fetch adds it
  const response = await fetch(endpoint, { method: 'POST', ...sent });
  const answer = await response.json();
  return { status: response.status, type: answer.__type?.replace(/^.*#/, ''), answer };
}
