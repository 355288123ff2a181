/** Downloads, also repeated ones. Large files are compressed, because not every server does it. */

/** Returns the current content of a JSON file. */
export async function fetchJson(url) {
  const response = await fetch(url, { cache: "no-cache" });
  checkFound(url, response);
  return response.json();
}

/**
 * Downloads files and inflates them.
 * @param {{url: URL|string, bytes: number}[]} files
 * @param {(share: number) => void} onLoading receives the loaded share
 * @returns {Promise<Uint8Array[]>}
 */
export async function download(files, onLoading) {
  const total = files.reduce((sum, file) => sum + file.bytes, 0);
  let arrived = 0;
  const onBytes = (bytes) => onLoading(Math.min(1, (arrived += bytes) / total));
  return Promise.all(files.map(({ url }) => fetchBytes(url, onBytes).then(inflate)));
}

async function fetchBytes(url, onBytes) {
  const response = await fetch(url);
  checkFound(url, response);
  const reader = response.body.getReader();
  const chunks = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    onBytes(value.length);
    chunks.push(value);
  }
  return new Blob(chunks);
}

function checkFound(url, { ok, status, statusText }) {
  if (!ok) throw new Error(`${url}: ${status} ${statusText}`);
}

/** Decompresses gzip; some servers make the browser do it. */
async function inflate(blob) {
  const [first, second] = new Uint8Array(await blob.slice(0, 2).arrayBuffer());
  const isGzip = first === 0x1f && second === 0x8b;
  const stream = isGzip
    ? blob.stream().pipeThrough(new DecompressionStream("gzip"))
    : blob.stream();
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * Refreshes repeatedly while the page is visible.
 * @param {() => Promise<void>} refresh
 * @param {() => number} pause milliseconds before the next refresh
 * @param {(problem: string) => void} onProblem receives the problem, "" when it is solved
 */
export async function poll(refresh, pause, onProblem) {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, pause()));
    await visible();
    try {
      await refresh();
      onProblem("");
    } catch {
      onProblem("The server does not answer. Trying again.");
    }
  }
}

/** Resolves when the page is visible. */
export async function visible() {
  while (document.hidden) {
    await new Promise((resolve) => {
      document.addEventListener("visibilitychange", resolve, { once: true });
    });
  }
}
