/* SPDX-License-Identifier: Apache-2.0 */
/* A row of bytes and what a reader must see in them, however they are split. */
#ifndef LODGE_TESTS_HTTP1_SPLITS_H
#define LODGE_TESTS_HTTP1_SPLITS_H

#include "http1_reader.h"

struct row {
	const char *bytes;
	size_t len;
	const char *log;
};
#define ROW(bytes, log)                                                                            \
	{                                                                                          \
		bytes, sizeof(bytes) - 1, log                                                      \
	}

/* Pieces of `piece` bytes from `first` on; the first piece has `first`. */
static inline bool splits_give(const struct reader *like, const struct row *row, size_t first,
			       size_t piece)
{
	struct reader r;
	bool same;

	reader_init(&r, like->responses, like->to);
	r.limits = like->limits;
	reader_feed(&r, row->bytes, first);
	for (size_t at = first; at < row->len; at += piece)
		reader_feed(&r, row->bytes + at, row->len - at < piece ? row->len - at : piece);
	same = strcmp(reader_finish(&r), row->log) == 0;
	if (!same)
		printf("# '%s'\n# first %zu, then %zu: got\n# %swant\n# %s\n", row->bytes, first,
		       piece, r.log, row->log);
	reader_fini(&r);
	return same;
}

/* Whole, byte by byte, and split in two at every byte. */
static inline bool splits_agree(const struct reader *like, const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!splits_give(like, &rows[i], 0, 1))
			return false;
		for (size_t at = 0; at <= rows[i].len; at++) {
			if (!splits_give(like, &rows[i], at, rows[i].len + 1))
				return false;
		}
	}
	return true;
}

#endif
