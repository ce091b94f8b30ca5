import { describe } from './amount.js';
import { invalid } from './error.js';

const MAX_BYTES = 512;
const MAX_SEGMENTS = 16;
const MAX_SEGMENT_BYTES = 128;

const PLAIN = /^[!-.0-~]+(\/[!-.0-~]+)*$/; // printable ASCII without blanks: the ordinary path
const RESERVED = new Set(['.', '..', '*', '**']);

function faultOfSegment(segment: string): string | undefined {
	if (segment === '') {
		return 'a segment is empty; segments are joined by single slashes, with none at either end';
	}
	if (Buffer.byteLength(segment) > MAX_SEGMENT_BYTES) {
		return `a segment is longer than ${MAX_SEGMENT_BYTES} bytes`;
	}
	if (/\p{Surrogate}/u.test(segment)) {
		return 'this is not valid UTF-16; a path is text';
	}
	if (/\p{Control}/u.test(segment)) {
		return 'there is a control character; a segment holds printable text only';
	}
	if (/^\p{White_Space}|\p{White_Space}$/u.test(segment)) {
		return 'a segment begins or ends with a blank; blanks may stand only inside it';
	}
	if (RESERVED.has(segment)) {
		return "a segment is '.', '..', '*' or '**'; these are reserved, choose another name";
	}
	return undefined;
}

function faultOf(path: string): string | undefined {
	if (path === '') {
		return 'the path is empty; it needs at least one segment, the metric';
	}
	if (Buffer.byteLength(path) > MAX_BYTES) {
		return `the path is longer than ${MAX_BYTES} bytes`;
	}
	const segments = path.split('/');
	if (segments.length > MAX_SEGMENTS) {
		return `the path has more than the allowed number of segments, which is ${MAX_SEGMENTS}`;
	}
	if (PLAIN.test(path) && !segments.some((segment) => segment.length > MAX_SEGMENT_BYTES || RESERVED.has(segment))) {
		return undefined;
	}
	for (const segment of segments) {
		const fault = faultOfSegment(segment);
		if (fault !== undefined) {
			return fault;
		}
	}
	return undefined;
}

/** @internal Throws unless this is a path. */
export function checkPath(path: unknown): asserts path is string {
	if (typeof path !== 'string') {
		throw invalid(`expected a path, a string, not ${describe(path)}`);
	}
	const fault = faultOf(path);
	if (fault !== undefined) {
		throw invalid(fault, path);
	}
}
