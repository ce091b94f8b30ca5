import type { Client } from './client.js';
import { describe, optionOf } from './amount.js';
import { cancel, later, now, type Timer } from './clock.js';
import { invalid, RationError, type Code } from './error.js';
import { errorOf, type Operation, type OperationBody } from './operations.js';
import type { CallOptions } from './types.js';
import type { Answer } from './wire.js';

const MARGIN_MS = 50; // spending stops so much before the daemon's time is over
const RETRY_MIN_MS = 10;
const RETRY_MAX_MS = 1000;
const FALLBACKS = new Set<Fallback>(['closed', 'open', 'last-lease']);
/** What says of a lease that there is none such, or that it is not as it is in the books. */
const GONE = new Set<Code>(['NOT_FOUND', 'FAILED_PRECONDITION', 'ABORTED']);

/** Options of {@link Client.lease}. */
export interface LeaseOptions {
	/** How long units may be spent without hearing from the daemon, in milliseconds: 1,000 to 3,600,000; default 10,000. */
	ttlMs?: number;
	/** Fill up when fewer units are left; default: half of what is wanted. */
	lowWater?: number;
}

/**
 * What {@link Lease.try} does when there are no units that may be spent. `closed`: says no. `open`: says yes if there is no daemon to ask, and
 * tells it as an addition once it is back, if the metric is a counter. `last-lease`: goes on with the units of an expired lease, to the last.
 */
export type Fallback = 'closed' | 'open' | 'last-lease';

/** @internal What a lease needs of its client. */
export interface LeaseHost {
	isUp(): boolean;
	/** Have an operation done, whenever the daemon is there. */
	operate(body: OperationBody, done: (answer: Answer, operation: Operation) => void): void;
	/** Whether the metric of a path is a counter; undefined: it could not be asked, or there is none such. */
	askKind(path: string, done: (isCounter: boolean | undefined) => void): void;
	/** Count what was spent and no report will say. */
	add(path: string, n: number): void;
	wait<T>(promise: Promise<T>, options: CallOptions, give?: () => void): Promise<T>;
	closed(lease: Lease): void;
}

/** @internal What one process leaves to another of a lease, as JSON can hold it. */
export interface LeaseBequest {
	readonly path: string;
	readonly lease: number;
	readonly spent: number;
	readonly isCounter: boolean;
}

interface Waiter {
	readonly done: () => void;
	readonly fail: (error: RationError) => void;
}

/**
 * A stock of units that are charged on the whole path already, to be spent without asking the daemon for each. It is kept filled in the
 * background: more are asked for when fewer than `lowWater` are left, and it is renewed in time. Made by {@link Client.lease}.
 *
 * The books: the daemon has `unspent` units on it when all that is under way is done; `units` can be spent here. So `unspent - units` is to be
 * reported as spent next; if more was given back than was spent since, `units - unspent` are held by the session, and can be spent again.
 */
export class Lease {
	/** The path that it is of. */
	readonly path: string;
	/** How many units it is to have. */
	readonly want: number;
	readonly #host: LeaseHost;
	readonly #ttlMs: number;
	readonly #lowWater: number;
	readonly #newId: () => number;
	#id = 0;
	#held = false; // the daemon has it
	#isBusy = false; // an operation of it is under way
	#isClosed = false;
	#units = 0;
	#unspent = 0;
	#out = 0; // units that were spent and not given back
	#strays = 0; // the same, but no lease knows of them
	#opened = 0;
	#toTell = 0; // spent, and in no report: to be added, if this is a counter
	#isCounter: boolean | undefined;
	#isAsking = false; // for that
	#returning: Promise<void> | undefined;
	#expiresAt = -Infinity;
	#renewAt = Infinity;
	#retryAt = -Infinity;
	#backoff = 0;
	#code: Code | undefined;
	#timer: Timer | undefined;
	#waiters = new Set<Waiter>();
	#whenIdle: (() => void)[] = [];

	/** @internal */
	constructor(host: LeaseHost, newId: () => number, path: string, want: number, options: LeaseOptions) {
		this.#host = host;
		this.#newId = newId;
		this.path = path;
		this.want = optionOf(want, 'want', 1, Number.MAX_SAFE_INTEGER);
		this.#ttlMs = optionOf(options.ttlMs ?? 10_000, 'ttlMs', 1000, 3_600_000);
		this.#lowWater = optionOf(options.lowWater ?? Math.ceil(want / 2), 'lowWater', 1, want);
		this.#step();
	}

	/** Units that can be spent now. */
	get left(): number {
		return now() < this.#expiresAt ? this.#units : 0;
	}

	/** Units that were granted by the fallback `open` alone. */
	get opened(): number {
		return this.#opened;
	}

	/** Of the daemon's last answer; undefined: there was none yet. */
	get code(): Code | undefined {
		return this.#code;
	}

	/** Spend `n` units, by default 1, or not: decided here and now. Never are more spent than the daemon gave, but by the fallback. */
	try(n = 1, fallback: Fallback = 'closed'): boolean {
		if (!Number.isSafeInteger(n) || n < 1) {
			throw invalid(`expected a whole number of units, 1 or more, not ${describe(n)}`, this.path);
		}
		if (n <= this.#units && (now() < this.#expiresAt || fallback === 'last-lease')) {
			this.#units -= n;
			this.#out += n;
			if (this.#units < this.#lowWater && !this.#isBusy) {
				this.#step();
			}
			return true;
		}
		if (!FALLBACKS.has(fallback)) {
			throw invalid(`expected closed, open or last-lease, not ${describe(fallback)}`, 'fallback');
		}
		this.#step();
		return fallback === 'open' && this.#open(n);
	}

	#open(n: number): boolean {
		if (this.#isClosed || this.#host.isUp() || now() < this.#expiresAt) {
			return false;
		}
		this.#opened += n;
		this.#strays += n;
		this.#tell(n);
		return true;
	}

	/** Of a counter, what was spent and no report will say is added: at once, or when it is known that it is one. */
	#tell(n: number): void {
		this.#toTell += n;
		if (this.#toTell > 0 && this.#isCounter === undefined) {
			this.#askKind();
		} else if (this.#toTell > 0) {
			if (this.#isCounter === true) {
				this.#host.add(this.path, this.#toTell);
			}
			this.#toTell = 0;
		}
	}

	#askKind(): void {
		if (this.#isCounter === undefined && !this.#isAsking && this.#host.isUp()) {
			this.#isAsking = true;
			this.#host.askKind(this.path, (isCounter) => {
				this.#isAsking = false;
				this.#isCounter = isCounter;
				if (isCounter !== undefined) {
					this.#tell(0);
				}
			});
		}
	}

	/**
	 * Give `n` spent units back: of a gauge, when what they stood for has ended. They can be spent again at once; what is above `want` goes back
	 * to the daemon. Of a counter only what was not used after all.
	 */
	give(n = 1): void {
		if (!Number.isSafeInteger(n) || n < 1) {
			throw invalid(`expected a whole number of units, 1 or more, not ${describe(n)}`, this.path);
		}
		const strays = Math.min(n, this.#strays);

		this.#strays -= strays;
		this.#out -= Math.min(n - strays, this.#out);
		this.#units += n - strays;
		this.#step();
	}

	/** Wait until it has a unit. Fails with `RESOURCE_EXHAUSTED` if the daemon refuses, and with `UNAVAILABLE` if there is none. */
	async wait(options: CallOptions = {}): Promise<void> {
		if (this.left > 0) {
			return;
		}
		if (this.#isClosed) {
			throw new RationError('FAILED_PRECONDITION', 'this lease is closed', this.path);
		}
		let waiter: Waiter | undefined;
		const promise = new Promise<void>((done, fail) => {
			waiter = { done, fail };
			this.#waiters.add(waiter);
		});
		this.#retryAt = -Infinity;
		this.#step();
		await this.#host.wait(promise, options, () => this.#waiters.delete(waiter as Waiter));
	}

	/** Report what was spent and return the rest. Spent units of a gauge stay held by the client. Gives the units that were left. */
	async close(options: CallOptions = {}): Promise<number> {
		if (this.#isClosed) {
			return 0;
		}
		const left = this.#units;

		this.#isClosed = true;
		this.#fail(new RationError('ABORTED', 'the lease was closed', this.path));
		await this.#host.wait(this.#return().then(() => this.#host.closed(this)), options);
		return left;
	}

	/** The same as {@link Lease.close}. */
	async [Symbol.asyncDispose](): Promise<void> {
		await this.close();
	}

	#return(): Promise<void> {
		this.#returning ??= this.#returnNow().finally(() => (this.#returning = undefined));
		return this.#returning;
	}

	async #returnNow(): Promise<void> {
		if (this.#isBusy) {
			await new Promise<void>((done) => this.#whenIdle.push(done));
		}
		cancel(this.#timer);
		const spent = this.#unspent - this.#units;
		const isHeld = this.#held;
		this.#forget();
		if (isHeld && spent < 0) {
			this.#uncharge(-spent);
		}
		if (isHeld) {
			await new Promise<void>((done) => {
				const value = { lease: this.#id, spent: BigInt(Math.max(0, spent)) };
				this.#host.operate({ case: 'leaseReturn', value }, (answer) => {
					this.#tell(answer.case === 'error' ? Math.max(0, spent) : 0);
					done();
				});
			});
		}
	}

	// ---- in the background ----

	#step(): void {
		if (this.#isBusy || this.#isClosed || this.#returning !== undefined) {
			return;
		}
		const time = now();

		if (!this.#held) {
			if (time >= this.#retryAt) {
				this.#take();
			}
		} else if (time >= this.#renewAt || (this.#units < this.#lowWater && time >= this.#retryAt)) {
			this.#renew();
		} else if (this.#units > this.want && this.#units > this.#unspent) {
			const extra = this.#units - Math.max(this.want, this.#unspent);
			this.#units -= extra;
			this.#uncharge(extra);
		}
		this.#plan();
	}

	#plan(): void {
		const wantsMore = !this.#held || this.#units < this.#lowWater;
		const at = Math.min(this.#held ? this.#renewAt : Infinity, wantsMore ? this.#retryAt : Infinity);

		cancel(this.#timer);
		if (!this.#isBusy && !this.#isClosed && this.#returning === undefined && at < Infinity) {
			this.#timer = later(() => this.#step(), Math.max(1, at - now()));
			this.#timer.unref();
		}
	}

	#operate(body: OperationBody, answered: (answer: Answer, operation: Operation) => void): void {
		this.#isBusy = true;
		this.#host.operate(body, (answer, operation) => {
			this.#isBusy = false;
			answered(answer, operation);
			this.#whenIdle.splice(0).forEach((done) => done());
			this.#step();
		});
	}

	#take(): void {
		this.#id = this.#newId();
		const value = { lease: this.#id, path: this.path, want: BigInt(this.want), ttlMs: this.#ttlMs };

		this.#operate({ case: 'lease', value }, (answer, operation) => {
			this.#held = answer.case === 'leased' && answer.value.granted > 0n;
			this.#takeLeased(answer, operation);
		});
	}

	#renew(): void {
		const spent = Math.max(0, this.#unspent - this.#units);
		const extra = Math.max(0, this.#units - this.#unspent);
		const value = { lease: this.#id, spent: BigInt(spent), want: BigInt(Math.max(0, this.want - extra)) };

		this.#unspent -= spent;
		this.#operate({ case: 'leaseRenew', value }, (answer, operation) => {
			if (answer.case === 'error') {
				this.#unspent += spent; // it was not taken
			}
			if (answer.case === 'error' && GONE.has(errorOf(answer).code)) {
				this._lost();
				this.#retryAt = -Infinity;
			} else {
				this.#takeLeased(answer, operation);
			}
		});
	}

	#takeLeased(answer: Answer, operation: Operation): void {
		const granted = answer.case === 'leased' ? Number(answer.value.granted) : 0;

		if (answer.case === 'leased' && this.#held) {
			this.#units += granted;
			this.#unspent += granted;
			this.#expiresAt = operation.sentAt + answer.value.ttlMs - MARGIN_MS;
			this.#renewAt = operation.sentAt + answer.value.ttlMs / 2;
		}
		this.#code = answer.case !== 'leased' ? errorOf(answer).code : granted === 0 && this.#units === 0 ? 'RESOURCE_EXHAUSTED' : 'OK';
		if (granted > 0) {
			this.#askKind(); // there is such a metric now
			this.#backoff = 0;
			this.#retryAt = -Infinity;
		} else {
			this.#backoff = Math.min(RETRY_MAX_MS, this.#backoff === 0 ? RETRY_MIN_MS : this.#backoff * 2);
			this.#retryAt = now() + this.#backoff;
		}
		if (this.#units > 0) {
			this.#waiters.forEach((waiter) => waiter.done());
			this.#waiters.clear();
		} else {
			this.#fail(answer.case === 'error' ? errorOf(answer, this.path) : new RationError('RESOURCE_EXHAUSTED', 'no units are left', this.path));
		}
	}

	#uncharge(n: number): void {
		this.#host.operate({ case: 'uncharge', value: { path: this.path, amount: BigInt(n) } }, () => {});
	}

	#fail(error: RationError): void {
		this.#waiters.forEach((waiter) => waiter.fail(error));
		this.#waiters.clear();
	}

	/** Without units, and without the daemon's. */
	#forget(): void {
		this.#held = false;
		this.#units = this.#unspent = 0;
		this.#expiresAt = -Infinity;
	}

	/** @internal The daemon does not know it any more. */
	_lost(): void {
		this.#strays += this.#out;
		this.#out = 0;
		this.#tell(Math.max(0, this.#unspent - this.#units));
		this.#forget();
	}

	/** @internal The connection is there again. */
	_up(): void {
		this.#tell(0);
		this.#step();
	}

	/** @internal Nobody listens. */
	_unreachable(error: RationError): void {
		this.#fail(error);
	}

	/** @internal The session comes to its end; what is spent was reported, the rest goes back. It begins anew when it is used again. */
	_rest(): Promise<void> {
		return this.#return();
	}

	/** @internal The client ends, and what no report has said is to be said by it. */
	_end(): void {
		this.#isClosed = true;
		this.#fail(new RationError('FAILED_PRECONDITION', 'this client is closed', this.path));
		this._lost();
		cancel(this.#timer);
		if (this.#toTell > 0) {
			this.#host.add(this.path, this.#toTell);
			this.#toTell = 0;
		}
	}

	/** @internal For another process to report and return. */
	_bequeath(): LeaseBequest | undefined {
		const spent = Math.max(0, this.#unspent - this.#units);

		return this.#held ? { path: this.path, lease: this.#id, spent, isCounter: this.#isCounter === true } : undefined;
	}
}
