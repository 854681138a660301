/* SPDX-License-Identifier: Apache-2.0 */
/* The Python side: arrays come as buffers whose types and values p4perf/models/queue/simulation.py vouches for. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "events.h"

static bool
from_buffer(struct sampler *s, const Py_buffer *b, long long first)
{
	int64_t count = (int64_t)(b->len / (Py_ssize_t)sizeof(double));
	return count > 0 && sampler_init(s, b->buf, count, first);
}

static PyObject *
simulate(PyObject *self, PyObject *arguments)
{
	Py_buffer arrival, service, moderation, overhead, trace, histogram;
	long long first[4], limit, ring, burst, empty_poll, packets, warmup;
	unsigned long long seed;
	int polled;
	struct system q = { .batch_room = 1024 };
	struct counts c = { 0 };
	PyObject *result = NULL;
	(void)self;

	if (!PyArg_ParseTuple(arguments, "py*Ly*Ly*Ly*Ly*LLLLLLKw*", &polled, &arrival, &first[0], &service, &first[1],
			      &moderation, &first[2], &overhead, &first[3], &trace, &limit, &ring, &burst, &empty_poll,
			      &packets, &warmup, &seed, &histogram))
		return NULL;
	q.histogram = histogram.buf;
	q.histogram_length = (int64_t)(histogram.len / (Py_ssize_t)sizeof(int64_t));
	q.trace_length = (int64_t)(trace.len / (Py_ssize_t)sizeof(int64_t));
	q.trace = q.trace_length > 0 ? trace.buf : NULL;
	q.limit = limit;
	q.ring = ring;
	q.burst = burst;
	q.empty_poll = empty_poll;
	generator_seed(&q.random, seed);
	if (q.histogram_length < 1 || ring < 1 || burst < 1 || empty_poll < 1) {
		PyErr_SetString(PyExc_ValueError, "sizes of a simulation are one at least");
	} else if (!from_buffer(&q.arrival, &arrival, first[0]) || !from_buffer(&q.service, &service, first[1]) ||
		   !from_buffer(&q.moderation, &moderation, first[2]) || !from_buffer(&q.overhead, &overhead, first[3])) {
		PyErr_NoMemory();
	} else {
		if (q.trace != NULL)
			q.at = (int64_t)(seed % (unsigned long long)q.trace_length);
		Py_BEGIN_ALLOW_THREADS
		(polled ? simulate_polled : simulate_moderated)(&q, packets, warmup, &c);
		Py_END_ALLOW_THREADS
		if (c.failed)
			PyErr_NoMemory();
		else
			result = Py_BuildValue("(LLLLLddd)", (long long)c.offered, (long long)c.accepted, (long long)c.lost,
					       (long long)c.batches, (long long)c.delay_max, c.delay_sum, c.idle, c.time);
	}
	sampler_free(&q.arrival);
	sampler_free(&q.service);
	sampler_free(&q.moderation);
	sampler_free(&q.overhead);
	PyBuffer_Release(&arrival);
	PyBuffer_Release(&service);
	PyBuffer_Release(&moderation);
	PyBuffer_Release(&overhead);
	PyBuffer_Release(&trace);
	PyBuffer_Release(&histogram);
	return result;
}

static PyMethodDef methods[] = {
	{ "simulate", simulate, METH_VARARGS, "One replication; see p4perf.models.queue.simulation." },
	{ NULL, NULL, 0, NULL },
};

static struct PyModuleDef module = {
	.m_base = PyModuleDef_HEAD_INIT,
	.m_name = "p4perf.models.queue._events",
	.m_doc = "Compiled discrete-event simulation of queues.",
	.m_size = 0,
	.m_methods = methods,
};

PyMODINIT_FUNC
PyInit__events(void)
{
	return PyModule_Create(&module);
}
