// Does with the Node library what a script says: README.md says how.
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Client, RationError } from 'rationd';

const PATIENCE = { timeoutMs: 30_000 };

const client = new Client({ url: process.argv[2], sendIntervalMs: 10 });
const leases = new Map();

client.on('loss', ({ code, path, amount }) => console.log(`* loss ${code} ${path} ${amount}`));

// A code as scripts say it: what the library found out by itself has a name of its own.
function codeOf(error) {
	if (!(error instanceof RationError)) {
		throw error;
	}
	const isOurs = error.item === client.url;
	const names = { UNAVAILABLE: isOurs ? 'UNREACHABLE' : 'UNAVAILABLE', DEADLINE_EXCEEDED: 'TIMEOUT', ABORTED: 'LOST' };

	return names[error.code] ?? error.code;
}

async function charge(words) {
	const options = { ...PATIENCE };

	for (; /^(wait=|dry$|detached$)/.test(words[0]); words.shift()) {
		const [word, ms] = words[0].split('=');
		options[{ wait: 'waitMs', dry: 'dryRun', detached: 'detached' }[word]] = ms === undefined ? true : Number(ms);
	}
	const items = [];
	for (let i = 0; i < words.length; i += 2) {
		items.push({ path: words[i], amount: BigInt(words[i + 1]) });
	}
	const { granted, bindings } = await client.charge(items, options);
	return granted ? 'granted' : ['refused', ...bindings.map((binding) => binding.path)].join(' ');
}

async function lease(name, path, want, ttlMs) {
	leases.set(name, client.lease(path, Number(want), { ttlMs: Number(ttlMs) }));
	await leases.get(name).wait(PATIENCE);
}

async function close(ms) {
	let undelivered = 0n;

	client.on('loss', ({ amount }) => (undelivered += BigInt(amount) < 0n ? -BigInt(amount) : BigInt(amount)));
	await client.close({ timeoutMs: Number(ms) }).catch(codeOf);
	return undelivered === 0n ? 'ok' : `undelivered ${undelivered}`;
}

const commands = {
	add: (path, n) => client.incr(path, BigInt(n)),
	flush: (ms) => client.flush({ timeoutMs: Number(ms) }),
	durable: (ms) => client.flush({ durable: true, timeoutMs: Number(ms) }),
	get: async (path) => `value ${(await client.get(path, PATIENCE)).total}`,
	charge: (...words) => charge(words),
	uncharge: (path, n) => client.uncharge(path, BigInt(n), PATIENCE),
	lease,
	try: (name, n, fallback) => (leases.get(name).try(Number(n), fallback) ? 'yes' : 'no'),
	return: async (name) => void (await leases.get(name).close(PATIENCE)),
	needs: (word) => (['durable', 'checks', 'open'].includes(word) ? 'ok' : 'unsupported'),
	close,
};

async function run(line) {
	const [tag, name, ...words] = line.split(' ');

	try {
		console.log(`${tag} ${(await commands[name]?.(...words)) ?? (name in commands ? 'ok' : 'unsupported')}`);
	} catch (error) {
		console.log(`${tag} error ${codeOf(error)}`);
	}
}

const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => void run(line));
await once(lines, 'close');
await client.close().catch(codeOf);
