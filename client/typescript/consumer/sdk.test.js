// Jest as it comes: it requires packages, and transforms none of them.
const {Posthorn} = require('posthorn');
const {Verifier} = require('posthorn/webhook');

test('the SDK loads', () => {
  expect(typeof new Posthorn({url: 'http://127.0.0.1:1', key: 'phk_x'}).emit).toBe('function');
  expect(() => new Verifier({secret: []})).toThrow('Give at least one secret');
});
