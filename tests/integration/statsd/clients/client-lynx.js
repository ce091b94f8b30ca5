const Lynx = require('lynx');
const client = new Lynx('127.0.0.1', Number(process.argv[2]), { scope: 'lynx' });
const n = 2000;

(async () => {
	for (let i = 0; i < n; i++) {
		client.increment('one');
		client.count('three', 3);
		if (i % 20 === 0) {
			await new Promise((resolve) => setTimeout(resolve, 1));
		}
	}
	client.send({ 'both.a': '2|c', 'both.b': '4|c' });
	setTimeout(() => client.close(), 100);
	console.log(`lynx/one ${n}`);
	console.log(`lynx/three ${3 * n}`);
	console.log('lynx/both/a 2');
	console.log('lynx/both/b 4');
})();
