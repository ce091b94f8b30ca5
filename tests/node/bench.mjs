// What counting costs in Node: `./dev bench clients` runs this, in the folder where run.sh has put it. Ratios are of one run.
//
//	incr     an increment of a counter object, against m.set(k, m.get(k) + 1) on a Map
//	million  1 M increments over 1,000 paths, until the daemon has counted them all, against hot-shots sending them over UDP to a socket
//	         that takes what it can
import dgram from 'node:dgram';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'rationd';

const ROUNDS = 5;
const N = 1_000_000;
const N_PATHS = 1000;
const BOUND_INCR = 3;
const BOUND_MILLION = 1 / 5;

const { StatsD } = createRequire(import.meta.url)('hot-shots');
const failed = [];

const median = (numbers) => numbers.sort((a, b) => a - b)[numbers.length >> 1];

function check(what, ratio, bound) {
	const isGood = ratio <= bound;

	console.log(`    ratio ${ratio.toFixed(3)}, at most ${bound.toFixed(3)}: ${isGood ? 'kept' : 'MISSED'}`);
	if (!isGood) {
		failed.push(what);
	}
}

async function daemon() {
	const folder = mkdtempSync(path.join(os.tmpdir(), 'rationd-bench-'));
	const url = `unix:${folder}/s`;
	const child = spawn(process.env.RATIOND, ['--listen', url, '--ephemeral'], { stdio: ['ignore', 'ignore', 'pipe'] });

	for await (const text of child.stderr.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
		if (text.includes('serving')) {
			break;
		}
	}
	child.stderr.resume();
	return {
		url,
		async stop() {
			child.kill('SIGTERM');
			await once(child, 'exit');
			rmSync(folder, { recursive: true });
		},
	};
}

function timed(n, work) {
	const begin = performance.now();

	work(n);
	return ((performance.now() - begin) * 1e6) / n;
}

function benchIncr(client) {
	const counter = client.counter('bench/incr');
	const map = new Map([['bench/incr', 0]]);
	const byCounter = (n) => {
		for (let i = 0; i < n; i++) {
			counter.incr();
		}
	};
	const byMap = (n) => {
		for (let i = 0; i < n; i++) {
			map.set('bench/incr', map.get('bench/incr') + 1);
		}
	};
	const [ours, theirs] = [[], []];

	for (let round = -2; round < ROUNDS; round++) {
		const [a, b] = [timed(5 * N, byCounter), timed(5 * N, byMap)];
		if (round >= 0) {
			ours.push(a);
			theirs.push(b);
		}
	}
	const [a, b] = [median(ours), median(theirs)];
	console.log(`incr        ${a.toFixed(1)} ns    Map ${b.toFixed(1)} ns`);
	check('incr', a / b, BOUND_INCR);
}

async function byRationd(client, round) {
	const paths = Array.from({ length: N_PATHS }, (_, i) => `bench/${round}/${i}`);
	const begin = performance.now();

	for (let i = 0; i < N; i++) {
		client.incr(paths[i % N_PATHS]);
	}
	await client.flush({ timeoutMs: Infinity });
	const ms = performance.now() - begin;
	const { total } = await client.get(`bench/${round}`, { consistency: 'exact' });
	if (total !== N) {
		throw new Error(`${total} of ${N} were counted`);
	}
	return ms;
}

async function byHotShots() {
	const sink = dgram.createSocket('udp4');
	let arrived = 0;

	sink.on('message', (message) => (arrived += message.length));
	sink.bind(0, '127.0.0.1');
	await once(sink, 'listening');
	const statsd = new StatsD({ host: '127.0.0.1', port: sink.address().port, maxBufferSize: 1432, errorHandler: () => {} });
	const stats = Array.from({ length: N_PATHS }, (_, i) => `bench.${i}`);
	const begin = performance.now();

	for (let i = 0; i < N; i++) {
		statsd.increment(stats[i % N_PATHS]);
		if (i % 10_000 === 0) {
			await sleep(0); // as a program would: let it send
		}
	}
	await new Promise((done) => statsd.close(done));
	const ms = performance.now() - begin;
	sink.close();
	return [ms, arrived];
}

async function benchMillion(client) {
	const [ours, theirs] = [[], []];
	let bytes = 0;

	for (let round = 0; round < ROUNDS; round++) {
		ours.push(await byRationd(client, round));
		const [ms, arrived] = await byHotShots();
		theirs.push(ms);
		bytes += arrived;
	}
	const [a, b] = [median(ours), median(theirs)];
	console.log(`million     ${a.toFixed(0)} ms, all counted    hot-shots ${b.toFixed(0)} ms, ${(bytes / ROUNDS / 1e6).toFixed(1)} MB a million arrived`);
	check('million', a / b, BOUND_MILLION);
}

console.log(`node ${process.version}`);
const server = await daemon();
const client = new Client({ url: server.url });
benchIncr(client);
await benchMillion(client);
await client.close();
await server.stop();
process.exitCode = failed.length > 0 ? 1 : 0;
