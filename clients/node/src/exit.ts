// The end of the program. When nothing is left to do the loop comes to its end, and every client delivers what it still has. At a
// process.exit() nothing can be waited for but another process: it gets the session, goes on with it, and ends it (deliver.ts).
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import type { Client } from './client.js';
import type { LeaseBequest } from './lease.js';
import type { OperationsBequest } from './operations.js';
import type { Bequest as OutboxBequest } from './outbox.js';
import type { ClientOptions } from './types.js';

/** @internal A client that has ended, as JSON. */
export interface Bequest {
	readonly options: ClientOptions & { readonly exitTimeoutMs: number };
	readonly session: string;
	readonly operations: OperationsBequest;
	readonly leases: readonly LeaseBequest[];
	readonly outbox: OutboxBequest;
}

const START_MS = 10_000; // for the process to be there

const clients = new Set<Client>();

function beforeExit(): void {
	clients.forEach((client) => void client._rest());
}

function exit(): void {
	clients.forEach((client) => client._exit());
}

/** @internal */
export function enroll(client: Client): void {
	if (clients.size === 0) {
		process.on('beforeExit', beforeExit);
		process.on('exit', exit);
	}
	clients.add(client);
}

/** @internal */
export function dismiss(client: Client): void {
	clients.delete(client);
	if (clients.size === 0) {
		process.off('beforeExit', beforeExit);
		process.off('exit', exit);
	}
}

/** @internal Have another process go on, and wait for it. False: it could not be started, and nothing was said. */
export function deliver(bequest: Bequest): boolean {
	const env: NodeJS.ProcessEnv = { ...process.env, ELECTRON_RUN_AS_NODE: '1' };

	delete env.NODE_OPTIONS;
	try {
		const { error, status } = spawnSync(process.execPath, [join(__dirname, 'deliver.js')], {
			input: JSON.stringify(bequest),
			stdio: ['pipe', 'ignore', 2],
			timeout: START_MS + bequest.options.exitTimeoutMs,
			env,
		});
		return error === undefined && status === 0;
	} catch {
		return false;
	}
}
