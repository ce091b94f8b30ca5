import { invalid } from './error.js';

/** @internal Where the daemon is, as net.connect takes it. */
export type Address = { readonly url: string } & ({ readonly path: string } | { readonly host: string; readonly port: number });

const DEFAULT = 'unix:/run/rationd/rationd.sock';
const MAX_SOCKET_PATH = 107;

/** @internal The address of a URL; without one that of $RATIOND_SOCKET, or the default. */
export function addressOf(given: string | undefined): Address {
	const url = given ?? (process.env.RATIOND_SOCKET || DEFAULT);

	if (typeof url !== 'string') {
		throw invalid(`expected unix:PATH or tcp:HOST:PORT, not ${String(url)}`, 'url');
	}
	if (url.startsWith('unix:')) {
		const path = url.slice('unix:'.length);
		if (path === '' || Buffer.byteLength(path) > MAX_SOCKET_PATH || path.includes('\0')) {
			throw invalid(`a socket's path has 1 to ${MAX_SOCKET_PATH} bytes`, url);
		}
		return { url, path };
	}
	if (!url.startsWith('tcp:')) {
		throw invalid('expected unix:PATH or tcp:HOST:PORT', url);
	}
	const [, literal, name, digits] = /^tcp:(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(url) ?? [];
	const host = literal ?? name;
	const port = Number(digits);
	if (host === undefined || !(port >= 1 && port <= 65535)) {
		throw invalid('expected tcp:HOST:PORT or tcp:[ADDRESS]:PORT', url);
	}
	return { url, host, port };
}
