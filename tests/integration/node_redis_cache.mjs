// node-redis with its client-side cache, which turns on CLIENT TRACKING when it connects, and with
// transactions.
import assert from 'node:assert/strict';
import {createClient} from 'redis';

const options = {
  socket: {port: Number(process.argv[2]), host: '127.0.0.1', reconnectStrategy: false},
  RESP: 3,
  clientSideCache: {ttl: 0, maxEntries: 0, evictPolicy: 'LRU'},
};
const client = createClient(options);
client.on('error', (error) => assert.fail(error));
await client.connect();
const key = 'cached';
for (const remaining of [4, 3]) {
  assert.deepEqual(await client.sendCommand(['CL.THROTTLE', key, '4', '1', '1000']).then((a) => a.slice(0, 3)), [0, 5, remaining]);
}
const take = ['CL.THROTTLE', key, '4', '1', '1000'];
const replies = await client.multi().addCommand(take).addCommand(['TTL', key]).addCommand(take).exec();
assert.deepEqual(replies.map((reply) => reply[2] ?? reply), [2, 3000, 1]);
assert.equal((await client.sendCommand([...take, '0']))[2], 1);
const script = "return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3])";
assert.equal((await client.eval(script, {keys: [key], arguments: ['4', '1', '1000']}))[2], 0);
const info = await client.clientInfo();
assert.equal(info.resp, 3);
assert.equal(info.db, 0);
assert.equal((await client.clientList()).length, 1);
assert.equal((await client.role()).role, 'master');
assert.ok(await client.dbSize() >= 1);
assert.equal(await client.del(key), 1);
assert.equal(await client.exists(key), 0);
await client.close();
console.log('ok');
