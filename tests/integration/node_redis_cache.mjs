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
await assert.rejects(client.multi().addCommand(['CL.THROTTLE', key, '4', '1', '1000']).exec(), /MULTI is not supported/);
// The transaction took nothing, and the connection stays usable.
assert.equal((await client.sendCommand(['CL.THROTTLE', key, '4', '1', '1000', '0']))[2], 3);
const info = await client.clientInfo();
assert.equal(info.resp, 3);
assert.equal(info.db, 0);
assert.equal((await client.clientList()).length, 1);
assert.equal((await client.role()).role, 'master');
assert.ok(await client.dbSize() >= 1);
await client.close();
console.log('ok');
