/**
 * The counting part of a StatsD client, for programs that want to switch by one import.
 *
 * @packageDocumentation
 */
import { checkOptions } from './amount.js';
import type { Counter } from './counter.js';
import { Client } from './client.js';
import { invalid, RationError } from './error.js';
import type { ClientOptions } from './types.js';

/** What a {@link StatsD} is made with. */
export interface StatsDOptions extends ClientOptions {
	/** Before each name: `app.` or `app`. */
	prefix?: string;
	/** After each name. */
	suffix?: string;
	/** A client to use instead of one of its own. */
	client?: Client;
	/** Gets what is wrong with a call, which throws otherwise. */
	errorHandler?: (error: Error) => void;
	/** Do nothing where rationd has nothing of the kind: for timings, gauges, sets. */
	ignoreOthers?: boolean;
}

/** Called when a call has been taken; nothing was sent yet then. */
export type StatsDCallback = (error?: Error) => void;

/** Tags of a call. They are taken, and have no effect: what differs in them alone is counted together. */
export type StatsDTags = readonly string[] | { readonly [key: string]: string };

type Rest = [sampleRate?: number | StatsDTags | StatsDCallback, tags?: StatsDTags | StatsDCallback, callback?: StatsDCallback];

const DUST = 1e-9; // what sums of fractions are off: ten times 0.1 is 1

interface Stat {
	readonly counter: Counter;
	/** What was added beyond whole numbers. */
	fraction: number;
}

type Other = readonly unknown[];

/**
 * Counts as hot-shots and node-statsd do: `increment(stat, value?, sampleRate?, tags?, callback?)`. Dots of a name part its path: `api.hits`
 * is counted at `api/hits`. A sample rate is taken and has no effect: every call is counted, exactly. Nor have tags. Fractions are carried until
 * they make a whole. Rationd counts: timings, gauges that are set to a value, sets and events throw an `UNIMPLEMENTED`, or do nothing with
 * `ignoreOthers`.
 */
export class StatsD {
	/** The client that counts. */
	readonly client: Client;
	readonly #stats = new Map<string, Stat>();
	readonly #prefix: string;
	readonly #suffix: string;
	readonly #errorHandler: ((error: Error) => void) | undefined;
	readonly #ignoreOthers: boolean;
	readonly #isOwn: boolean;

	constructor(options: StatsDOptions = {}) {
		checkOptions(options);
		const { prefix = '', suffix = '', client, errorHandler, ignoreOthers = false, ...own } = options;

		this.client = client ?? new Client(own);
		this.#isOwn = client === undefined;
		this.#prefix = prefix === '' || prefix.endsWith('.') ? prefix : `${prefix}.`;
		this.#suffix = suffix === '' || suffix.startsWith('.') ? suffix : `.${suffix}`;
		this.#errorHandler = errorHandler;
		this.#ignoreOthers = ignoreOthers;
	}

	/** Add `value`, by default 1, to one stat or to each of several. */
	increment(stat: string | readonly string[], value?: number | StatsDTags | StatsDCallback | null, ...rest: Rest): void {
		this.#add(stat, +1, [value, ...rest]);
	}

	/** Take `value`, by default 1, off: of a gauge. */
	decrement(stat: string | readonly string[], value?: number | StatsDTags | StatsDCallback | null, ...rest: Rest): void {
		this.#add(stat, -1, [value, ...rest]);
	}

	/** Change a gauge by `value`. */
	gaugeDelta(stat: string | readonly string[], value: number, ...rest: Rest): void {
		this.#add(stat, +1, [value, ...rest]);
	}

	/** Not kept. */
	timing(stat: string | readonly string[], ...rest: Other): void {
		this.#other('timing', stat, rest);
	}

	/** Not kept: gives the function as it is. */
	timer<F extends (...args: never[]) => unknown>(work: F, stat: string | readonly string[], ...rest: Other): F {
		this.#other('timer', stat, rest);
		return work;
	}

	/** Not kept: gives the function as it is. */
	asyncTimer<F extends (...args: never[]) => unknown>(work: F, stat: string | readonly string[], ...rest: Other): F {
		this.#other('asyncTimer', stat, rest);
		return work;
	}

	/** Not kept. */
	histogram(stat: string | readonly string[], ...rest: Other): void {
		this.#other('histogram', stat, rest);
	}

	/** Not kept. */
	distribution(stat: string | readonly string[], ...rest: Other): void {
		this.#other('distribution', stat, rest);
	}

	/** Setting a gauge to a value is not for what several programs count together; {@link StatsD.gaugeDelta} is. */
	gauge(stat: string | readonly string[], ...rest: Other): void {
		this.#other('setting a gauge to a value', stat, rest);
	}

	/** Not kept. */
	set(stat: string | readonly string[], ...rest: Other): void {
		this.#other('set', stat, rest);
	}

	/** Not kept. */
	unique(stat: string | readonly string[], ...rest: Other): void {
		this.#other('unique', stat, rest);
	}

	/** Not kept. */
	event(title: string, ...rest: Other): void {
		this.#other('event', title, rest);
	}

	/** Not kept. */
	check(name: string, ...rest: Other): void {
		this.#other('check', name, rest);
	}

	#other(what: string, stat: string | readonly string[], rest: Other): void {
		const callback = rest.find((one) => typeof one === 'function') as StatsDCallback | undefined;

		if (this.#ignoreOthers) {
			callback?.();
		} else {
			const text = `rationd keeps counts; ${what} is for another server (or say ignoreOthers: true)`;
			this.#report(new RationError('UNIMPLEMENTED', text, String(stat)), callback);
		}
	}

	/** Deliver what is left and end; a client that was given goes on. */
	close(callback?: StatsDCallback): void {
		const closed = this.#isOwn ? this.client.close() : this.client.flush();

		closed.then(() => callback?.(), (error: Error) => this.#report(error, callback));
	}

	#add(names: string | readonly string[], sign: number, rest: readonly unknown[]): void {
		const callback = rest.find((one) => typeof one === 'function') as StatsDCallback | undefined;
		// A value may be left out before tags and callbacks.
		const value = rest[0] === null || ['undefined', 'function', 'object'].includes(typeof rest[0]) ? 1 : rest[0];

		try {
			if (typeof value !== 'number' || !Number.isFinite(value)) {
				throw invalid(`expected a number, not ${String(value)}`, String(names));
			}
			for (const name of typeof names === 'string' ? [names] : names) {
				this.#addTo(this.#stats.get(name) ?? this.#stat(name), sign * value);
			}
		} catch (error) {
			this.#report(error as Error, callback);
			return;
		}
		callback?.();
	}

	#stat(name: string): Stat {
		const path = `${this.#prefix}${name}${this.#suffix}`.replaceAll('.', '/');
		const stat = { counter: this.client.counter(path), fraction: 0 };

		this.#stats.set(name, stat);
		return stat;
	}

	#addTo(stat: Stat, value: number): void {
		if (Number.isInteger(value) && stat.fraction === 0) {
			stat.counter.incr(value);
			return;
		}
		const sum = stat.fraction + value;
		const whole = Math.trunc(sum + Math.sign(sum) * DUST);
		if (whole !== 0) {
			stat.counter.incr(whole);
		}
		stat.fraction = sum - whole;
	}

	#report(error: Error, callback: StatsDCallback | undefined): void {
		if (callback !== undefined) {
			callback(error);
		} else if (this.#errorHandler !== undefined) {
			this.#errorHandler(error);
		} else if (error instanceof RationError) {
			throw error;
		}
	}
}
