// node-redis, unmodified, in both protocol versions.
import assert from 'node:assert/strict';
import {createClient} from 'redis';

const [port, username, password] = process.argv.slice(2);
const login = username ? {username, password, name: 'ours', database: 0} : {};
for (const RESP of [2, 3]) {
  const client = createClient({socket: {port: Number(port), host: '127.0.0.1'}, RESP, ...login});
  client.on('error', (error) => assert.fail(error));
  await client.connect();
  const key = `user-${RESP}`;
  assert.deepEqual(await client.sendCommand(['CL.THROTTLE', key, '15', '30', '60']), [0, 16, 15, -1, 2]);
  const answers = await Promise.all(
      Array.from({length: 20}, () => client.sendCommand(['CL.THROTTLE', `burst-${RESP}`, '4', '1', '1000'])));
  assert.equal(answers.filter((answer) => answer[0] === 0).length, 5);
  const check = await client.sendCommand(['HG.CHECK', 'default', 'ENTRIES', '1', 'user', key]);
  const allowed = Array.isArray(check) ? check[1] : check.allowed ?? check.get?.('allowed');
  assert.ok(allowed === 1 || allowed === true, JSON.stringify(check));
  const sum = () => client.sendCommand(['INCREX', `sum-${RESP}`, 'BYFLOAT', '0.5']);
  assert.deepEqual([await sum(), await sum()], RESP === 3 ? [[0.5, 0.5], [1, 0.5]] : [['0.5', '0.5'], ['1', '0.5']]);
  await client.close();
}
console.log('ok');
