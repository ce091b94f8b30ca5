/** Status codes of the daemon's answers: the names and numbers of google.rpc.Code. */
export const codes = {
	OK: 0,
	INVALID_ARGUMENT: 3,
	DEADLINE_EXCEEDED: 4,
	NOT_FOUND: 5,
	ALREADY_EXISTS: 6,
	PERMISSION_DENIED: 7,
	RESOURCE_EXHAUSTED: 8,
	FAILED_PRECONDITION: 9,
	ABORTED: 10,
	OUT_OF_RANGE: 11,
	UNIMPLEMENTED: 12,
	INTERNAL: 13,
	UNAVAILABLE: 14,
} as const;

/** The name of a status code. One that this version does not know is `INTERNAL`. */
export type Code = keyof typeof codes;

const names = new Map<number, Code>(Object.entries(codes).map(([name, number]) => [number, name as Code]));

/** @internal */
export function codeName(number: number): Code {
	return names.get(number) ?? 'INTERNAL';
}

/**
 * What every failure of this library is: a call that was refused before anything was sent (`INVALID_ARGUMENT`, `OUT_OF_RANGE`), a daemon
 * that is not there (`UNAVAILABLE`) or did not answer in time (`DEADLINE_EXCEEDED`), or what the daemon answered.
 */
export class RationError extends Error {
	/** The name of the status code. */
	readonly code: Code;
	/** Its number, as the daemon sent it. */
	readonly status: number;
	/** What was wrong, for people. */
	readonly text: string;
	/** What it was wrong with: a path, an option, a URL. */
	readonly item: string | undefined;

	/** @internal */
	constructor(code: Code | number, text: string, item?: string) {
		const name = typeof code === 'number' ? codeName(code) : code;

		super(item === undefined ? `${name}: ${text}` : `${name}: ${JSON.stringify(item)}: ${text}`);
		this.name = 'RationError';
		this.code = name;
		this.status = typeof code === 'number' ? code : codes[code];
		this.text = text;
		this.item = item;
	}
}

/** @internal */
export function invalid(text: string, item?: string): RationError {
	return new RationError('INVALID_ARGUMENT', text, item);
}
