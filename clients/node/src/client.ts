import { EventEmitter } from 'node:events';
import { writeSync } from 'node:fs';
import { addressOf } from './address.js';
import { amountOf, chargeOf, checkOptions, describe, optionOf, type Amount } from './amount.js';
import { Calls, timeoutOf } from './calls.js';
import { cancel, later, type Timer } from './clock.js';
import type { Counter } from './counter.js';
import { codeName, invalid, RationError } from './error.js';
import { deliver, dismiss, enroll, type Bequest } from './exit.js';
import { Consistency as WireConsistency, Kind as WireKind, type Metric as WireMetric } from './generated/ration_pb.js';
import { Hold } from './hold.js';
import { Lease, type LeaseBequest, type LeaseHost, type LeaseOptions } from './lease.js';
import { Link } from './link.js';
import { Operations } from './operations.js';
import { Outbox } from './outbox.js';
import { checkPath } from './path.js';
import {
	chargeResultOf, kindOf, RefusedError, valueOf, viewOf,
	type CallOptions, type ChargeItem, type ChargeOptions, type ChargeResult, type ClientOptions, type Consistency, type Entry,
	type FlushOptions, type GetOptions, type HoldOptions, type Loss, type Metric, type UnchargeOptions, type Value, type View, type WalkOptions,
} from './types.js';
import { MAX_BODY, sizeOf, type Answer, type Body } from './wire.js';

const MAX_PATHS = 1000; // in one Get; entries in one part of a Walk
const MAX_ITEMS = 10_000;
const SURE_ITEMS = 1000; // of a charge: so many fit a message, whatever they are
const MAX_WAIT_MS = 86_400_000;
const ALL_LEVELS = 0xffff_ffff;
const END_MS = 1000;

const consistencies = { fresh: WireConsistency.FRESH, cached: WireConsistency.CACHED, exact: WireConsistency.EXACT };

/** What a {@link Client} tells, by name. */
export interface ClientEvents {
	/** Something was added that can't be counted. Without a listener it is a process warning. */
	loss: [loss: Loss];
	/** The daemon speaks to us. */
	connect: [];
	/** It does not any more, or still not; the client goes on trying. */
	disconnect: [error: RationError];
	/** The daemon has forgotten this client, or a copy of this process has its session: what it held is not its any more. */
	reset: [];
}

type Items = readonly (readonly [path: string, amount: bigint])[];

/**
 * A client of rationd. It connects when there is something to say, and again whenever the connection breaks; what is added meanwhile
 * accumulates, one number for each counter. Neither it nor its connection keep the program running, unless somebody waits for an answer.
 *
 * When the program comes to its end, everything is delivered within `exitTimeoutMs`, and what could not be is said on standard error. One
 * client for a program (and one for each of its worker threads) is enough.
 */
export class Client extends EventEmitter<ClientEvents> {
	readonly #link: Link;
	readonly #outbox: Outbox;
	readonly #operations: Operations;
	readonly #calls: Calls;
	readonly #sendIntervalMs: number;
	readonly #exitTimeoutMs: number;
	readonly #lifetimeMs: number;
	readonly #leases = new Set<Lease>();
	readonly #holds = new Set<Hold>();
	readonly #warned = new Set<string>();
	#inherited: Promise<unknown> = Promise.resolve(); // of leases
	#nextLease = 1;
	#timer: Timer | undefined;
	#resting: Promise<void> | undefined;
	#closing: Promise<void> | undefined;
	#failedAt = -1; // how much had been added when the end of the program could not deliver it

	/** Does not wait for the daemon. Throws for a bad URL or option. */
	constructor(options: ClientOptions | string = {}) {
		super();
		const given = typeof options === 'string' ? { url: options } : options;
		checkOptions(given);
		const address = addressOf(given.url);

		this.#sendIntervalMs = optionOf(given.sendIntervalMs ?? 50, 'sendIntervalMs', 1, 60_000);
		this.#exitTimeoutMs = optionOf(given.exitTimeoutMs ?? 2000, 'exitTimeoutMs', 0, 3_600_000);
		this.#lifetimeMs = optionOf(given.sessionLifetimeMs ?? 60_000, 'sessionLifetimeMs', 0, MAX_WAIT_MS);
		const bytes = optionOf(given.maxUnacknowledged ?? 4 * 1024 * 1024, 'maxUnacknowledged', 64 * 1024, 1024 ** 3);
		const counters = optionOf(given.maxCounters ?? 1_000_000, 'maxCounters', 1, 2 ** 26);

		this.#outbox = new Outbox(bytes, counters, () => this.#wake(), (...loss) => this.#lose(...loss));
		this.#operations = new Operations(bytes);
		this.#link = new Link(address, this.#lifetimeMs, this.#outbox, this.#operations, {
			up: (lost) => this.#up(lost),
			down: (error) => void this.#say('disconnect', error),
			unreachable: (error) => this.#leases.forEach((lease) => lease._unreachable(error)),
		});
		this.#calls = new Calls(this.#link, this.#operations, given.timeoutMs ?? 5000);
		enroll(this);
	}

	/** Where the daemon is. */
	get url(): string {
		return this.#link.address.url;
	}

	/** The daemon speaks to us. */
	get isConnected(): boolean {
		return this.#link.isUp;
	}

	// ---- counting ----

	/** The counter at `path`; the same one for the same path. Throws for what is no path. */
	counter(path: string): Counter {
		return this.#outbox.counter(path);
	}

	/** Add `n`, by default 1, to the counter at `path`. Throws for what is no path or no whole number. */
	incr(path: string, n: Amount = 1): void {
		this.#outbox.counter(path).incr(n);
	}

	/** The same as {@link Client.incr}. */
	increment(path: string, n: Amount = 1): void {
		this.#outbox.counter(path).incr(n);
	}

	/** Take `n` off, by default 1: of a gauge. */
	decr(path: string, n: Amount = 1): void {
		this.#outbox.counter(path).decr(n);
	}

	/** The same as {@link Client.decr}. */
	decrement(path: string, n: Amount = 1): void {
		this.#outbox.counter(path).decr(n);
	}

	/**
	 * Wait until everything added before is in the daemon's totals, or reported by the event `loss`; with `durable` until it is in its state
	 * file too, so that it survives any crash (`FAILED_PRECONDITION`: the daemon has none).
	 */
	async flush(options: FlushOptions = {}): Promise<void> {
		checkOptions(options);
		this.#calls.checkOpen();
		const rest = this.#calls.restOf(options);

		await this.#whenApplied(rest());
		await this.#fold(options.durable ?? false, rest());
	}

	#whenApplied(options: CallOptions): Promise<void> {
		const applied = new Promise<void>((done) => this.#outbox.whenApplied(done));

		this.#send();
		return this.#calls.wait(applied, options);
	}

	async #fold(durable: boolean, options: CallOptions): Promise<void> {
		const isDurable = await this.#calls.ask({ case: 'flush', value: { durable } }, options, undefined, (answer) =>
			answer.case === 'flushed' ? answer.value.durable : undefined);

		if (durable && !isDurable) {
			throw new RationError('FAILED_PRECONDITION', 'the daemon has no state file', this.url);
		}
	}

	// ---- reading ----

	/** What the daemon has at a path; `NOT_FOUND` if it has no such counter. What this client has added is seen after {@link Client.flush}. */
	get(path: string, options?: GetOptions): Promise<Value>;
	/** The same of many paths at once, in their order; undefined where there is no such counter. */
	get(paths: readonly string[], options?: GetOptions): Promise<(Value | undefined)[]>;
	async get(paths: string | readonly string[], options: GetOptions = {}): Promise<Value | (Value | undefined)[]> {
		checkOptions(options);
		if (typeof paths === 'string') {
			const [value] = await this.#get([paths], options);
			if (value === undefined) {
				throw new RationError('NOT_FOUND', 'no such counter', paths);
			}
			return value;
		}
		if (!Array.isArray(paths)) {
			throw invalid(`expected a path, or a list of paths, not ${describe(paths)}`);
		}
		const values: (Value | undefined)[] = [];
		for (let at = 0; at < paths.length; at += MAX_PATHS) {
			values.push(...(await this.#get(paths.slice(at, at + MAX_PATHS), options)));
		}
		return values;
	}

	#get(paths: readonly string[], options: GetOptions): Promise<(Value | undefined)[]> {
		paths.forEach(checkPath);
		const body: Body = { case: 'get', value: { paths: [...paths], consistency: consistencyOf(options) } };

		return this.#calls.ask(body, options, paths.length === 1 ? paths[0] : undefined, (answer) =>
			answer.case !== 'values' ? undefined : paths.map((path, i) => {
				const value = answer.value.values[i];
				return value?.code === 5 ? undefined : valueOf(path, value);
			}));
	}

	/** How far off the daemon's totals can be now. */
	async view(options: GetOptions = {}): Promise<View> {
		checkOptions(options);
		const body: Body = { case: 'get', value: { paths: [], consistency: consistencyOf(options) } };

		return this.#calls.ask(body, options, undefined, (answer) => (answer.case === 'values' ? viewOf(answer.value.view) : undefined));
	}

	/**
	 * Visit the subtree at `root`, by default all, parents before children. A counter that is there during the whole walk is visited exactly
	 * once. `ABORTED`: the daemon was started anew meanwhile.
	 */
	async *walk(root = '', options: WalkOptions = {}): AsyncGenerator<Entry, void, undefined> {
		checkOptions(options);
		if (root !== '') {
			checkPath(root);
		}
		const depth = options.depth === undefined ? ALL_LEVELS : optionOf(options.depth, 'depth', 0, ALL_LEVELS);
		const consistency = consistencyOf(options);
		let cursor: Uint8Array = new Uint8Array();

		do {
			const isFirst = cursor.length === 0;
			let entries: Entry[] = [];
			const body: Body = { case: 'walk', value: { root, depth, consistency, limit: BigInt(MAX_PATHS), cursor } };
			cursor = await this.#calls.ask(body, options, root === '' ? undefined : root, (answer) => {
				if (answer.case === 'error' && answer.value.code === 3 && !isFirst) {
					throw new RationError('ABORTED', 'the daemon was started anew during the walk', root);
				}
				if (answer.case !== 'page') {
					return undefined;
				}
				entries.push(...answer.value.entries.map(({ path, depth: level, value }) => ({ ...valueOf(path, value), depth: level })));
				return answer.value.last ? answer.value.cursor : 'more';
			}, () => (entries = []));
			yield* entries;
		} while (cursor.length > 0);
	}

	// ---- the daemon ----

	/** What the daemon says of itself, by name. */
	async status(options: CallOptions = {}): Promise<Map<string, Amount | string>> {
		checkOptions(options);
		return this.#calls.ask({ case: 'status', value: {} }, options, undefined, (answer) =>
			answer.case !== 'status' ? undefined : new Map(answer.value.items.map(({ name, value }) =>
				[name, value.case === 'number' ? amountOf(value.value) : (value.value ?? '')])));
	}

	/** What a metric is. */
	async metric(name: string, options: CallOptions = {}): Promise<Metric> {
		checkOptions(options);
		checkPath(name);
		return this.#calls.ask({ case: 'metricGet', value: { name } }, options, name, (answer) =>
			answer.case === 'metric' ? metricOf(answer.value) : undefined);
	}

	/** Declare a metric, or change it. */
	async setMetric(name: string, metric: Partial<Metric>, options: CallOptions = {}): Promise<Metric> {
		checkPath(name);
		checkOptions(metric, 'metric');
		checkOptions(options);
		if (metric.kind !== undefined && metric.kind !== 'counter' && metric.kind !== 'gauge') {
			throw invalid(`expected the kind counter or gauge, not ${describe(metric.kind)}`, name);
		}
		const value = {
			name,
			kind: metric.kind === 'gauge' ? WireKind.GAUGE : WireKind.COUNTER,
			maxCounters: optionOf(metric.maxCounters ?? 0, 'maxCounters', 0, 0xffff_ffff),
			overflow: metric.overflow ?? false,
			expireAfterMs: BigInt(optionOf(metric.expireAfterMs ?? 0, 'expireAfterMs', 0, Number.MAX_SAFE_INTEGER)),
		};

		return this.#calls.ask({ case: 'metricSet', value: { metric: value } }, options, name, (answer) =>
			answer.case === 'metric' ? metricOf(answer.value) : undefined);
	}

	// ---- charges ----

	/** Ask for room for `amount`, by default 1, on a path and all above it. */
	charge(path: string, amount?: Amount, options?: ChargeOptions): Promise<ChargeResult>;
	/**
	 * Ask for room for all items, or none. A refusal is an answer, not an error: look at `granted`. A charge is done once, however often it
	 * must be sent. If the time is over before its outcome is known, the client sees to it that nothing stays charged on gauges.
	 */
	charge(items: readonly ChargeItem[], options?: ChargeOptions): Promise<ChargeResult>;
	async charge(what: string | readonly ChargeItem[], second?: Amount | ChargeOptions, third?: ChargeOptions): Promise<ChargeResult> {
		const isOne = typeof what === 'string';
		const items = itemsOf(isOne ? [amountItem(what, second as Amount | undefined)] : what);

		return this.#charge(items, isOne ? third : (second as ChargeOptions | undefined));
	}

	async #charge(items: Items, options: ChargeOptions = {}): Promise<ChargeResult> {
		checkOptions(options);
		const waitMs = options.waitMs === undefined ? 0 : Math.min(MAX_WAIT_MS, Math.ceil(timeoutOf(options.waitMs, 'waitMs')));
		const timeoutMs = timeoutOf(options.timeoutMs ?? this.#calls.timeoutMs);
		const { dryRun = false, detached = false } = options;
		const value = { items: items.map(([path, amount]) => ({ path, amount })), dryRun, detached, waitMs };
		const [first] = items[0] as Items[number];
		const result = (answer: Answer): ChargeResult | undefined =>
			answer.case === 'charged' ? chargeResultOf(answer.value.granted, answer.value.bindings, answer.value.omitted) : undefined;

		if (items.length > SURE_ITEMS && sizeOf({ case: 'charge', value }) > MAX_BODY) {
			throw invalid(`${items.length} items with such long paths are more than a message may hold, which is ${MAX_BODY} bytes`);
		}
		if (dryRun) {
			return this.#calls.ask({ case: 'charge', value }, { ...options, timeoutMs }, items.length === 1 ? first : undefined, result);
		}
		const answer = await this.#calls.operateNow({ case: 'charge', value }, { ...options, timeoutMs: timeoutMs + waitMs }, items.length === 1 ? first : undefined,
			// It is granted though nobody waits any more.
			(late) => late.case === 'charged' && late.value.granted && this.#unchargeAll(items, detached));
		return result(answer) as ChargeResult;
	}

	#unchargeAll(items: Items, detached: boolean): Promise<void> {
		return new Promise<void>((done) => {
			let n = items.length;
			for (const [path, amount] of items) {
				this.#calls.operate({ case: 'uncharge', value: { path, amount, detached } }, () => --n === 0 && done());
			}
		});
	}

	/**
	 * Give `amount`, by default 1, of what this client has charged on a gauge back. `FAILED_PRECONDITION`: not so much is held there. `ABORTED`: it
	 * is gone already, since the daemon has forgotten this client meanwhile.
	 */
	async uncharge(path: string, amount: Amount = 1, options: UnchargeOptions = {}): Promise<void> {
		checkPath(path);
		checkOptions(options);
		const value = { path, amount: chargeOf(amount, path), detached: options.detached ?? false };

		await this.#calls.operateNow({ case: 'uncharge', value }, options, path, () => {});
	}

	/** Charge a gauge until the hold is released or disposed of. Throws a {@link RefusedError} if it is refused. */
	hold(path: string, amount?: Amount, options?: HoldOptions): Promise<Hold>;
	/** The same of many paths: all or nothing. */
	hold(items: readonly ChargeItem[], options?: HoldOptions): Promise<Hold>;
	/** Charge a gauge for as long as `work` takes. */
	hold<T>(path: string, work: (hold: Hold) => T | Promise<T>): Promise<T>;
	/** The same with an amount. */
	hold<T>(path: string, amount: Amount, work: (hold: Hold) => T | Promise<T>): Promise<T>;
	/** The same with an amount and options. */
	hold<T>(path: string, amount: Amount, options: HoldOptions, work: (hold: Hold) => T | Promise<T>): Promise<T>;
	/** The same of many paths. */
	hold<T>(items: readonly ChargeItem[], work: (hold: Hold) => T | Promise<T>): Promise<T>;
	/** The same of many paths, with options. */
	hold<T>(items: readonly ChargeItem[], options: HoldOptions, work: (hold: Hold) => T | Promise<T>): Promise<T>;
	async hold(what: string | readonly ChargeItem[], ...rest: unknown[]): Promise<unknown> {
		const last = rest[rest.length - 1];
		const work = typeof last === 'function' ? (rest.pop() as (hold: Hold) => unknown) : undefined;
		const items = itemsOf(typeof what === 'string' ? [amountItem(what, rest.shift() as Amount | undefined)] : what);
		const hold = await this.#hold(items, rest[0] as HoldOptions | undefined);

		if (work === undefined) {
			return hold;
		}
		try {
			return await work(hold);
		} finally {
			await hold.release();
		}
	}

	async #hold(items: Items, options: HoldOptions | undefined): Promise<Hold> {
		const result = await this.#charge(items, options);

		if (!result.granted) {
			throw new RefusedError(result, (items[0] as Items[number])[0]);
		}
		const hold = new Hold(items, result.bindings, () => {
			this.#holds.delete(hold);
			return this.#release(items);
		});
		this.#holds.add(hold);
		return hold;
	}

	async #release(items: Items): Promise<void> {
		const released = this.#unchargeAll(items, false);

		if (this.#link.isUp) {
			await this.#calls.wait(released, {}).catch(() => {}); // It goes on in the background.
		}
	}

	/**
	 * Open a lease of up to `want` units on a path, to be spent by {@link Lease.try} without asking. Returns at once; the first units come when
	 * the daemon has answered, see {@link Lease.wait}.
	 */
	lease(path: string, want: number, options: LeaseOptions = {}): Lease {
		this.#calls.checkOpen();
		checkPath(path);
		checkOptions(options);
		if (this.#lifetimeMs < 1000) {
			throw invalid('leases need a sessionLifetimeMs of 1,000 or more', path);
		}
		const host: LeaseHost = {
			isUp: () => this.#link.isUp,
			operate: (body, done) => this.#calls.operate(body, done),
			askKind: (at, done) => this.#askKind(at, done),
			add: (at, n) => this.#outbox.add(this.#outbox.counter(at), BigInt(n)),
			wait: (promise, how, give) => this.#calls.wait(promise, how, give),
			closed: (closed) => this.#leases.delete(closed),
		};
		this.#outbox.counter(path); // There is one, should it be needed.
		const lease = new Lease(host, () => this.#nextLease++, path, want, options);
		this.#leases.add(lease);
		return lease;
	}

	/** Nobody waits for that, so it keeps no program running. */
	#askKind(path: string, done: (isCounter: boolean | undefined) => void): void {
		const [name] = path.split('/', 1) as [string];

		this.#link.ask({
			body: { case: 'metricGet', value: { name } },
			take: (answer) => {
				done(answer.case === 'metric' ? kindOf(answer.value.kind) === 'counter' : undefined);
				return true;
			},
			again: () => {},
			fail: () => done(undefined),
		});
	}

	// ---- the end ----

	/**
	 * Deliver what was added, waiting at most `timeoutMs` (default: `exitTimeoutMs`), and end: what is still held is given back. Fails if something
	 * could not be delivered, and says how much; it is reported by the event `loss` too, path by path. Called again it waits for the same end, and
	 * does not fail.
	 */
	async close(options: CallOptions = {}): Promise<void> {
		if (this.#closing !== undefined) {
			return this.#closing.catch(() => {});
		}
		checkOptions(options);
		timeoutOf(options.timeoutMs ?? this.#exitTimeoutMs);
		this.#closing = this.#close(options);
		return this.#closing;
	}

	async #close(options: CallOptions): Promise<void> {
		this.#calls.isClosed = true;
		this.#outbox.closed = true;
		dismiss(this);
		const why = await this.#deliver({ timeoutMs: this.#exitTimeoutMs, ...options });
		const closed = new RationError('FAILED_PRECONDITION', 'this client is closed');
		this.#operations.end(closed);
		this.#leases.forEach((lease) => lease._end());
		const error = why === undefined ? undefined : this.#undelivered(why);
		this.#outbox.giveUp(error?.text ?? '');
		this.#link.end(closed);
		cancel(this.#timer);
		if (error !== undefined) {
			throw error;
		}
	}

	/** The same as {@link Client.close}. */
	async [Symbol.asyncDispose](): Promise<void> {
		await this.close();
	}

	/** Bring everything to the daemon, for good if it keeps anything, and end the session. Says why that could not be done. */
	async #deliver(options: CallOptions): Promise<RationError | undefined> {
		const rest = this.#calls.restOf(options);

		try {
			const returned = Promise.all([this.#inherited, ...[...this.#leases].map((lease) => lease._rest())]);
			if (this.#outbox.isDue || this.#operations.isDue) {
				this.#send();
				await this.#calls.wait(returned, rest());
				await this.#whenApplied(rest());
			}
			if (this.#outbox.isKept || (this.#link.keeps && this.#operations.isKept)) {
				await this.#settle(rest());
			}
			if (this.#link.isKnown) {
				const most = Math.min(END_MS, rest().timeoutMs ?? END_MS);
				await this.#calls.ask({ case: 'end', value: {} }, { timeoutMs: most }, undefined, () => true).catch(() => {});
			}
		} catch (error) {
			return error instanceof RationError ? error : new RationError('ABORTED', String(error));
		}
		return undefined;
	}

	/** Have it in the state file, if there is one. */
	async #settle(options: CallOptions): Promise<void> {
		await this.#fold(true, options).catch((error: RationError) => {
			if (error.code !== 'FAILED_PRECONDITION' || this.#link.keeps) {
				throw error;
			}
		});
	}

	#undelivered(why: RationError): RationError {
		const { amount, counters } = this.#outbox.undelivered();
		const what = amount > 0n ? `${amount} on ${counters} counter${counters === 1 ? '' : 's'} could not be delivered` : 'what was delivered may not last';

		return new RationError(why.code, `${what}: ${why.text}`, this.url);
	}

	/** @internal The program has nothing left to do. */
	_rest(): Promise<void> {
		const { amount } = this.#outbox.undelivered();
		const isDue = this.#outbox.isKept || this.#operations.isKept || this.#link.isKnown;

		if (this.#exitTimeoutMs > 0 && isDue && Number(amount) !== this.#failedAt) {
			this.#resting ??= this.#restNow().finally(() => (this.#resting = undefined));
		}
		return this.#resting ?? Promise.resolve();
	}

	async #restNow(): Promise<void> {
		const error = await this.#deliver({ timeoutMs: this.#exitTimeoutMs });

		if (error === undefined) {
			this.#lost();
			this.#link.renew();
		}
		this.#failedAt = error === undefined ? -1 : Number(this.#outbox.undelivered().amount);
	}

	/** @internal The program ends now. What is left goes to a process that can wait; what that can't deliver either it says itself. */
	_exit(): void {
		const leases = [...this.#leases].map((lease) => lease._bequeath()).filter((one) => one !== undefined);
		const { amount } = this.#outbox.undelivered();
		const isDue = this.#outbox.isKept || this.#holds.size > 0 || leases.length > 0;
		const isHopeless = amount > 0n && Number(amount) === this.#failedAt;

		if (isDue && (isHopeless || this.#exitTimeoutMs === 0 || !deliver(this.#bequeath(leases)))) {
			const why = new RationError('UNAVAILABLE', this.#link.reason || 'the program ended');
			try {
				writeSync(2, `rationd: ${this.#undelivered(why).message}\n`);
			} catch {
				// Nobody reads it; that is no reason for another exit status.
			}
		}
	}

	#bequeath(leases: readonly LeaseBequest[]): Bequest {
		return {
			options: { url: this.url, exitTimeoutMs: this.#exitTimeoutMs, sessionLifetimeMs: this.#lifetimeMs },
			session: this.#link.session.toString('hex'),
			operations: this.#operations.bequeath(),
			leases,
			outbox: this.#outbox.bequeath(),
		};
	}

	/** @internal Go on as the client of a process that has ended. */
	_inherit({ session, operations, leases, outbox }: Bequest): void {
		this.#link.inherit(Buffer.from(session, 'hex'));
		this.#operations.inherit(operations);
		this.#outbox.inherit(outbox);
		this.#inherited = Promise.all(leases.map((lease) => this.#return(lease)));
		this.#link.start();
	}

	/** Report and return a lease of the process that has ended. */
	#return({ path, lease, spent, isCounter }: LeaseBequest): Promise<void> {
		return new Promise((done) => {
			this.#calls.operate({ case: 'leaseReturn', value: { lease, spent: BigInt(spent) } }, (answer) => {
				if (answer.case === 'error' && isCounter) {
					this.#outbox.add(this.#outbox.counter(path), BigInt(spent)); // It has happened.
				}
				done();
			});
		});
	}

	// ---- inside ----

	/** Growth has begun to wait. */
	#wake(): void {
		if (this.#timer === undefined) {
			this.#timer = later(() => this.#send(), this.#sendIntervalMs);
			this.#timer.unref();
		}
	}

	#send(): void {
		cancel(this.#timer);
		this.#timer = undefined;
		this.#link.start();
		this.#link.pump();
	}

	/** What a listener throws is an uncaught exception of its own; what we are at goes on. False: nobody listens. */
	#say<Name extends keyof ClientEvents>(name: Name, ...args: ClientEvents[Name]): boolean {
		try {
			return (this as EventEmitter).emit(name, ...args);
		} catch (error) {
			process.nextTick(() => {
				throw error;
			});
			return true;
		}
	}

	#lose(path: string, code: number, amount: bigint, text: string): void {
		const loss = { code: codeName(code), path, amount: amountOf(amount), text };

		if (!this.#say('loss', loss) && !this.#warned.has(loss.code)) {
			this.#warned.add(loss.code);
			process.emitWarning(`rationd: ${path}: ${loss.amount} not counted: ${loss.code}: ${text}`, 'RationWarning');
		}
	}

	#up(isLost: boolean): void {
		if (isLost) {
			this.#lost();
			this.#say('reset');
		}
		this.#say('connect');
		this.#leases.forEach((lease) => lease._up());
	}

	#lost(): void {
		this.#leases.forEach((lease) => lease._lost());
		this.#holds.forEach((hold) => hold._lost());
		this.#holds.clear();
	}

}

function consistencyOf(options: GetOptions): WireConsistency {
	const consistency: Consistency = options.consistency ?? 'fresh';

	if (!Object.hasOwn(consistencies, consistency)) {
		throw invalid(`expected fresh, cached or exact, not ${describe(consistency)}`, 'consistency');
	}
	return consistencies[consistency];
}

function amountItem(path: string, amount: Amount | undefined): ChargeItem {
	return amount === undefined ? { path } : { path, amount };
}

function itemsOf(items: readonly ChargeItem[]): Items {
	if (!Array.isArray(items) || items.length === 0 || items.length > MAX_ITEMS) {
		throw invalid(`expected a path, or a list of 1 to ${MAX_ITEMS} items`);
	}
	return items.map((item: ChargeItem) => {
		checkOptions(item, 'item');
		const { path, amount = 1 } = item;
		checkPath(path);
		return [path, chargeOf(amount, path)] as const;
	});
}

function metricOf(metric: WireMetric): Metric {
	return {
		kind: kindOf(metric.kind),
		maxCounters: metric.maxCounters,
		overflow: metric.overflow,
		expireAfterMs: Number(metric.expireAfterMs),
	};
}
