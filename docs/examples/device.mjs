// SPDX-License-Identifier: MIT
// A device that takes tasks of heartwheel-tasks: node device.mjs NAME [HOST [PORT]]. Needs mqtt (npm install mqtt).
import mqtt from 'mqtt';

const [name, host = '127.0.0.1', port = '1883'] = process.argv.slice(2);
const done = new Map(); // msg_id -> { exp, word, body }. A real device keeps this over a restart.
const client = mqtt.connect(`mqtt://${host}:${port}`, { clientId: name, clean: false });

// What the device is there for. Returns what it tells; throws what went wrong.
function carryOut(action, payload) {
	if (action === 'add')
		return { sum: payload.reduce((a, b) => a + b, 0) };
	throw new Error(`no action ${action}`);
}

function say(task, word, body) {
	done.set(task.msg_id, { exp: task.exp, word, body });
	client.publish(`nodes/${task.sender}/${word}/${name}`, JSON.stringify({ msg_id: task.msg_id, ...body }), { qos: 1 });
}

client.on('message', (_, payload) => {
	const task = JSON.parse(payload), now = Date.now() / 1000;
	for (const [id, { exp }] of done)
		if (exp < now)
			done.delete(id); // it may be forgotten: what comes after its exp is ignored
	if (now > task.exp)
		return;
	const before = done.get(task.msg_id);
	if (before) { // again: our answer was lost
		say(task, before.word, before.body);
		return;
	}
	say(task, 'ack', {});
	try {
		say(task, 'complete', { value: carryOut(task.action, task.payload) });
	} catch (error) {
		say(task, 'failed', { error: error.message });
	}
});
client.on('connect', () => client.subscribe(`nodes/${name}/pending`, { qos: 1 }, () => console.log('ready')));
