// ioredis, unmodified: connects, sends CL.THROTTLE, pipelines, and checks by rule.
import assert from 'node:assert/strict';
import Redis from 'ioredis';

const [port, username, password] = process.argv.slice(2);
const login = username ? {username, password, connectionName: 'ours', db: 0} : {};
const redis = new Redis(Number(port), '127.0.0.1', {maxRetriesPerRequest: 1, ...login});
assert.deepEqual(await redis.call('CL.THROTTLE', 'user123', '15', '30', '60'), [0, 16, 15, -1, 2]);
assert.equal(await redis.ping(), 'PONG');

const pipeline = redis.pipeline();
for (let i = 0; i < 50; ++i) pipeline.call('CL.THROTTLE', 'piped', '9', '1', '1000');
const answers = await pipeline.exec();
assert.equal(answers.filter(([error, answer]) => error === null && answer[0] === 0).length, 10);

// A script is sent as EVALSHA first, and as EVAL if the server does not know it.
redis.defineCommand('throttle', {
  numberOfKeys: 1,
  lua: "return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3])",
});
for (const remaining of [4, 3]) assert.equal((await redis.throttle('wrapped', 4, 1, 1000))[2], remaining);
const executed = await redis.multi().call('CL.THROTTLE', 'wrapped', '4', '1', '1000').ping().exec();
assert.deepEqual(executed, [[null, [0, 5, 2, -1, 3000]], [null, 'PONG']]);

// ioredis has a function for INCREX.
for (const applied of [1, 1, 0]) {
  assert.equal((await redis.increx('window', 'UBOUND', 2, 'EX', 60, 'ENX'))[1], applied);
}
await redis.increx('sum', 'BYFLOAT', '0.1');
assert.deepEqual((await redis.increx('sum', 'BYFLOAT', '0.2')).map(String), ['0.3', '0.2']);

const flat = await redis.call('HG.CHECK', 'default', 'ENTRIES', '1', 'user', 'ann');
assert.deepEqual(flat.slice(0, 2), ['allowed', 1]);
await assert.rejects(redis.call('CL.THROTTLE', 'k', '1', '1'), /Usage: cl\.throttle/);
await redis.quit();
console.log('ok');
