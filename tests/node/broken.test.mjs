// Connections that are cut, and daemons that are away: nothing is lost, nothing is counted twice.
import assert from 'node:assert/strict';
import { after, before, mock, test } from 'node:test';
import { Client, RationError } from 'rationd';
import { Daemon, Proxy, randomOf, sleep, until } from './support.mjs';

const N_CUTS = 1000;

let daemon;

before(async () => {
	daemon = await Daemon.start({ config: '[metric jobs]\nkind = gauge\n' });
});
after(() => daemon.stop());

test('a thousand cuts', async () => {
	const proxy = await Proxy.start(daemon);
	const random = randomOf();
	const clients = Array.from({ length: 12 }, () => new Client({ url: proxy.url, sendIntervalMs: 1 }));
	let sum = 0n;

	proxy.cutAfter = () => (proxy.cuts < N_CUTS ? 1 + random(4000) : Infinity);
	const losses = [];
	const add = async (client, i) => {
		client.on('loss', (loss) => losses.push(loss));
		let charged = 0;
		while (proxy.cuts < N_CUTS) {
			for (let k = 0; k < 50; k++) {
				const n = 1 + random(100);
				client.incr(`cut/${k % 2 === 0 ? 0 : i}/${random(40)}`, n);
				sum += BigInt(n);
			}
			const { granted } = await client.charge(`jobs/${i}`, 1, { timeoutMs: Infinity }).catch((error) => {
				assert.equal(error.code, 'UNAVAILABLE'); // it was not sent
				return { granted: false };
			});
			charged += granted ? 1 : 0;
			await sleep(random(3));
		}
		await client.flush({ timeoutMs: Infinity });
		assert.equal((await client.get(`jobs/${i}`, { consistency: 'exact' })).total, charged);
		await client.close({ timeoutMs: Infinity });
	};
	await Promise.all(clients.map(add));
	proxy.stop();
	assert.deepEqual(losses, []);
	assert.equal(daemon.total('cut'), sum);
	assert.equal(daemon.total('jobs'), 0n);
	assert.ok(proxy.cuts >= N_CUTS);
});

test('while the daemon is away growth accumulates, in bounded memory', async () => {
	const other = new Daemon();
	const client = new Client({ url: other.url, maxUnacknowledged: 64 * 1024, sendIntervalMs: 1 });
	let disconnects = 0;

	client.on('disconnect', () => disconnects++);
	for (let round = 0; round < 100; round++) {
		for (let i = 0; i < 2000; i++) {
			client.incr(`away/${i}`);
		}
		await sleep(1);
	}
	await assert.rejects(client.flush({ timeoutMs: 50 }), (error) => error instanceof RationError && error.code === 'UNAVAILABLE');
	await assert.rejects(client.get('away'), { code: 'UNAVAILABLE' });
	await assert.rejects(client.charge('away/a'), { code: 'UNAVAILABLE' });
	assert.ok(disconnects > 0);
	await other.start();
	await client.flush({ timeoutMs: Infinity });
	assert.equal(other.total('away'), 200_000n);
	await client.close();
	await other.stop();
});

test('a client finds a daemon that was started anew', async () => {
	const other = await Daemon.start();
	const client = new Client({ url: other.url });
	let resets = 0;

	client.on('reset', () => resets++);
	client.incr('anew/a', 5);
	await client.setMetric('jobs', { kind: 'gauge' });
	const hold = await client.hold('jobs/a');
	await client.flush();
	await other.kill('SIGTERM');
	client.incr('anew/a', 6);
	await other.start();
	await client.flush({ timeoutMs: Infinity });
	assert.equal(other.total('anew'), 6n); // it kept nothing
	assert.equal(resets, 1);
	assert.equal(hold.isHeld, false);
	await hold.release();
	await client.close();
	await other.stop();
});

test('what is given back while the daemon is away is given back later', async () => {
	const proxy = await Proxy.start(daemon);
	const client = new Client({ url: proxy.url });
	const hold = await client.hold('jobs/later', 2);
	proxy.cutAfter = () => 0;
	proxy.cut();
	await until(() => !client.isConnected);
	await hold.release();
	assert.equal(daemon.total('jobs/later'), 2n);
	proxy.cutAfter = undefined;
	await until(() => daemon.total('jobs/later') === 0n);
	await client.close();
	proxy.stop();
});

test('a lease without a daemon', async () => {
	const other = new Daemon();
	const client = new Client({ url: other.url });
	const lease = client.lease('spent/a', 100, { ttlMs: 1000 });

	await assert.rejects(lease.wait(), { code: 'UNAVAILABLE' });
	assert.equal(lease.try(), false);
	assert.equal(lease.try(3, 'open'), true);
	assert.equal(lease.opened, 3);
	await other.start();
	// Back before there is such a metric: whether it is a counter can't be known yet.
	await until(() => lease.wait().catch((error) => error.code === 'NOT_FOUND'));
	other.ctl('quota', 'set', 'spent', '--max', '1000');
	await until(() => lease.wait().then(() => true, () => false));
	await until(() => other.total('spent/a') === 3n); // what was granted without it, as an addition
	assert.equal(lease.try(10), true);
	await other.stop();
	await until(() => !client.isConnected && lease.left === 0);
	assert.equal(lease.try(), false);
	const losses = [];
	client.on('loss', (loss) => losses.push(loss));
	await assert.rejects(client.close({ timeoutMs: 1 }), { code: 'UNAVAILABLE', text: /^10 on 1 counter could not be delivered/ });
	assert.deepEqual(losses.map(({ path, amount }) => [path, amount]), [['spent/a', 10]]);
	assert.equal(lease.try(), false);
	await lease.close();
	assert.equal(client.isConnected, false);
});

test('steps of the clock change nothing', async () => {
	const client = new Client({ url: daemon.url });
	const lease = client.lease('jobs/clock', 10, { ttlMs: 1000 });

	await lease.wait();
	mock.timers.enable({ apis: ['Date', 'setTimeout', 'setInterval'], now: 0 });
	try {
		for (const time of [2e12, 0, 4e12, 1]) {
			mock.timers.setTime(time);
			client.incr('clock/a');
			await client.flush();
			assert.equal((await client.get('clock/a')).kind, 'counter');
			await lease.wait();
			assert.equal(lease.try(), true);
			lease.give();
		}
	} finally {
		mock.timers.reset();
	}
	await lease.close();
	await client.close();
	assert.equal(daemon.total('clock'), 4n);
});
