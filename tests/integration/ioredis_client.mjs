// ioredis, unmodified: connects, sends CL.THROTTLE, pipelines, and checks by rule.
import assert from 'node:assert/strict';
import Redis from 'ioredis';

const redis = new Redis(Number(process.argv[2]), '127.0.0.1', {maxRetriesPerRequest: 1});
assert.deepEqual(await redis.call('CL.THROTTLE', 'user123', '15', '30', '60'), [0, 16, 15, -1, 2]);
assert.equal(await redis.ping(), 'PONG');

const pipeline = redis.pipeline();
for (let i = 0; i < 50; ++i) pipeline.call('CL.THROTTLE', 'piped', '9', '1', '1000');
const answers = await pipeline.exec();
assert.equal(answers.filter(([error, answer]) => error === null && answer[0] === 0).length, 10);

const flat = await redis.call('HG.CHECK', 'default', 'ENTRIES', '1', 'user', 'ann');
assert.deepEqual(flat.slice(0, 2), ['allowed', 1]);
await assert.rejects(redis.call('CL.THROTTLE', 'k', '1', '1'), /Usage: cl\.throttle/);
await redis.quit();
console.log('ok');
