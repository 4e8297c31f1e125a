/** A page that runs a script of ours with the packed client, bundled, served from an origin of its own. */
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { installPackedClient, requireDevelopment } from './client_package.mjs';

/** Bundles `script`, which may import `rollcall` and `packages`. Promises `{url, close()}` of a page with it. */
export async function serveBundle(script, { packages = [], define = {} } = {}) {
  const esbuild = requireDevelopment('esbuild');
  const installed = await installPackedClient({ packages });
  await writeFile(join(installed.folder, 'entry.jsx'), script);
  const { outputFiles } = await esbuild.build({
    absWorkingDir: installed.folder,
    entryPoints: ['entry.jsx'],
    bundle: true,
    format: 'esm',
    jsx: 'automatic',
    define,
    write: false,
  });
  await installed.remove();
  const page = `<!doctype html><meta charset="utf-8"><title>Client</title><link rel="icon" href="data:,">
    <div id="root"></div><script type="module">${outputFiles[0].text.replaceAll('</script', '<\\/script')}</script>`;
  const server = createServer((request, response) => {
    response.setHeader('Content-Type', 'text/html');
    response.end(page);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    close: () => {
      server.closeAllConnections?.();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
