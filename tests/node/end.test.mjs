// How programs, and worker threads, come to their end.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { Daemon, program, until } from './support.mjs';

let daemon;

before(async () => {
	daemon = await Daemon.start({ config: '[metric jobs]\nkind = gauge\n' });
});
after(() => daemon.stop());

function assertQuiet({ status, stderr, stdout }, expected = 0) {
	assert.equal(stderr, '');
	assert.equal(stdout, '');
	assert.equal(status, expected);
}

for (const type of ['module', 'commonjs']) {
	test(`a program that just ends has delivered everything (${type})`, async () => {
		assertQuiet(await program(daemon.url, `for (let i = 0; i < 1000; i++) client.incr('ended/${type}/' + i % 10);`, { type }));
		assert.equal(daemon.total(`ended/${type}`), 1000n);
	});
}

test('a client keeps no program running', async () => {
	assertQuiet(await program(daemon.url, `client.incr('running/a'); await client.flush(); client.lease('running/b', 10); client.incr('running/a');`));
	assert.equal(daemon.total('running/a'), 2n);
});

test('a program that waits for an answer is kept running', async () => {
	const { stdout, status } = await program(daemon.url, `
		client.incr('kept/a', 3);
		await client.flush();
		console.log((await client.get('kept/a')).total);`);
	assert.deepEqual([stdout, status], ['3\n', 0]);
});

test('the loop comes to its end, goes on, and ends again', async () => {
	assertQuiet(await program(daemon.url, `
		let rounds = 0;
		client.incr('rounds/a');
		process.on('beforeExit', () => {
			if (rounds++ < 3) {
				setTimeout(() => client.incr('rounds/a'), 1);
			}
		});`));
	assert.equal(daemon.total('rounds/a'), 4n);
});

test('process.exit() with increments pending', async () => {
	assertQuiet(await program(daemon.url, `client.incr('exit/a', 5); process.exit(3);`), 3);
	assert.equal(daemon.total('exit/a'), 5n);
	assertQuiet(await program(daemon.url, `
		client.incr('exit/b', 5);
		await client.flush();
		client.incr('exit/b', 2n ** 60n);
		client.counter('exit/b').incr();
		setTimeout(() => { client.incr('exit/b'); process.exit(); }, 60);`));
	assert.equal(daemon.total('exit/b'), 2n ** 60n + 7n);
});

test('process.exit() while batches are under way counts them once', async () => {
	const results = await Promise.all(Array.from({ length: 10 }, (_, i) => program(daemon.url, `
		for (let i = 0; i < 100; i++) client.incr('under/way');
		client.flush();
		setTimeout(() => { client.incr('under/way'); process.exit(); }, ${i});`)));
	results.forEach((result) => assertQuiet(result));
	assert.equal(daemon.total('under/way'), 1010n);
});

test('an uncaught exception loses nothing either', async () => {
	const { status, stderr } = await program(daemon.url, `client.incr('thrown/a', 9); throw new Error('oh');`);
	assert.equal(status, 1);
	assert.match(stderr, /Error: oh/);
	assert.equal(daemon.total('thrown/a'), 9n);
});

test('what is held goes back at the end, however it comes', async () => {
	for (const end of ['', 'process.exit();', 'throw 1;', 'await client.close();']) {
		const { stdout } = await program(daemon.url, `await client.hold('jobs/ended', 3); console.log((await client.get('jobs/ended')).total); ${end}`);
		assert.equal(stdout, '3\n');
		await until(() => daemon.total('jobs/ended') === 0n);
	}
});

test('what was spent of a lease is counted, however the end comes', async () => {
	const spend = `
		await client.setMetric('spent', { kind: 'counter' });
		const lease = client.lease('spent/a', 10);
		await lease.wait();
		lease.try(3);`;

	for (const [i, end] of ['', 'process.exit();', 'lease.try(4); process.exit();', 'await client.close();', 'throw 1;'].entries()) {
		const { stdout } = await program(daemon.url, `${spend.replaceAll('spent/a', `spent/${i}`)} console.log(lease.left); ${end}`);
		assert.equal(stdout, '7\n');
		assert.equal(daemon.total(`spent/${i}`), end.startsWith('lease') ? 7n : 3n);
	}
});

test('without a daemon the end comes in time, and says what is lost', async () => {
	const nowhere = `${daemon.url}-nowhere`;
	for (const end of ['', 'process.exit(0);', `await client.close({ timeoutMs: 100 }).catch((error) => console.error('rationd: ' + error.message));`]) {
		const { stderr, status } = await program(nowhere, `client.incr('lost/a', 5); client.decr('lost/b', 2); client.on('loss', () => {});\n${end}`);
		assert.match(stderr, /^rationd: UNAVAILABLE: "unix:.*-nowhere": 7 on 2 counters could not be delivered: connect ENOENT.*\n$/);
		assert.equal(status, 0);
	}
});

test('nothing is said where there is nothing to say', async () => {
	assertQuiet(await program(`${daemon.url}-nowhere`, `client.counter('a');`));
	assertQuiet(await program(`${daemon.url}-nowhere`, `process.exit(0);`));
});

test('where nobody reads what is lost the exit status is the same', async () => {
	const text = `const client = new (require('rationd').Client)({ url: '${daemon.url}-nowhere', exitTimeoutMs: 0 }); client.incr('a'); process.exitCode = 3;`;
	const child = spawn(process.execPath, ['-e', text], { stdio: ['ignore', 'ignore', 'pipe'] });

	child.stderr.destroy();
	const [status] = await once(child, 'exit');
	assert.equal(status, 3);
});

async function worker(lines) {
	const text = `const { Client } = require('rationd'); const { parentPort } = require('node:worker_threads');
		const client = new Client(process.env.RATIOND_SOCKET); (async () => { ${lines} })();`;
	const thread = new Worker(text, { eval: true, env: { ...process.env, RATIOND_SOCKET: daemon.url } });
	const [status] = await once(thread, 'exit');
	return status;
}

test('worker threads that end have delivered everything', async () => {
	const threads = Array.from({ length: 8 }, (_, i) => worker(`for (let i = 0; i < 1000; i++) client.incr('thread/' + ${i});`));

	assert.deepEqual(await Promise.all(threads), Array(8).fill(0));
	assert.equal(daemon.total('thread'), 8000n);
});

test('worker threads that end by process.exit(), and such that wait for answers', async () => {
	assert.equal(await worker(`client.incr('threads/a', 5); process.exit(3);`), 3);
	assert.equal(await worker(`client.incr('threads/a', 5); await client.flush(); client.incr('threads/a', 7); process.exit(0);`), 0);
	assert.equal(daemon.total('threads/a'), 17n);
});

test('a worker thread that is terminated leaves the others alone', async () => {
	const thread = new Worker(`const { Client } = require('rationd'); const client = new Client(process.env.RATIOND_SOCKET);
		setInterval(() => client.incr('terminated/a'), 1); client.flush().then(() => require('node:worker_threads').parentPort.postMessage('up'));`,
		{ eval: true, env: { ...process.env, RATIOND_SOCKET: daemon.url } });
	await once(thread, 'message');
	await thread.terminate();
	assert.equal(await worker(`client.incr('terminated/b'); await client.close();`), 0);
	assert.equal(daemon.total('terminated/b'), 1n);
});
