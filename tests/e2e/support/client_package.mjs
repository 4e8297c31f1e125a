/** The JavaScript client as an application gets it: from the tarball of `npm pack`. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

export const CLIENT_SOURCE = fileURLToPath(new URL('../../../clients/js/', import.meta.url));

/** What the client's own tests install (tools/npm-install clients/js). */
export const requireDevelopment = createRequire(join(CLIENT_SOURCE, 'package.json'));

/**
 * Makes an application's folder whose node_modules has the packed client, and links to `packages` of the client's
 * development. Promises `{folder, remove()}`.
 */
export async function installPackedClient({ packages = [] } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'rollcall-package-'));
  const modules = join(folder, 'node_modules');
  await mkdir(join(modules, 'rollcall'), { recursive: true });
  const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: CLIENT_SOURCE });
  const tarball = join(folder, stdout.trim());
  await run('tar', ['xzf', tarball, '-C', join(modules, 'rollcall'), '--strip-components=1']);
  for (const name of packages) {
    await mkdir(join(modules, name, '..'), { recursive: true });
    await symlink(join(CLIENT_SOURCE, 'node_modules', name), join(modules, name));
  }
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}
