// A program by itself: goes on with the session of one that has called process.exit() (exit.ts).
import { readFileSync } from 'node:fs';
import { Client } from './client.js';
import type { Bequest } from './exit.js';

const bequest = JSON.parse(readFileSync(0, 'utf8')) as Bequest;
const client = new Client(bequest.options);

// What is undelivered is said in one line; what the daemon refuses was known to nobody yet.
client.on('loss', ({ code, path, amount, text }) => {
	if (code !== 'UNAVAILABLE') {
		process.stderr.write(`rationd: ${path}: ${amount} not counted: ${code}: ${text}\n`);
	}
});
client._inherit(bequest);
client.close().catch((error: Error) => process.stderr.write(`rationd: ${error.message}\n`));
