import { describe } from './amount.js';
import { cancel, later, now, type Timer } from './clock.js';
import { invalid, RationError } from './error.js';
import type { Link, Question } from './link.js';
import { answerOf, errorOf, type Operation, type OperationBody, type Operations } from './operations.js';
import type { CallOptions } from './types.js';
import type { Answer, Body } from './wire.js';

/** @internal A time in milliseconds of the caller's. */
export function timeoutOf(ms: unknown, name = 'timeoutMs'): number {
	if (typeof ms !== 'number' || !(ms >= 0)) {
		throw invalid(`expected a number of milliseconds, not ${describe(ms)}`, name);
	}
	return ms > 2 ** 31 - 1 ? Infinity : ms;
}

/** @internal Questions and operations as promises: with a time to wait, and a program that goes on meanwhile. */
export class Calls {
	readonly timeoutMs: number;
	isClosed = false;
	readonly #link: Link;
	readonly #operations: Operations;
	#awaiting = 0;

	constructor(link: Link, operations: Operations, timeoutMs: unknown) {
		this.#link = link;
		this.#operations = operations;
		this.timeoutMs = timeoutOf(timeoutMs);
	}

	checkOpen(): void {
		if (this.isClosed) {
			throw new RationError('FAILED_PRECONDITION', 'this client is closed');
		}
	}

	/** Before anything is sent. */
	#check({ timeoutMs = this.timeoutMs, signal }: CallOptions): void {
		timeoutOf(timeoutMs);
		if (signal !== undefined && typeof signal?.throwIfAborted !== 'function') {
			throw invalid(`expected an AbortSignal, not ${describe(signal)}`, 'signal');
		}
		signal?.throwIfAborted();
	}

	/** The same options with the time that is left of theirs. */
	restOf(options: CallOptions): () => CallOptions {
		const deadline = now() + timeoutOf(options.timeoutMs ?? this.timeoutMs);

		return () => ({ ...options, timeoutMs: Math.max(0, deadline - now()) });
	}

	/** Wait for something, no longer than said; `give` is called if it is given up. */
	async wait<T>(promise: Promise<T>, options: CallOptions, give: () => void = () => {}): Promise<T> {
		const timeoutMs = timeoutOf(options.timeoutMs ?? this.timeoutMs);
		const { signal } = options;
		let timer: Timer | undefined;
		let abort = (): void => {};

		this.#await(+1);
		try {
			const over = new Promise<never>((_, fail) => {
				const end = (error: unknown): void => {
					give();
					fail(error);
				};
				timer = timeoutMs === Infinity ? undefined : later(() => end(this.#timeOver(timeoutMs)), timeoutMs);
				abort = () => end(signal?.reason);
				signal?.addEventListener('abort', abort);
				if (signal?.aborted) {
					abort();
				}
			});
			return await Promise.race([promise, over]);
		} finally {
			cancel(timer);
			signal?.removeEventListener('abort', abort);
			this.#await(-1);
		}
	}

	#await(change: number): void {
		this.#awaiting += change;
		this.#link.await(this.#awaiting > 0);
	}

	#timeOver(timeoutMs: number): RationError {
		return this.#link.isUp
			? new RationError('DEADLINE_EXCEEDED', `no answer within ${Math.round(timeoutMs)} ms`, this.#link.address.url)
			: new RationError('UNAVAILABLE', this.#link.reason, this.#link.address.url);
	}

	/**
	 * Ask something that has no number. `take` gives what the answer says, undefined if it is none to this question, or 'more' if there is
	 * more to come; `again`: all that was answered so far is answered anew.
	 */
	async ask<T>(
		body: Body, options: CallOptions, item: string | undefined, take: (answer: Answer) => T | 'more' | undefined, again = (): void => {},
	): Promise<T> {
		let question: Question | undefined;
		const asked = new Promise<T>((done, fail) => {
			const taken = (answer: Answer): boolean => {
				const said = take(answer);

				if (said === 'more') {
					return false;
				}
				if (said === undefined) {
					throw errorOf(answer, item);
				}
				done(said);
				return true;
			};
			question = {
				body,
				take: (answer) => {
					try {
						return taken(answer);
					} catch (error) {
						fail(error);
						return true;
					}
				},
				again,
				fail,
			};
		});

		this.#check(options);
		if (body.case !== 'flush' && body.case !== 'end') {
			this.checkOpen(); // those two are how a client ends
		}
		this.#link.ask(question as Question);
		return this.wait(asked, options, () => this.#link.forget(question as Question));
	}

	/** Have an operation done whenever the daemon is there; `done` gets an answer of any kind. */
	operate(body: OperationBody, done: (answer: Answer, operation: Operation) => void): void {
		const operation = this.#add(body, true, done, (error) => done(answerOf(error), operation));
	}

	/** Have an operation done, or say that it was not; `late` gets its answer if that comes when nobody waits any more. */
	async operateNow(body: OperationBody, options: CallOptions, item: string | undefined, late: (answer: Answer) => void): Promise<Answer> {
		let operation: Operation | undefined;

		this.checkOpen();
		this.#check(options);
		const answered = new Promise<Answer>((done, fail) => {
			operation = this.#add(body, false, (answer) => (answer.case === 'error' ? fail(errorOf(answer, item)) : done(answer)), fail);
		});
		return this.wait(answered, options, () => {
			if (operation !== undefined && !this.#operations.withdraw(operation)) {
				operation.answer = late;
				operation.fail = () => {};
			}
		});
	}

	#add(body: OperationBody, lasting: boolean, answer: Operation['answer'], fail: Operation['fail']): Operation {
		const operation: Operation = { body, id: 0, number: 0, sentAt: 0, lasting, known: undefined, final: false, faults: 0, answer, fail };

		this.#operations.add(operation);
		this.#link.hurry();
		this.#link.pump();
		return operation;
	}
}
