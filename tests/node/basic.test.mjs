// What a client does with a daemon that is there.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Client, RationError, RefusedError, codes } from 'rationd';
import { StatsD } from 'rationd/statsd';
import { Daemon, until } from './support.mjs';

let daemon;
let client;

before(async () => {
	daemon = await Daemon.start({ config: '[metric jobs]\nkind = gauge\n' });
	client = new Client({ url: daemon.url });
});
after(async () => {
	await client.close();
	await daemon.stop();
});

const fails = (code, item) => (error) => {
	assert.ok(error instanceof RationError, String(error));
	assert.equal(error.code, code);
	assert.equal(error.status, codes[code]);
	if (item !== undefined) {
		assert.equal(error.item, item);
	}
	assert.ok(error.text.length > 0);
	return true;
};

test('counts, in numbers and bigints, exactly', async () => {
	const hits = client.counter('requests/acme/web');

	assert.equal(client.counter('requests/acme/web'), hits);
	for (let i = 0; i < 1000; i++) {
		hits.incr();
	}
	hits.increment(2);
	hits.incr(3n);
	client.incr('requests/acme/api');
	client.increment('requests/acme/api', 4);
	client.incr('large/a', 2n ** 62n);
	client.incr('large/a', Number.MAX_SAFE_INTEGER);
	client.incr('large/a', Number.MAX_SAFE_INTEGER);
	await client.flush();
	assert.equal((await client.get('requests/acme', { consistency: 'exact' })).total, 1010);
	assert.equal((await client.get('large', { consistency: 'exact' })).total, 2n ** 62n + 2n * (2n ** 53n - 1n));
	assert.equal(daemon.total('requests/acme/web'), 1005n);
});

test('a gauge goes up and down', async () => {
	const level = client.counter('jobs/level');

	level.incr(5);
	await client.flush();
	level.decr(2);
	client.decrement('jobs/level');
	client.decr('jobs/level', 2n);
	await client.flush();
	assert.deepEqual(await client.get('jobs/level'), { path: 'jobs/level', kind: 'gauge', leaf: true, own: 0, total: 0 });
});

test('reads one and many, and says what is not there', async () => {
	client.incr('read/a', 3);
	client.incr('read/a/b', 4);
	await client.flush();
	assert.deepEqual(await client.get('read/a'), { path: 'read/a', kind: 'counter', leaf: false, own: 3, total: 7 });
	await assert.rejects(client.get('read/none'), fails('NOT_FOUND', 'read/none'));
	const values = await client.get(['read/a/b', 'read/none', 'read'], { consistency: 'exact' });
	assert.deepEqual(values.map((value) => value?.total), [4, undefined, 7]);
	assert.deepEqual(await client.get([]), []);
	assert.equal((await client.view({ consistency: 'exact' })).errorBound, 0);
});

test('walks a large subtree, each once, and parents first', async () => {
	for (let i = 0; i < 3500; i++) {
		client.incr(`walk/${i % 7}/${i}`, i + 1);
	}
	await client.flush();
	const seen = new Map();
	for await (const { path, total, depth } of client.walk('walk', { consistency: 'exact' })) {
		assert.ok(!seen.has(path));
		assert.equal(depth, path.split('/').length);
		assert.ok(depth === 1 || seen.has(path.slice(0, path.lastIndexOf('/'))));
		seen.set(path, total);
	}
	assert.equal(seen.size, 1 + 7 + 3500);
	assert.equal(seen.get('walk'), (3500 * 3501) / 2);
	const metrics = [];
	for await (const { path } of client.walk('', { depth: 0 })) {
		metrics.push(path);
	}
	assert.ok(metrics.every((path) => !path.includes('/')));
	await assert.rejects(client.walk('walk/none').next(), fails('NOT_FOUND', 'walk/none'));
});

test('tells of what the daemon does not count', async () => {
	const losses = [];
	const note = (loss) => losses.push(loss);

	client.on('loss', note);
	client.incr('requests/lost', 5);
	await client.flush();
	client.decr('requests/lost', 2);
	await client.flush();
	client.off('loss', note);
	assert.deepEqual(losses.map(({ code, path, amount }) => [code, path, amount]), [['INVALID_ARGUMENT', 'requests/lost', -2]]);
	assert.equal(daemon.total('requests/lost'), 5n);
});

test('a listener that throws is an uncaught exception, and nothing else', async () => {
	const other = new Client({ url: daemon.url });
	const seen = [];
	const mine = process.listeners('uncaughtException');

	process.removeAllListeners('uncaughtException').on('uncaughtException', (error) => seen.push(error.message));
	other.on('connect', () => assert.fail('connect'));
	other.on('disconnect', () => assert.fail('disconnect'));
	other.on('loss', ({ path }) => assert.fail(path));
	for (const path of ['thrown/a', 'thrown/b', 'thrown/c']) {
		other.decr(path, 2);
	}
	other.incr('thrown/d', 5);
	await other.flush();
	await until(() => seen.length === 4);
	await other.close();
	process.removeAllListeners('uncaughtException');
	mine.forEach((one) => process.on('uncaughtException', one));
	assert.deepEqual(seen, ['connect', 'thrown/a', 'thrown/b', 'thrown/c']);
	assert.equal(daemon.total('thrown'), 5n);
});

test('a daemon that takes few entries at once gets few at once', async () => {
	const other = await Daemon.start({ config: '[daemon]\nmax_items = 7\n' });
	const few = new Client({ url: other.url });
	const losses = [];

	few.on('loss', (loss) => losses.push(loss));
	for (let i = 0; i < 100; i++) {
		few.incr(`few/${i}`, i);
	}
	await few.flush();
	await few.close();
	assert.deepEqual(losses, []);
	assert.equal(other.total('few'), 4950n);
	await other.stop();
});

test('charges all or nothing, and says what binds', async () => {
	daemon.ctl('quota', 'set', 'jobs/acme', '--max', '5', '--high', '3');
	const first = await client.charge('jobs/acme', 4);
	assert.equal(first.granted, true);
	assert.deepEqual(first.bindings.map(({ kind, path, limit, usage }) => [kind, path, limit, usage]), [['high', 'jobs/acme', 3, 4]]);
	const second = await client.charge([{ path: 'jobs/zed', amount: 2 }, { path: 'jobs/acme', amount: 2n }]);
	assert.equal(second.granted, false);
	assert.equal(second.retryAfterMs, 0);
	assert.deepEqual({ ...second.bindings[0], window: undefined },
		{ kind: 'max', path: 'jobs/acme', window: undefined, limit: 5, usage: 4, left: 1, retryAfterMs: 0 });
	assert.equal((await client.charge('jobs/acme', 6, { dryRun: true })).retryAfterMs, Infinity);
	await client.uncharge('jobs/acme', 4);
	await assert.rejects(client.uncharge('jobs/acme'), fails('FAILED_PRECONDITION', 'jobs/acme'));
	await assert.rejects(client.charge('nobody/knows'), fails('NOT_FOUND', 'nobody/knows'));
	assert.equal((await client.get('jobs/acme')).total, 0);
});

test('a charge waits for room', async () => {
	daemon.ctl('quota', 'set', 'jobs/one', '--max', '1');
	const hold = await client.hold('jobs/one');
	const waiting = client.charge('jobs/one', 1, { waitMs: 60_000 });
	assert.equal((await client.charge('jobs/one')).granted, false);
	await hold.release();
	assert.equal((await waiting).granted, true);
	await client.uncharge('jobs/one');
});

test('a charge that nobody waits for any more is undone', async () => {
	daemon.ctl('quota', 'set', 'jobs/two', '--max', '1');
	const hold = await client.hold('jobs/two');
	const stop = new AbortController();
	const waiting = client.charge('jobs/two', 1, { waitMs: 60_000, signal: stop.signal });
	await client.flush();
	stop.abort(new Error('enough'));
	await assert.rejects(waiting, /enough/);
	await hold.release();
	await until(async () => (await client.get('jobs/two')).total === 0 && (await client.charge('jobs/two', 1, { dryRun: true })).granted);
});

test('holds for as long as something takes, however it ends', async () => {
	daemon.ctl('quota', 'set', 'jobs/held', '--max', '2');
	const total = async () => (await client.get('jobs/held')).total;
	assert.equal(await client.hold('jobs/held', 2, total), 2);
	assert.equal(await client.hold('jobs/held', total), 1);
	assert.equal(await client.hold([{ path: 'jobs/held' }, { path: 'jobs/beside' }], { waitMs: 1 }, total), 1);
	await assert.rejects(client.hold('jobs/held', 1, () => {
		throw new Error('inside');
	}), /inside/);
	assert.equal(await total(), 0);
	const hold = await client.hold('jobs/held', 2);
	await assert.rejects(client.hold('jobs/held'), (error) => {
		assert.ok(error instanceof RefusedError && fails('RESOURCE_EXHAUSTED', 'jobs/held')(error));
		assert.equal(error.bindings[0].path, 'jobs/held');
		return true;
	});
	assert.equal(hold.isHeld, true);
	await hold[Symbol.asyncDispose]();
	await hold.release();
	assert.equal(hold.isHeld, false);
	assert.equal(await total(), 0);
});

test('a lease is spent here, filled up, given back', async () => {
	daemon.ctl('quota', 'set', 'jobs/leased', '--max', '100');
	const lease = client.lease('jobs/leased', 10);
	let spent = 0;

	await lease.wait();
	while (spent < 40) {
		if (lease.try()) {
			spent++;
		} else {
			await lease.wait();
		}
	}
	await until(() => lease.left >= 5);
	lease.give(15);
	await until(() => lease.left <= 10); // what was given back beyond goes to the daemon
	assert.equal(lease.try(1000), false);
	assert.ok((await lease.close()) <= 10);
	assert.equal((await client.get('jobs/leased')).total, 25);
	await client.uncharge('jobs/leased', 25);
	await assert.rejects(client.lease('nobody/knows', 1).wait(), fails('NOT_FOUND', 'nobody/knows'));
});

test('never more is spent from leases than there is', async () => {
	daemon.ctl('quota', 'set', 'spent', '--max', '1000');
	const leases = await Promise.all([0, 1, 2].map(async (i) => {
		const lease = client.lease(`spent/${i}`, 50);
		await lease.wait();
		return lease;
	}));
	let spent = 0;
	for (let idle = 0; idle < 200; idle++) {
		for (const lease of leases) {
			while (lease.try()) {
				spent++;
				idle = 0;
			}
		}
		await client.view();
	}
	await Promise.all(leases.map((lease) => lease.close()));
	assert.equal(daemon.total('spent'), BigInt(spent));
	assert.ok(spent <= 1000 && spent > 500, String(spent));
});

test('metrics and status', async () => {
	assert.deepEqual(await client.setMetric('levels', { kind: 'gauge', maxCounters: 7, overflow: true, expireAfterMs: 5000 }),
		{ kind: 'gauge', maxCounters: 7, overflow: true, expireAfterMs: 5000 });
	assert.equal((await client.metric('levels')).maxCounters, 7);
	await assert.rejects(client.metric('none'), fails('NOT_FOUND', 'none'));
	assert.ok((await client.status()).size > 10);
});

test('StatsD-shaped', async () => {
	const statsd = new StatsD({ client, prefix: 'app' });
	let called = 0;

	statsd.increment('api.hits');
	statsd.increment('api.hits', 4);
	statsd.increment(['api.hits', 'api.all'], 2, 0.1);
	for (let i = 0; i < 10; i++) {
		statsd.increment('api.part', 0.25, 1, () => called++);
	}
	for (let i = 0; i < 10; i++) {
		statsd.increment('api.tenths', 0.1);
		statsd.decrement('api.tenths', -0.7);
	}
	statsd.increment('api.tagged', ['a:b']);
	statsd.increment('api.tagged', 2, { a: 'b' });
	statsd.increment('api.tagged', () => called++);
	statsd.increment('api.tagged', null, 0.5, ['a'], () => called++);
	await new Promise((done) => statsd.close(done));
	assert.equal(daemon.total('app/api/tagged'), 5n);
	assert.equal(daemon.total('app/api/hits'), 7n);
	assert.equal(daemon.total('app/api/all'), 2n);
	assert.equal(daemon.total('app/api/part'), 2n);
	assert.equal(daemon.total('app/api/tenths'), 8n);
	assert.equal(called, 12);
	assert.throws(() => statsd.increment('api..hits'), fails('INVALID_ARGUMENT', 'app/api//hits'));
	let seen;
	statsd.increment('api.hits', NaN, (error) => (seen = error));
	assert.ok(fails('INVALID_ARGUMENT')(seen));
});

test('what StatsD keeps and rationd does not is said, or left out', () => {
	const work = () => 5;
	const calls = (statsd, callback) => [
		() => statsd.timing('a', 5, callback), () => statsd.timer(work, 'a', callback), () => statsd.asyncTimer(work, 'a', callback),
		() => statsd.histogram('a', 5, callback), () => statsd.distribution('a', 5, callback), () => statsd.gauge('a', 5, callback),
		() => statsd.set('a', 5, callback), () => statsd.unique('a', 5, callback), () => statsd.event('a', 'b', {}, callback),
		() => statsd.check('a', 0, {}, callback),
	];
	const errors = [];
	const seen = [];

	calls(new StatsD({ client })).forEach((call) => assert.throws(call, fails('UNIMPLEMENTED', 'a')));
	calls(new StatsD({ client }), (error) => errors.push(error)).forEach((call) => call());
	calls(new StatsD({ client, errorHandler: (error) => errors.push(error) })).forEach((call) => call());
	assert.equal(errors.length, 20);
	errors.forEach(fails('UNIMPLEMENTED', 'a'));
	calls(new StatsD({ client, ignoreOthers: true }), (error) => seen.push(error)).forEach((call) => call());
	assert.deepEqual(seen, Array(10).fill(undefined));
	assert.equal(new StatsD({ client, ignoreOthers: true }).timer(work, 'a')(), 5);
});

test('bad input is refused at the call, with the reason, and nothing is sent', async () => {
	const idle = new Client({ url: daemon.url });
	const bad = ['', '/', 'a/', '/a', 'a//b', 'a/../b', 'a/*', ' a', 'a ', 'a/\u00a0b', 'a\nb', 'a/\ud800', 'x'.repeat(129), 'ä'.repeat(65),
		Array(17).fill('a').join('/'), Array(5).fill('b'.repeat(110)).join('/'), 7, null, undefined, {}, ['a']];

	for (const path of bad) {
		assert.throws(() => idle.incr(path), fails('INVALID_ARGUMENT'), JSON.stringify(path));
		assert.throws(() => idle.counter(path), fails('INVALID_ARGUMENT'));
		await assert.rejects(idle.charge(path), fails('INVALID_ARGUMENT'));
		await assert.rejects(idle.uncharge(path), fails('INVALID_ARGUMENT'));
		assert.throws(() => idle.lease(path, 1), fails('INVALID_ARGUMENT'));
		await assert.rejects(idle.get([path]), fails('INVALID_ARGUMENT'));
	}
	for (const path of ['a', 'a b', 'ä/ö', 'a/😀', '...', 'x'.repeat(128), 'ä'.repeat(64), Array(16).fill('a').join('/')]) {
		idle.counter(path);
	}
	const counter = idle.counter('a');
	for (const n of [0.5, NaN, Infinity, '1', null, {}, true, []]) {
		assert.throws(() => counter.incr(n), fails('INVALID_ARGUMENT', 'a'), String(n));
		assert.throws(() => counter.decr(n), fails('INVALID_ARGUMENT', 'a'), String(n));
	}
	for (const n of [2 ** 53, 2n ** 63n, -(2n ** 63n) - 1n]) {
		assert.throws(() => counter.incr(n), fails('OUT_OF_RANGE', 'a'));
	}
	for (const n of [0, -1, 2n ** 62n + 1n]) {
		await assert.rejects(idle.charge('a', n), fails('INVALID_ARGUMENT', 'a'));
		await assert.rejects(idle.uncharge('a', n), fails('INVALID_ARGUMENT', 'a'));
	}
	await assert.rejects(idle.charge([]), fails('INVALID_ARGUMENT'));
	await assert.rejects(idle.charge('a', 1, { waitMs: -1 }), fails('INVALID_ARGUMENT', 'waitMs'));
	await assert.rejects(idle.flush({ timeoutMs: 'soon' }), fails('INVALID_ARGUMENT', 'timeoutMs'));
	await assert.rejects(idle.charge('a', 1, { timeoutMs: 'soon' }), fails('INVALID_ARGUMENT', 'timeoutMs'));
	await assert.rejects(idle.uncharge('a', 1, { timeoutMs: 'soon' }), fails('INVALID_ARGUMENT', 'timeoutMs'));
	await assert.rejects(idle.close({ timeoutMs: 'soon' }), fails('INVALID_ARGUMENT', 'timeoutMs'));
	const signal = AbortSignal.abort(new Error('too late'));
	await assert.rejects(idle.charge('a', 1, { signal }), /too late/);
	await assert.rejects(idle.uncharge('a', 1, { signal }), /too late/);
	await assert.rejects(idle.get('a', { signal }), /too late/);
	// Sent, the daemon would end the connection for it, each time anew, and what is counted would suffer.
	const long = Array.from({ length: 2200 }, (_, i) => ({ path: `${Array(4).fill('x'.repeat(120)).join('/')}/${i}` }));
	await assert.rejects(idle.charge(long), fails('INVALID_ARGUMENT'));
	await assert.rejects(idle.charge(long, { dryRun: true }), fails('INVALID_ARGUMENT'));
	await assert.rejects(idle.get('a', { consistency: 'perfect' }), fails('INVALID_ARGUMENT', 'consistency'));
	assert.throws(() => idle.lease('a', 1.5), fails('INVALID_ARGUMENT', 'want'));
	assert.throws(() => idle.lease('a', 1, { ttlMs: 5 }), fails('INVALID_ARGUMENT', 'ttlMs'));
	for (const url of ['', 'http://x', 'unix:', `unix:/${'x'.repeat(107)}`, 'tcp:host', 'tcp:host:0', 'tcp:host:65536', 'tcp:a:b:1', 'tcp:[::1]', '/run/s']) {
		assert.throws(() => new Client({ url }), fails('INVALID_ARGUMENT'), url);
	}
	assert.throws(() => new Client({ url: daemon.url, sendIntervalMs: 0 }), fails('INVALID_ARGUMENT', 'sendIntervalMs'));
	assert.throws(() => new StatsD('localhost', 8125), fails('INVALID_ARGUMENT', 'options'));
	// What is meant as something else must not pass for options.
	for (const options of [null, 5000, 'gauge', [], () => {}]) {
		const calls = {
			flush: () => idle.flush(options), get: () => idle.get('a', options), view: () => idle.view(options),
			walk: () => idle.walk('a', options).next(), status: () => idle.status(options), metric: () => idle.metric('a', options),
			setMetric: () => idle.setMetric('a', {}, options), kind: () => idle.setMetric('a', options), charge: () => idle.charge('a', 1, options),
			items: () => idle.charge([options]), uncharge: () => idle.uncharge('a', 1, options), lease: async () => idle.lease('a', 1, options),
			close: () => idle.close(options),
		};
		for (const [name, call] of Object.entries(calls)) {
			await assert.rejects(call(), fails('INVALID_ARGUMENT'), name);
		}
		assert.throws(() => new Client(options === 'gauge' ? null : options), fails('INVALID_ARGUMENT', 'options'));
	}
	await assert.rejects(idle.hold('a', 1, 'gauge'), fails('INVALID_ARGUMENT', 'options'));
	await assert.rejects(idle.get('a', { signal: 5 }), fails('INVALID_ARGUMENT', 'signal'));
	for (const paths of [undefined, null, 5, {}]) {
		await assert.rejects(idle.get(paths), fails('INVALID_ARGUMENT'));
		await assert.rejects(idle.metric(paths), fails('INVALID_ARGUMENT'));
		await assert.rejects(idle.setMetric(paths, {}), fails('INVALID_ARGUMENT'));
	}
	await idle.close();
	assert.equal(idle.isConnected, false);
});

test('a sum that would not fit is refused at the call', async () => {
	const counter = client.counter('sum/a');

	counter.incr(2n ** 63n - 1n);
	assert.throws(() => counter.incr(), fails('OUT_OF_RANGE', 'sum/a'));
	await client.flush();
	assert.equal(daemon.total('sum/a'), 2n ** 63n - 1n);
});

test('over TCP, and many in flight at once', async () => {
	const other = await Daemon.start({ more: ['--listen', 'tcp:127.0.0.1:0'] });
	const [url] = /tcp:127\.0\.0\.1:\d+/.exec(other.log);
	const far = new Client({ url });
	await far.setMetric('jobs', { kind: 'gauge' }).catch(() => {}); // not for strangers
	far.incr('jobs2/a', 5);
	await far.flush();
	const answers = await Promise.all(Array.from({ length: 3000 }, () => far.charge('jobs2/a')));
	assert.ok(answers.every(({ granted }) => granted));
	assert.equal((await far.get('jobs2', { consistency: 'exact' })).total, 3005);
	await far.close();
	await other.stop();
});

test('after close nothing is taken', async () => {
	const closed = new Client({ url: daemon.url });
	const counter = closed.counter('closed/a');

	counter.incr(7);
	let isFirstOver = false;
	const first = closed.close().then(() => (isFirstOver = true));
	await closed.close();
	await first;
	assert.ok(isFirstOver);
	assert.throws(() => counter.incr(), fails('FAILED_PRECONDITION', 'closed/a'));
	await assert.rejects(closed.get('a'), fails('FAILED_PRECONDITION'));
	await assert.rejects(closed.charge('a'), fails('FAILED_PRECONDITION'));
	await assert.rejects(closed.flush(), fails('FAILED_PRECONDITION'));
	assert.equal(daemon.total('closed/a'), 7n);
});
