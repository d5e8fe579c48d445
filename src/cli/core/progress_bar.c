/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/progress_bar.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/core/human.h"
#include "cli/core/terminal.h"

enum { EVERY_MS = 100, BAR = 24, SIDE = 48 };

void progress_bar_begin(struct progress *p, const char *what, int64_t total, bool quiet)
{
	*p = (struct progress){ .what = what, .total = total, .began_ms = clock_wall_ms() };
	p->shown = !quiet && isatty(STDERR_FILENO);
}

static void draw_bar(const struct progress *p)
{
	double part = p->total > 0 ? (double)p->bytes / (double)p->total : 1;
	int full;

	if (part > 1)
		part = 1;
	full = (int)(part * BAR);
	fprintf(stderr, " [%.*s%*s] %3d%%", full, "========================", BAR - full, "",
		(int)(part * 100));
}

static void draw(struct progress *p)
{
	int64_t ms = clock_wall_ms() - p->began_ms;
	char name[256], bytes[HUMAN_TEXT], rate[HUMAN_TEXT];
	uint32_t rows, cols;
	size_t width;

	terminal_size(&rows, &cols);
	width = cols > SIDE + BAR ? cols - SIDE : BAR;
	human_clean(p->what, name, sizeof(name));
	fprintf(stderr, "\r%.*s", (int)human_fit(name, width), name);
	if (p->total >= 0)
		draw_bar(p);
	fprintf(stderr, " %s %s/s\033[K", human_bytes(p->bytes, bytes),
		human_bytes(p->bytes * 1000 / (uint64_t)(ms > 0 ? ms : 1), rate));
	fflush(stderr);
	p->drawn_ms = clock_wall_ms();
}

void progress_bar_at(void *arg, uint64_t bytes)
{
	struct progress *p = arg;

	p->bytes = bytes;
	if (p->shown && clock_wall_ms() - p->drawn_ms >= EVERY_MS)
		draw(p);
}

void progress_bar_end(struct progress *p)
{
	if (!p->shown)
		return;
	draw(p);
	fputc('\n', stderr);
	p->shown = false;
}
