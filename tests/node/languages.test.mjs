// Programs in different languages on the same counters at once, while the daemon is killed: C, Python and Node, each through the driver of
// the conformance suite. A language whose driver is not named in the environment is left out.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { Daemon, randomOf, sleep, until } from './support.mjs';

const N_KILLS = 20;
const drivers = { c: process.env.DRIVER_C?.split(' '), python: process.env.DRIVER_PYTHON?.split(' '), node: ['node', 'driver.mjs'], again: ['node', 'driver.mjs'] };

/** A driver at work: commands by a promise each. */
class Driver {
	losses = [];
	#waiting = new Map();
	#n = 0;
	#child;

	constructor([file, ...words], url) {
		this.#child = spawn(file, [...words, url], { stdio: ['pipe', 'pipe', 'inherit'] });
		createInterface({ input: this.#child.stdout }).on('line', (line) => {
			const [tag, ...said] = line.split(' ');
			if (tag === '*') {
				this.losses.push(line);
			} else {
				this.#waiting.get(tag)(said.join(' '));
				this.#waiting.delete(tag);
			}
		});
	}

	do(command) {
		const tag = String(this.#n++);

		this.#child.stdin.write(`${tag} ${command}\n`);
		return new Promise((done) => this.#waiting.set(tag, done));
	}

	async end() {
		const ended = once(this.#child, 'exit');
		this.#child.stdin.end();
		assert.deepEqual(await ended, [0, null]);
	}
}

test('four programs in different languages', async (t) => {
	const daemon = await Daemon.start({ keeps: true, config: '[daemon]\ncheckpoint_interval = 20ms\n' });
	const random = randomOf();
	const names = Object.keys(drivers).filter((name) => drivers[name] !== undefined);
	const all = names.map((name) => new Driver(drivers[name], daemon.url));
	let [sum, isOver, rounds] = [0n, false, 0];

	t.diagnostic(names.join(', '));
	const work = async (driver) => {
		while (!isOver) {
			const n = 1 + random(1000);
			sum += BigInt(n);
			assert.equal(await driver.do(`add shared/${random(50)} ${n}`), 'ok');
			if (++rounds % 50 === 0) {
				await sleep(random(3));
			}
		}
	};
	const works = all.map(work);
	for (let i = 0; i < N_KILLS; i++) {
		const before = rounds;
		await sleep(random(50));
		await until(() => rounds > before + 100);
		await daemon.kill();
		await daemon.start();
	}
	isOver = true;
	await Promise.all(works);
	for (const driver of all) {
		assert.equal(await driver.do('durable 60000'), 'ok');
	}
	await daemon.kill();
	await daemon.start();
	assert.equal(daemon.total('shared'), sum);
	all.forEach((driver) => assert.deepEqual(driver.losses, []));
	await Promise.all(all.map((driver) => driver.end()));
	await daemon.stop();
});
