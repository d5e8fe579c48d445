/* SPDX-License-Identifier: Apache-2.0 */
/* A form: any bytes. Split anywhere, it gives the same result, and not more than its content; names
 * have no NUL. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/core/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

struct seen {
	bool open;
	unsigned parts;
	size_t bytes;
	uint64_t sum; /* of all callbacks, in order */
};

static void add(struct seen *s, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		s->sum = (s->sum ^ (unsigned char)bytes[i]) * 1099511628211u;
}

static int begin(void *arg, const char *name, const char *filename, struct err *err)
{
	struct seen *s = arg;

	(void)err;
	must(!s->open && strlen(name) < 64);
	must(!filename || strlen(filename) < MULTIPART_HEAD);
	s->open = true;
	s->parts++;
	add(s, name, strlen(name) + 1);
	if (filename)
		add(s, filename, strlen(filename) + 1);
	return 0;
}

static int more(void *arg, const char *bytes, size_t len, struct err *err)
{
	struct seen *s = arg;

	(void)err;
	must(s->open && len);
	s->bytes += len;
	add(s, bytes, len);
	return 0;
}

static int end(void *arg, struct err *err)
{
	struct seen *s = arg;

	(void)err;
	must(s->open);
	s->open = false;
	add(s, "|", 1);
	return 0;
}

static bool parse(const uint8_t *data, size_t size, size_t cut, struct seen *s)
{
	static const struct multipart_ops ops = { begin, more, end };
	static struct multipart m;
	struct err err;

	*s = (struct seen){ 0 };
	must(multipart_init(&m, "multipart/form-data; boundary=b", &ops, s, &err) == 0);
	return multipart_feed(&m, (const char *)data, cut, &err) == 0 &&
	       multipart_feed(&m, (const char *)data + cut, size - cut, &err) == 0 &&
	       multipart_finish(&m, &err) == 0;
}

static void try_type(const uint8_t *data, size_t size)
{
	static const struct multipart_ops ops = { begin, more, end };
	static struct multipart m;
	char *type = calloc(1, size + 32);
	struct err err;

	must(type != NULL);
	strcpy(type, "multipart/form-data;");
	if (size)
		memcpy(type + strlen(type), data, size);
	if (multipart_init(&m, type, &ops, NULL, &err) == 0)
		must(m.len > 4 && m.len <= MULTIPART_BOUNDARY + 4);
	free(type);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t cut = size ? data[size / 2] % (size + 1) : 0;
	struct seen whole, cut_up;
	bool good = parse(data, size, size, &whole);

	must(parse(data, size, cut, &cut_up) == good);
	must(whole.sum == cut_up.sum && whole.parts == cut_up.parts);
	must(whole.bytes <= size && whole.parts <= MULTIPART_PARTS);
	must(!good || !whole.open);
	try_type(data, size);
	return 0;
}
