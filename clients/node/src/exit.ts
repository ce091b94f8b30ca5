// The end of the program. When nothing is left to do the loop comes to its end, and every client delivers what it still has; at a
// process.exit() nothing can be waited for, and what is left is handed to a process that is (deliver.ts).
import type { Client } from './client.js';

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
