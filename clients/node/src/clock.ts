// Time as this library takes it: monotonic, so that no step of the wall clock moves it, and taken hold of when the library is loaded, so
// that it goes on where a test puts a clock of its own in place of the timers.
import { performance } from 'node:perf_hooks';
import timers from 'node:timers';

/** @internal Milliseconds since some moment. */
export const now: () => number = performance.now.bind(performance);
/** @internal */
export const later = timers.setTimeout;
/** @internal */
export const cancel = timers.clearTimeout;
/** @internal */
export type Timer = NodeJS.Timeout;
