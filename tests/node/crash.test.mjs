// kill -9 of the daemon, again and again, started anew on the same file: the totals are what was added, exactly.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client } from 'rationd';
import { Daemon, program, randomOf, sleep } from './support.mjs';

const N_KILLS = Number(process.env.RATION_KILLS ?? 300);
const config = '[daemon]\ncheckpoint_interval = 20ms\n[metric jobs]\nkind = gauge\n';

test(`${N_KILLS} kills`, async () => {
	const daemon = await Daemon.start({ keeps: true, config });
	const random = randomOf();
	const clients = Array.from({ length: 4 }, () => new Client({ url: daemon.url, sendIntervalMs: 1 + random(10) }));
	const losses = [];
	let [sum, isOver, resets] = [0n, false, 0];

	const work = async (client, i) => {
		let charged = 0;
		client.on('loss', (loss) => losses.push(loss));
		client.on('reset', () => resets++);
		while (!isOver) {
			for (let k = 0; k < 20; k++) {
				const n = 1 + random(100);
				client.incr(`crash/${random(3) === 0 ? i : 0}/${random(100)}`, n);
				sum += BigInt(n);
			}
			const what = await client.charge([{ path: `jobs/${i}/a` }, { path: `spent/${i}` }], { timeoutMs: Infinity }).catch((error) => {
				assert.equal(error.code, 'UNAVAILABLE'); // nobody listened, and it was not sent
			});
			charged += what?.granted ? 1 : 0;
			await sleep(random(4));
		}
		return charged;
	};
	clients[0].incr('spent/first');
	await clients[0].flush({ durable: true });
	const works = clients.map(work);
	for (let i = 0; i < N_KILLS; i++) {
		await sleep(random(60));
		await daemon.kill();
		await sleep(random(20));
		await daemon.start();
	}
	isOver = true;
	const charged = await Promise.all(works);
	await Promise.all(clients.map((client) => client.flush({ durable: true, timeoutMs: Infinity })));
	await daemon.kill();
	await daemon.start();
	assert.equal(daemon.total('crash'), sum);
	charged.forEach((n, i) => assert.equal(daemon.total(`spent/${i}`), BigInt(n)));
	charged.forEach((n, i) => assert.equal(daemon.total(`jobs/${i}/a`), BigInt(n)));
	assert.deepEqual(losses, []);
	assert.equal(resets, 0);
	await Promise.all(clients.map((client) => client.close({ timeoutMs: Infinity })));
	assert.equal(daemon.total('jobs'), 0n);
	await daemon.stop();
});

test('what a program that has ended had added survives a kill', async () => {
	const daemon = await Daemon.start({ keeps: true, config: '[daemon]\ncheckpoint_interval = 60s\n' });

	for (const [i, end] of ['', 'process.exit();', 'await client.close();', 'await client.flush({ durable: true });'].entries()) {
		const { status, stderr } = await program(daemon.url, `for (let i = 0; i < 100; i++) client.incr('ended/${i}/' + i); await client.flush(); ${end}`);
		assert.deepEqual([status, stderr], [0, '']);
		await daemon.kill();
		await daemon.start();
		assert.equal(daemon.total(`ended/${i}`), 100n);
	}
	await daemon.stop();
});

test('much more than is kept until it is durable', async () => {
	const daemon = await Daemon.start({ keeps: true, config: '[daemon]\ncheckpoint_interval = 60s\n' });
	const client = new Client({ url: daemon.url, maxUnacknowledged: 64 * 1024, sendIntervalMs: 1 });
	for (let round = 0; round < 5; round++) {
		for (let i = 0; i < 10_000; i++) {
			client.incr(`much/${i}`);
		}
		await client.flush({ timeoutMs: Infinity }); // far sooner than by itself
	}
	await client.flush({ durable: true });
	await daemon.kill();
	await daemon.start();
	assert.equal(daemon.total('much'), 50_000n);
	await client.close();
	await daemon.stop();
});

test('leases and holds go on over a kill', async () => {
	const daemon = await Daemon.start({ keeps: true, config });
	const client = new Client({ url: daemon.url });
	daemon.ctl('quota', 'set', 'jobs/*', '--max', '100');
	const hold = await client.hold('jobs/a', 60);
	const lease = client.lease('jobs/b', 50, { ttlMs: 60_000 });
	await lease.wait();
	assert.ok(lease.try(20));
	await daemon.kill();
	await daemon.start();
	assert.equal(hold.isHeld, true);
	await client.flush({ timeoutMs: Infinity });
	assert.equal(daemon.total('jobs/a'), 60n);
	assert.ok(lease.try(5));
	await lease.close({ timeoutMs: Infinity });
	assert.equal(daemon.total('jobs/b'), 25n);
	await client.uncharge('jobs/b', 25);
	await hold.release();
	assert.equal(daemon.total('jobs'), 0n);
	await client.close();
	await daemon.stop();
});
