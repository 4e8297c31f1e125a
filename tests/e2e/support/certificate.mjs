/** Certificates made for the occasion, for the loopback interface. */
import { execFile } from 'node:child_process';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Puts certificate.pem of this name, and its key.pem, in their places in a directory at once. */
export async function makeCertificate(directory, name) {
  const [certificate, key] = [join(directory, `${name}.crt`), join(directory, `${name}.key`)];
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1'];
  const files = ['-keyout', key, '-out', certificate];
  await run('openssl', ['req', '-x509', ...kind, ...subject, ...files, '-days', '2']);
  await rename(key, join(directory, 'key.pem'));
  await rename(certificate, join(directory, 'certificate.pem'));
}

/** The settings with which a server uses them. */
export const certificateSettings = (directory) => ({
  'gateway.tls.certificate_file': join(directory, 'certificate.pem'),
  'gateway.tls.key_file': join(directory, 'key.pem'),
});
