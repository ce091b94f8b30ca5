import { create, fromJson, toJson, type JsonValue } from '@bufbuild/protobuf';
import { codes, RationError } from './error.js';
import { now } from './clock.js';
import { ErrorSchema, RequestSchema } from './generated/ration_pb.js';
import type { Answer, Body, RequestInit } from './wire.js';

/** @internal What an operation asks for. */
export type OperationBody = Extract<Body, { case: 'charge' | 'uncharge' | 'lease' | 'leaseRenew' | 'leaseReturn' }>;

/** @internal An operation, from the call to the moment when the daemon has it and its answer for good. */
export interface Operation {
	readonly body: OperationBody;
	/** Of the request. */
	id: number;
	/** 0: it was never sent, and can still be withdrawn. */
	number: number;
	/** When it was sent first. */
	sentAt: number;
	/** It is sent whenever the daemon is back, and does not fail because nobody listens now. */
	readonly lasting: boolean;
	/** Its answer, in short. */
	known: { done: boolean; granted: bigint } | undefined;
	/** It is answered, and no other daemon has to do it again. */
	final: boolean;
	faults: number;
	/** Nobody waits for it any more, or somebody else. */
	answer: (answer: Answer, operation: Operation) => void;
	fail: (error: RationError) => void;
}

/** @internal What a Welcome says about operations. */
export interface OperationsKnown {
	readonly last: number;
	readonly durable: number;
	readonly keeps: boolean;
	readonly resumed: boolean;
	readonly restored: boolean;
	readonly sameDaemon: boolean;
}

/** @internal What one process leaves to another, as JSON can hold it. */
export interface OperationsBequest {
	readonly kept: readonly { number: number; request: JsonValue; known: { done: boolean; granted: string } | null }[];
	readonly next: number;
}

const OPERATION_BYTES = 256; // what one takes, about
const ITEM_BYTES = 96;
const MAX_FAULTS = 5;

function sizeOf(operation: Operation): number {
	return OPERATION_BYTES + (operation.body.case === 'charge' ? ITEM_BYTES * (operation.body.value.items?.length ?? 0) : 0);
}

/** What came of it, if this answers it for good. */
function outcomeOf(answer: Answer): { done: boolean; granted: bigint } | undefined {
	switch (answer.case) {
		case 'charged':
			return { done: answer.value.granted, granted: 0n };
		case 'leased':
			return { done: true, granted: answer.value.granted };
		case 'uncharged':
		case 'leaseReturned':
			return { done: true, granted: 0n };
		case 'error':
			return answer.value.operation === 0n ? undefined : { done: false, granted: 0n };
		default:
			return undefined;
	}
}

/** Of use only to a daemon that knows the session: in another one it would give back, or report, what is not there, or what is another's. */
function diesWithSession({ body }: Operation): boolean {
	return body.case === 'uncharge' ? body.value.detached !== true : body.case === 'leaseRenew' || body.case === 'leaseReturn';
}

/** @internal The operations of a session: numbered when they are sent, kept until they are answered, and durable if the daemon keeps them. */
export class Operations {
	/** With numbers that have no gaps; answered and unanswered ones. */
	#kept: Operation[] = [];
	#queue: Operation[] = [];
	#byId = new Map<number, Operation>();
	#next = 1;
	/** The unanswered ones, oldest first. */
	#open = new Set<Operation>();
	#bytes = 0;
	#keeps = false;
	/** Up to here the daemon has said that it is durable, of some before it has answered them. */
	#durable = 0;
	/** Something was done that is not kept here any more: only a daemon that knows the session has it. */
	#hasForgotten = false;
	/** What the session held is gone, and these with it. */
	#lost: Operation[] = [];
	/** How many answers the daemon keeps. */
	window = 1024;

	constructor(readonly maxBytes: number) {}

	add(operation: Operation): void {
		this.#queue.push(operation);
	}

	/** The number that a Hello says. */
	get next(): number {
		return this.#kept[0]?.number ?? this.#next;
	}

	/** What the daemon may not have done, or not for good, for another process to go on with. */
	bequeath(): OperationsBequest {
		// Nobody waits any more.
		const asJson = (body: OperationBody): JsonValue =>
			toJson(RequestSchema, create(RequestSchema, { body: body.case === 'charge' ? { ...body, value: { ...body.value, waitMs: 0 } } : body }));

		return {
			kept: this.#kept.map(({ number, body, known }) => ({
				number,
				request: asJson(body),
				known: known === undefined ? null : { done: known.done, granted: String(known.granted) },
			})),
			next: this.#next,
		};
	}

	/** Go on behind the numbers of another process. */
	inherit({ kept, next }: OperationsBequest): void {
		this.#next = next;
		for (const { number, request, known: said } of kept) {
			const { body } = fromJson(RequestSchema, request) as { body: OperationBody };
			const known = said === null ? undefined : { done: said.done, granted: BigInt(said.granted) };
			const nobody = (): void => {};
			const operation = { body, id: 0, number, sentAt: now(), lasting: true, known, final: false, faults: 0, answer: nobody, fail: nobody };

			this.#kept.push(operation);
			this.#bytes += sizeOf(operation);
			if (known === undefined) {
				this.#open.add(operation);
			}
		}
	}

	/** Something waits to be sent or for its answer. */
	get isDue(): boolean {
		return this.#queue.length > 0 || this.#open.size > 0;
	}

	/** Something was sent, and not answered. */
	get isUnanswered(): boolean {
		return this.#open.size > 0;
	}

	get isKept(): boolean {
		return this.#queue.length > 0 || this.#kept.length > 0;
	}

	/** Much is kept. */
	get isHalfFull(): boolean {
		return this.#bytes >= this.maxBytes / 2;
	}

	/** False: it was sent, so that nobody can say what comes of it. */
	withdraw(operation: Operation): boolean {
		const at = operation.number === 0 ? this.#queue.indexOf(operation) : -1;

		if (at >= 0) {
			this.#queue.splice(at, 1);
		}
		return at >= 0;
	}

	/** Nobody listens: whoever can be told that nothing was done is told. */
	unreachable(error: RationError): void {
		const failing = this.#queue.filter((operation) => !operation.lasting);

		this.#queue = this.#queue.filter((operation) => operation.lasting);
		failing.forEach((operation) => operation.fail(error));
	}

	/** Put what may be sent now on the connection. */
	send(put: (request: RequestInit) => number): void {
		while (this.#queue.length > 0 && this.#hasRoom()) {
			const operation = this.#queue.shift() as Operation;

			operation.number = this.#next++;
			operation.sentAt = now();
			this.#kept.push(operation);
			this.#bytes += sizeOf(operation);
			this.#open.add(operation);
			this.#put(operation, put);
		}
	}

	#hasRoom(): boolean {
		const [oldest] = this.#open;

		// New ones don't wait for a disk that fails: then the oldest of those that are kept are let go.
		while (this.#bytes >= this.maxBytes && this.#kept[0]?.known !== undefined) {
			this.#dropOldest();
		}
		return this.#bytes < this.maxBytes && (oldest === undefined || this.#next - oldest.number < this.window);
	}

	#put(operation: Operation, put: (request: RequestInit) => number): void {
		const { case: name, value } = operation.body;
		const body = { case: name, value: { ...value, number: BigInt(operation.number) } } as Body;
		let known = operation.known;

		if (operation.final) {
			known = { done: false, granted: 0n };
		}
		this.#byId.delete(operation.id);
		operation.id = put(known === undefined ? { body } : { body, known });
		this.#byId.set(operation.id, operation);
	}

	/** What a daemon that says this of the session had of it is gone. */
	isGone({ resumed, restored, sameDaemon }: OperationsKnown): boolean {
		return !resumed && !restored && (sameDaemon || this.#hasForgotten);
	}

	/** Send again what this daemon has to hear again. False: this can't be the session's. */
	welcome(known: OperationsKnown, put: (request: RequestInit) => number): boolean {
		if (known.last >= this.#next) {
			return false;
		}
		this.#byId.clear();
		this.#keeps = known.keeps;
		if (known.resumed) {
			this.durable(known.durable);
		} else {
			this.#durable = known.durable;
			if (this.isGone(known)) {
				this.#lose();
			}
			this.#renumber(known.last, known.sameDaemon && !known.restored);
			this.#hasForgotten &&= known.restored;
		}
		for (const operation of this.#kept) {
			if (operation.known === undefined || operation.number > known.last) {
				this.#put(operation, put);
			}
			operation.final ||= operation.known !== undefined && !known.keeps && known.resumed;
		}
		this.#dropFinal();
		return true;
	}

	#lose(): void {
		const isLost = (operation: Operation): boolean => operation.known === undefined && diesWithSession(operation);

		this.#lost.push(...[...this.#open, ...this.#queue].filter(isLost));
		this.#queue = this.#queue.filter((operation) => !isLost(operation));
		this.#kept = this.#kept.filter((operation) => !isLost(operation));
		this.#bytes = this.#kept.reduce((sum, operation) => sum + sizeOf(operation), 0);
		this.#lost.forEach((operation) => this.#open.delete(operation));
	}

	/** Tell those who wait for what was lost; they may add again. */
	tellLost(): void {
		const error = new RationError('ABORTED', 'the daemon has forgotten the session, and what it held');

		this.#lost.splice(0).forEach((operation) => operation.fail(error));
	}

	/**
	 * What is kept for a daemon that has forgotten the handles: not what its file has an answer of, not what is of no use to it, and not, if it
	 * did them itself, what was answered. Numbers are as they were, unless there is a gap now.
	 */
	#renumber(last: number, isDone: boolean): void {
		const wasKept = this.#kept;

		this.#kept = [];
		this.#next = last + 1;
		for (const operation of wasKept) {
			if (operation.known !== undefined && (isDone || operation.final || operation.number <= last)) {
				this.#bytes -= sizeOf(operation);
				continue;
			}
			if (operation.number > last) {
				operation.number = this.#next++;
			}
			this.#kept.push(operation);
		}
	}

	/** The reply to an operation. `unknown`: to something else; `fault`: the number was not taken, which ends the connection. */
	take(id: number, answer: Answer): 'taken' | 'unknown' | 'fault' {
		const operation = this.#byId.get(id);

		if (operation === undefined) {
			return 'unknown';
		}
		const outcome = outcomeOf(answer);
		if (outcome === undefined) {
			this.#fault(operation, answer);
			return 'fault';
		}
		this.#byId.delete(id);
		if (operation.known === undefined) {
			this.#answered(operation, outcome);
			operation.answer(answer, operation);
		}
		operation.final ||= !this.#keeps;
		this.#dropUntil(this.#durable);
		this.#dropFinal();
		return 'taken';
	}

	#answered(operation: Operation, outcome: { done: boolean; granted: bigint }): void {
		operation.known = outcome;
		this.#open.delete(operation);
	}

	/** The connection is to be made anew, and the operation sent again. */
	#fault(operation: Operation, answer: Answer): void {
		const error = answer.case === 'error'
			? new RationError(answer.value.code, answer.value.text)
			: new RationError('INTERNAL', 'a reply that does not fit its request');

		if (++operation.faults >= MAX_FAULTS) {
			// The number has to be used up, by nothing.
			operation.final = true;
			if (operation.known === undefined) {
				this.#answered(operation, { done: false, granted: 0n });
				operation.fail(error);
			}
		}
	}

	/** The daemon has all up to this number, with their answers, for good. */
	durable(number: number): void {
		this.#durable = number;
		this.#dropUntil(number);
	}

	#dropUntil(number: number): void {
		const isDone = (operation: Operation): boolean => operation.known !== undefined && operation.number <= number;

		while (this.#kept[0] !== undefined && isDone(this.#kept[0])) {
			this.#dropOldest();
		}
	}

	#dropFinal(): void {
		while (this.#kept[0]?.final === true && !this.#byId.has(this.#kept[0].id)) {
			this.#dropOldest();
		}
	}

	#dropOldest(): void {
		const operation = this.#kept.shift() as Operation;

		this.#hasForgotten = true;
		this.#byId.delete(operation.id);
		this.#bytes -= sizeOf(operation);
	}

	/** The client is closed: whoever still waits is told. */
	end(error: RationError): void {
		const waiting = [...this.#open, ...this.#queue];

		this.#kept = [];
		this.#queue = [];
		this.#byId.clear();
		this.#open.clear();
		this.#bytes = 0;
		waiting.forEach((operation) => operation.fail(error));
	}
}

/** @internal An error that was found out here, as if the daemon had said it. */
export function answerOf(error: RationError): Answer {
	return { case: 'error', value: create(ErrorSchema, { code: error.status, text: error.text }) };
}

/** @internal The code that an operation's Error says, as an exception. */
export function errorOf(answer: Answer, item?: string): RationError {
	return answer.case === 'error'
		? new RationError(answer.value.code, answer.value.text, item)
		: new RationError(codes.INTERNAL, 'a reply that does not fit its request', item);
}
