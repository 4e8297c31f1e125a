/** A web server for the examples: it serves the files of the repository. */
import { createServer } from 'node:http';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = new URL('../../../', import.meta.url);
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };

/** `folders` maps path prefixes to other folders, both relative to the root. */
export async function serveFiles(folders = {}) {
  const find = (path) => {
    const moved = Object.keys(folders).find((prefix) => path.startsWith(prefix));
    return moved === undefined ? path : folders[moved] + path.slice(moved.length);
  };
  const http = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    const path = pathname.endsWith('/') ? `${pathname}index.html` : pathname;
    const file = fileURLToPath(new URL(find(path).slice(1), ROOT));
    const bytes = await readFile(file).catch(() => undefined);
    response.writeHead(bytes === undefined ? 404 : 200, {
      'content-type': TYPES[extname(file)] ?? 'application/octet-stream',
    });
    response.end(bytes);
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  return {
    url: `http://127.0.0.1:${http.address().port}/`,
    stop() {
      http.closeAllConnections?.();
      return new Promise((resolve) => http.close(resolve));
    },
  };
}
