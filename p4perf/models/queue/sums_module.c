/* SPDX-License-Identifier: Apache-2.0 */
/* The Python side of sums.c: arrays come as contiguous buffers whose types and shapes p4perf/models/queue/direct.py
 * vouches for; sizes are checked here, so that no wrong call reads or writes beyond an array. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "sums.h"

static int64_t
size(const Py_buffer *b)
{
	return (int64_t)(b->len / (Py_ssize_t)sizeof(double));
}

static struct pmf
pmf(const Py_buffer *b)
{
	return (struct pmf){ b->buf, size(b) };
}

static PyObject *
finish(Py_buffer *buffers, int count, bool right, long long value)
{
	for (int i = 0; i < count; i++)
		PyBuffer_Release(&buffers[i]);
	if (!right) {
		PyErr_SetString(PyExc_ValueError, "the sizes of the arrays do not fit");
		return NULL;
	}
	return PyLong_FromLongLong(value);
}

static PyObject *
powers(PyObject *self, PyObject *arguments)
{
	Py_buffer b[2];
	long long length, used = 0;
	double negligible;
	(void)self;

	if (!PyArg_ParseTuple(arguments, "y*w*Ld", &b[0], &b[1], &length, &negligible))
		return NULL;
	bool right = length > 0 && size(&b[0]) > 0 && size(&b[1]) >= length && size(&b[1]) % length == 0;
	if (right) {
		Py_BEGIN_ALLOW_THREADS
		used = sums_powers(pmf(&b[0]), b[1].buf, size(&b[1]) / length, length, negligible);
		Py_END_ALLOW_THREADS
	}
	return finish(b, 2, right, used);
}

static PyObject *
mixture(PyObject *self, PyObject *arguments)
{
	Py_buffer b[4];
	long long width, used = 0;
	(void)self;

	if (!PyArg_ParseTuple(arguments, "y*Ly*w*w*", &b[0], &width, &b[1], &b[2], &b[3]))
		return NULL;
	bool right = width > 0 && size(&b[0]) >= width && size(&b[0]) % width == 0 && size(&b[1]) > 0;
	int64_t count = right ? size(&b[0]) / width : 0, longest = width + (count - 1) * (size(&b[1]) - 1);
	right = right && size(&b[2]) >= longest && size(&b[3]) >= longest;
	if (right) {
		Py_BEGIN_ALLOW_THREADS
		used = sums_mixture(b[0].buf, count, width, pmf(&b[1]), b[2].buf, b[3].buf);
		Py_END_ALLOW_THREADS
	}
	return finish(b, 4, right, used);
}

static PyObject *
admit(PyObject *self, PyObject *arguments)
{
	Py_buffer b[3];
	long long rows;
	(void)self;

	if (!PyArg_ParseTuple(arguments, "y*w*w*L", &b[0], &b[1], &b[2], &rows))
		return NULL;
	bool right = rows > 0 && size(&b[0]) > 0 && size(&b[1]) % rows == 0 && size(&b[2]) % rows == 0;
	if (right) {
		Py_BEGIN_ALLOW_THREADS
		sums_admit(pmf(&b[0]), b[1].buf, b[2].buf, rows, size(&b[1]) / rows, size(&b[2]) / rows);
		Py_END_ALLOW_THREADS
	}
	return finish(b, 3, right, 0);
}

static PyObject *
smear(PyObject *self, PyObject *arguments)
{
	Py_buffer b[3];
	long long width;
	(void)self;

	if (!PyArg_ParseTuple(arguments, "y*Ly*w*", &b[0], &width, &b[1], &b[2]))
		return NULL;
	bool right = width > 0 && size(&b[0]) % width == 0 && size(&b[1]) > 0;
	int64_t count = right ? size(&b[0]) / width : 0;
	right = right && size(&b[2]) >= count * (width + size(&b[1]) - 1);
	if (right) {
		Py_BEGIN_ALLOW_THREADS
		sums_smear(b[0].buf, count, width, pmf(&b[1]), b[2].buf);
		Py_END_ALLOW_THREADS
	}
	return finish(b, 3, right, 0);
}

/* Whether every entry lies within its cell, and rooms ascend. */
static bool
entries_fit(const struct changes *c, const Py_buffer *entries, int64_t count, int64_t out, int64_t length)
{
	const int64_t *rooms = entries[0].buf, *cells = entries[2].buf, *shifts = entries[3].buf;

	for (int64_t i = 0; i < count; i++) {
		int64_t depth = rooms[i] < c->depth ? rooms[i] : c->depth, wide = c->width;
		if (depth > 0 && depth - 1 + c->span > wide)
			wide = depth - 1 + c->span;
		if (rooms[i] < 0 || (i > 0 && rooms[i] < rooms[i - 1]) || cells[i] < 0 || shifts[i] < 0 ||
		    cells[i] >= out / length || shifts[i] > length - wide)
			return false;
	}
	return true;
}

static PyObject *
cumulate(PyObject *self, PyObject *arguments)
{
	Py_buffer b[8];
	long long span, length;
	(void)self;

	if (!PyArg_ParseTuple(arguments, "y*y*Lw*y*y*y*y*w*L", &b[0], &b[1], &span, &b[2], &b[3], &b[4], &b[5], &b[6],
			      &b[7], &length))
		return NULL;
	bool right = span > 0 && length > 0 && size(&b[0]) > 0 && size(&b[1]) % span == 0;
	struct changes c = { b[0].buf, b[1].buf, size(&b[0]), right ? size(&b[1]) / span : 0, span };
	int64_t count = size(&b[3]);
	right = right && size(&b[2]) >= c.width && (c.depth == 0 || size(&b[2]) >= c.depth - 1 + c.span) && size(&b[4]) == count &&
		size(&b[5]) == count && size(&b[6]) == count && entries_fit(&c, &b[3], count, size(&b[7]), length);
	if (right) {
		Py_BEGIN_ALLOW_THREADS
		sums_cumulate(&c, b[2].buf, b[3].buf, b[4].buf, b[5].buf, b[6].buf, count, b[7].buf, length);
		Py_END_ALLOW_THREADS
	}
	return finish(b, 8, right, 0);
}

static PyObject *
cross(PyObject *self, PyObject *arguments)
{
	Py_buffer b[3];
	long long width, used = 0;
	double tolerance;
	(void)self;

	if (!PyArg_ParseTuple(arguments, "w*Ldw*w*", &b[0], &width, &tolerance, &b[1], &b[2]))
		return NULL;
	bool right = width > 0 && size(&b[0]) >= width && size(&b[0]) % width == 0 && size(&b[2]) % width == 0;
	int64_t count = right ? size(&b[0]) / width : 0, most = right ? size(&b[2]) / width : 0;
	right = right && size(&b[1]) >= most * count;
	if (right) {
		Py_BEGIN_ALLOW_THREADS
		used = sums_cross(b[0].buf, count, width, tolerance, b[1].buf, b[2].buf, most);
		Py_END_ALLOW_THREADS
	}
	return finish(b, 3, right, used);
}

/* Whether rows and cells are there. */
static bool
cells_fit(const Py_buffer *b, long long width, int64_t count, long long span, long long offset, long long stride)
{
	const int64_t *which = b[1].buf, *cells = b[3].buf;
	int64_t rows = size(&b[0]) / width, held = size(&b[5]) / stride;

	if (size(&b[0]) % width != 0 || size(&b[2]) != count || size(&b[3]) != count || size(&b[4]) < 1 ||
	    offset < 0 || offset + span > stride)
		return false;
	for (int64_t i = 0; i < count; i++)
		if (which[i] < 0 || which[i] >= rows || cells[i] < 0 || cells[i] >= held)
			return false;
	return true;
}

static PyObject *
bands(PyObject *self, PyObject *arguments)
{
	Py_buffer b[6];
	long long width, down, span, offset, stride;
	(void)self;

	if (!PyArg_ParseTuple(arguments, "y*Ly*y*y*y*LLw*LL", &b[0], &width, &b[1], &b[2], &b[3], &b[4], &down, &span, &b[5],
			      &offset, &stride))
		return NULL;
	int64_t count = size(&b[1]);
	bool right = width > 0 && span > 0 && stride > 0 && cells_fit(b, width, count, span, offset, stride);
	if (right) {
		Py_BEGIN_ALLOW_THREADS
		sums_bands(b[0].buf, width, b[1].buf, b[2].buf, b[3].buf, count, b[4].buf, size(&b[4]) - 1, down, span,
			   (double *)b[5].buf + offset, stride);
		Py_END_ALLOW_THREADS
	}
	return finish(b, 6, right, 0);
}

static PyMethodDef methods[] = {
	{ "powers", powers, METH_VARARGS, "Convolutions of an array with itself; see p4perf.models.queue.direct." },
	{ "mixture", mixture, METH_VARARGS, "Rows by the power of a base; see p4perf.models.queue.direct." },
	{ "admit", admit, METH_VARARGS, "Packets of a batch, one after another; see p4perf.models.queue.direct." },
	{ "smear", smear, METH_VARARGS, "Each row convolved with a base; see p4perf.models.queue.direct." },
	{ "cumulate", cumulate, METH_VARARGS, "Weighted rows of changes; see p4perf.models.queue.direct." },
	{ "cross", cross, METH_VARARGS, "Few products that make up a matrix; see p4perf.models.queue.direct." },
	{ "bands", bands, METH_VARARGS, "Where cells lead to; see p4perf.models.queue.direct." },
	{ NULL, NULL, 0, NULL },
};

static struct PyModuleDef module = {
	.m_base = PyModuleDef_HEAD_INIT,
	.m_name = "p4perf.models.queue._sums",
	.m_doc = "Compiled sums over arrays of probabilities.",
	.m_size = 0,
	.m_methods = methods,
};

PyMODINIT_FUNC
PyInit__sums(void)
{
	return PyModule_Create(&module);
}
