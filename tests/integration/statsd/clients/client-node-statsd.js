const StatsD = require('node-statsd');
const client = new StatsD({ host: '127.0.0.1', port: Number(process.argv[2]), prefix: 'node.' });
const n = 2000;

(async () => {
	for (let i = 0; i < n; i++) {
		client.increment('one');
		client.increment('tagged', 2, 1, ['b:2', 'a:1']);
		if (i % 20 === 0) {
			await new Promise((resolve) => setTimeout(resolve, 1));
		}
	}
	client.gauge('gauge', 7);
	setTimeout(() => client.close(), 100);
	console.log(`node/one ${n}`);
	console.log(`node/tagged/a=1/b=2 ${2 * n}`);
})();
