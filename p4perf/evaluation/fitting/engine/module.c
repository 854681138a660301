/* SPDX-License-Identifier: Apache-2.0 */
/* The Python side: arrays come as buffers whose types and sizes p4perf/evaluation/fitting/engine/__init__.py vouches for. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <math.h>
#include <stdlib.h>

#include "engine.h"

/* The GIL is not held while threads work; it is taken to look for signals and to report. */
static bool
report(void *context, double share)
{
	PyGILState_STATE state = PyGILState_Ensure();
	PyObject *callback = context;
	bool go_on = PyErr_CheckSignals() == 0;

	if (go_on && callback != Py_None) {
		PyObject *result = PyObject_CallFunction(callback, "d", share);
		go_on = result != NULL;
		Py_XDECREF(result);
	}
	PyGILState_Release(state);
	return go_on;
}

/* Rows of (kind, columns, inverse, bulges, least samples, rank), ascending in rank. */
static int
read_templates(const Py_buffer *buffer, struct template *templates)
{
	const double *row = buffer->buf;
	int count = (int)(buffer->len / (6 * (Py_ssize_t)sizeof(double)));

	if (count < 1 || count > MAX_TEMPLATES)
		return -1;
	for (int k = 0; k < count; k++, row += 6) {
		struct template *t = &templates[k];
		if (!(row[0] >= POLYNOMIAL && row[0] <= POWER))
			return -1;
		t->kind = (enum kind)row[0];
		t->columns = (int)row[1];
		t->inverse = row[2] != 0.0;
		t->bulges = row[3] != 0.0;
		t->least = (int)row[4];
		t->rank = row[5];
		t->parameters = t->columns + (t->kind >= SHIFTED_LOGARITHM ? 1 : 0);
		if (t->columns < 1 || t->columns > MAX_COLUMNS || find_pass(t, PLAIN) == NULL)
			return -1;
	}
	return count;
}

/* Series from x (n) and y (rows x n); the arrays behind them are in one block. */
static struct series *
make_rows(const double *x, const double *y, int64_t rows, int n, double floor, double **block)
{
	struct series *series = calloc((size_t)rows, sizeof(*series));
	*block = malloc(((size_t)n + 2 * (size_t)rows * (size_t)n) * sizeof(double));
	if (series == NULL || *block == NULL) {
		free(series);
		free(*block);
		return NULL;
	}
	double *log_x = *block, *out = *block + n;
	for (int i = 0; i < n; i++)
		log_x[i] = x[i] > 0.0 ? log(x[i]) : NAN;
	for (int64_t r = 0; r < rows; r++, y += n) {
		double scale = 0.0, *values = out, *inverse = out + n;
		for (int i = 0; i < n; i++)
			scale = fmax(scale, fabs(y[i]));
		scale = scale > 0.0 ? scale : 1.0;
		for (int i = 0; i < n; i++) {
			values[i] = y[i] / scale;
			inverse[i] = values[i] != 0.0 ? fmin(1.0 / fabs(values[i]), 1e300) : 1e300;
		}
		series[r] = (struct series){
			.n = n, .x = x, .y = values, .log_x = log_x, .inverse_y = inverse, .floor = 2.0 * (floor / scale),
			.scale = scale,
		};
		out += 2 * n;
	}
	return series;
}

static PyObject *
run(PyObject *self, PyObject *arguments)
{
	Py_buffer x, y, templates, runs, ends, error, choice = { 0 }, parameters = { 0 }, origins = { 0 };
	struct template table[MAX_TEMPLATES];
	struct task task = { 0 };
	PyObject *progress, *result = NULL;
	double *block = NULL;
	int metric, threads, robust, choosing;
	(void)self;

	if (!PyArg_ParseTuple(arguments, "y*y*y*y*y*piddddidpiOw*w*w*w*", &x, &y, &templates, &runs, &ends, &choosing, &metric,
			      &task.options.kappa, &task.options.kappa_rel, &task.options.kappa_points, &task.options.bulge,
			      &task.options.samples_per_parameter, &task.options.floor, &robust, &threads, &progress, &error, &choice, &parameters,
			      &origins))
		return NULL;
	int n = (int)(x.len / (Py_ssize_t)sizeof(double));
	int64_t rows = n > 0 ? y.len / x.len : 0;
	task.options.metric = (enum metric)metric;
	task.options.robust = robust != 0;
	task.templates = table;
	task.templates_count = read_templates(&templates, table);
	task.runs = runs.buf;
	task.runs_count = runs.len / (Py_ssize_t)sizeof(struct run);
	task.ends = ends.buf;
	task.error = error.buf;
	task.choice = choosing ? choice.buf : NULL;
	task.parameters = parameters.buf;
	task.origins = origins.buf;
	if (task.templates_count < 0 || rows < 1) {
		PyErr_SetString(PyExc_ValueError, "unknown templates, or no samples");
		goto done;
	}
	struct series *series = make_rows(x.buf, y.buf, rows, n, task.options.floor, &block);
	task.rows = series;
	if (series == NULL || !rates_init(&task.rates, series, table, task.templates_count)) {
		PyErr_NoMemory();
	} else {
		enum outcome outcome;
		Py_BEGIN_ALLOW_THREADS
		outcome = carry_out(&task, threads, report, progress);
		Py_END_ALLOW_THREADS
		if (outcome == DONE)
			result = Py_NewRef(Py_None);
		else if (outcome == NO_THREADS)
			PyErr_SetString(PyExc_OSError, "no thread could be started");
	}
	free(series);
	free(block);
	free(task.rates.ratio);
done:
	PyBuffer_Release(&x);
	PyBuffer_Release(&y);
	PyBuffer_Release(&templates);
	PyBuffer_Release(&runs);
	PyBuffer_Release(&ends);
	PyBuffer_Release(&error);
	PyBuffer_Release(&choice);
	PyBuffer_Release(&parameters);
	PyBuffer_Release(&origins);
	return result;
}

static PyMethodDef methods[] = {
	{ "run", run, METH_VARARGS, "Fit templates to segments of series; see p4perf.evaluation.fitting.engine." },
	{ NULL, NULL, 0, NULL },
};

static struct PyModuleDef module = {
	.m_base = PyModuleDef_HEAD_INIT,
	.m_name = "p4perf.evaluation.fitting.engine._kernel",
	.m_doc = "Compiled part of the fit engine.",
	.m_size = 0,
	.m_methods = methods,
};

PyMODINIT_FUNC
PyInit__kernel(void)
{
	return PyModule_Create(&module);
}
