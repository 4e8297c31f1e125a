/** Self-signed certificates for the loopback interface, made at test time. */
import { execFile } from 'node:child_process';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Writes certificate.pem with this common name, and key.pem, into a directory; each file is replaced atomically. */
export async function makeCertificate(directory, name) {
  const [certificate, key] = [join(directory, `${name}.crt`), join(directory, `${name}.key`)];
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1'];
  const files = ['-keyout', key, '-out', certificate];
  await run('openssl', ['req', '-x509', ...kind, ...subject, ...files, '-days', '2']);
  await rename(key, join(directory, 'key.pem'));
  await rename(certificate, join(directory, 'certificate.pem'));
}

/** Settings of a server that uses the certificate in this directory. */
export const certificateSettings = (directory) => ({
  'gateway.tls.certificate_file': join(directory, 'certificate.pem'),
  'gateway.tls.key_file': join(directory, 'key.pem'),
});
