// Frames: a varint length and a message.
import { create, fromBinary, toBinary, type MessageInitShape } from '@bufbuild/protobuf';
import { ReplySchema, RequestSchema, type Reply } from './generated/ration_pb.js';

/** @internal */
export type RequestInit = MessageInitShape<typeof RequestSchema>;
/** @internal The one body that a request has. */
export type Body = NonNullable<Exclude<RequestInit['body'], { case?: undefined }>>;
/** @internal The one body that a reply has; without a case if it is one that this version does not know. */
export type Answer = Reply['body'];

const MAX_FRAME = 1024 * 1024; // always, in both directions
const MAX_LENGTH_BYTES = 3;

/** @internal Bytes of a message, before its id and number, and what is known of an operation, are filled in. */
export const MAX_BODY = MAX_FRAME - 64;

/** @internal */
export function sizeOf(body: Body): number {
	return toBinary(RequestSchema, create(RequestSchema, { body })).length;
}

/** @internal */
export function frameOf(request: RequestInit): Uint8Array {
	const message = toBinary(RequestSchema, create(RequestSchema, request));
	const length: number[] = [];

	for (let n = message.length; ; n >>>= 7) {
		if (n < 0x80) {
			length.push(n);
			break;
		}
		length.push((n & 0x7f) | 0x80);
	}
	const frame = new Uint8Array(length.length + message.length);
	frame.set(length);
	frame.set(message, length.length);
	return frame;
}

/** @internal What has been read from the daemon, and not yet been taken as messages. */
export class FrameReader {
	#rest: Buffer = Buffer.alloc(0);

	/** The whole messages that there are with this piece. Throws what is wrong with them. */
	*take(piece: Buffer): Generator<Reply> {
		this.#rest = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece]);
		for (let at = 0; ; ) {
			const length = lengthAt(this.#rest, at);

			if (length === undefined || at + length.bytes + length.value > this.#rest.length) {
				this.#rest = this.#rest.subarray(at);
				return;
			}
			at += length.bytes;
			const message = fromBinary(ReplySchema, this.#rest.subarray(at, at + length.value), { readUnknownFields: false });
			at += length.value;
			yield message;
		}
	}
}

function lengthAt(bytes: Buffer, at: number): { value: number; bytes: number } | undefined {
	let value = 0;

	for (let i = 0; i < MAX_LENGTH_BYTES; i++) {
		const byte = bytes[at + i];
		if (byte === undefined) {
			return undefined;
		}
		value |= (byte & 0x7f) << (7 * i);
		if (byte < 0x80) {
			if (value > MAX_FRAME) {
				throw new RangeError(`a message of ${value} bytes, where ${MAX_FRAME} is the most`);
			}
			return { value, bytes: i + 1 };
		}
	}
	throw new RangeError('a length of more than three bytes');
}
