/* SPDX-License-Identifier: Apache-2.0 */
/* Archives written by base/pax, read by the reader of lodge-init. */
#include "base/pax.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/auto.h"
#include "init/files/tar_head.h"
#include "tap.h"

static struct pax out;
static struct tar_source in;

static bool start(void)
{
	static char extra[PAX_EXTRA_MAX + 1];

	memset(&out, 0, sizeof(out));
	out.out.fd = memfd_create("archive", MFD_CLOEXEC);
	in = (struct tar_source){ .fd = out.out.fd, .extra = extra };
	return out.out.fd >= 0;
}

static bool read_back(void)
{
	return pax_end(&out) == 0 && out.total % PAX_BLOCK == 0 &&
	       lseek(out.out.fd, 0, SEEK_END) == (off_t)out.total &&
	       lseek(out.out.fd, 0, SEEK_SET) == 0;
}

static int put(const char *path, const char *link, char type, const char *content,
	       const struct stat *st)
{
	size_t len = strlen(content);
	int r = pax_entry(&out, &(struct pax_entry){ path, link, type, len, st });

	if (r == 0)
		r = pax_bytes(&out, content, len);
	return r < 0 ? r : pax_pad(&out, len);
}

static void entries_are_read_back_unchanged(void)
{
	static const struct stat st = { .st_mode = S_IFREG | 04751,
					.st_uid = 1000,
					.st_gid = 010000000,
					.st_mtim = { 1700000000, 123456789 } };
	static struct tar_entry e;
	char long_name[300], buf[16];
	struct err err;

	memset(long_name, 'n', sizeof(long_name) - 1);
	long_name[99] = '/';
	long_name[sizeof(long_name) - 1] = '\0';
	CHECK(start());
	CHECK(!put("plain", "", '0', "hello", &st));
	CHECK(!put(long_name, "", '0', "", &st));
	CHECK(!put("gr\xc3\xbc\xc3\x9f", long_name, '2', "", &st));
	CHECK(read_back());
	CHECK(tar_next(&in, &e, &err) == 1);
	CHECK_STR(e.path, "plain");
	CHECK(e.type == '0' && e.mode == 04751 && e.uid == 1000 && e.gid == 010000000);
	CHECK(e.mtime.tv_sec == 1700000000 && e.mtime.tv_nsec == 123456789 && e.size == 5);
	CHECK(tar_head_read(&in, buf, sizeof(buf), &err) == 5 && !memcmp(buf, "hello", 5));
	CHECK(tar_next(&in, &e, &err) == 1 && e.type == '0');
	CHECK_STR(e.path, long_name);
	CHECK(tar_next(&in, &e, &err) == 1 && e.type == '2');
	CHECK_STR(e.path, "gr\xc3\xbc\xc3\x9f");
	CHECK_STR(e.link, long_name);
	CHECK(tar_next(&in, &e, &err) == 0);
	close(out.out.fd);
}

static void records_count_their_own_length(void)
{
	static char value[1200];

	CHECK(start());
	memset(value, 'v', sizeof(value));
	for (size_t len = 0; len < sizeof(value); len++) {
		struct tar_record r;
		size_t at = 0;

		out.extra_len = 0;
		CHECK(!pax_record(&out, "key", value, len));
		CHECK(tar_record_next(out.extra, out.extra_len, &at, &r) && at == out.extra_len);
		CHECK(r.key_len == 3 && r.value_len == len);
	}
	close(out.out.fd);
}

static void too_many_records_are_refused(void)
{
	static char value[60000];
	int r = 0;

	CHECK(start());
	for (int i = 0; i < 5 && r == 0; i++)
		r = pax_record(&out, "key", value, sizeof(value));
	CHECK(r == -E2BIG && out.extra_len <= PAX_EXTRA_MAX);
	close(out.out.fd);
}

static void large_content_and_holes_fill_whole_blocks(void)
{
	enum { SIZE = 300001 };
	static const struct stat st = { .st_mode = 0644 };
	static struct tar_entry e;
	auto_free char *bytes = malloc(SIZE), *got = malloc(SIZE);
	struct err err;

	CHECK(start() && bytes && got);
	memset(bytes, 'b', SIZE);
	CHECK(!pax_entry(&out, &(struct pax_entry){ "big", "", '0', 2 * SIZE, &st }));
	CHECK(!pax_bytes(&out, bytes, SIZE) && !pax_zeros(&out, SIZE) && !pax_pad(&out, 2 * SIZE));
	CHECK(read_back());
	CHECK(tar_next(&in, &e, &err) == 1 && e.size == 2 * SIZE);
	CHECK(tar_head_read(&in, got, SIZE, &err) == SIZE && !memcmp(got, bytes, SIZE));
	memset(bytes, 0, SIZE);
	CHECK(tar_head_read(&in, got, SIZE, &err) == SIZE && !memcmp(got, bytes, SIZE));
	CHECK(tar_next(&in, &e, &err) == 0);
	close(out.out.fd);
}

int main(void)
{
	RUN(entries_are_read_back_unchanged);
	RUN(records_count_their_own_length);
	RUN(too_many_records_are_refused);
	RUN(large_content_and_holes_fill_whole_blocks);
	return tap_done();
}
