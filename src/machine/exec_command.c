/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/exec_command.h"

#include <string.h>

#include "store/record.h"

void exec_command_init(struct exec_command *c, bool is_text)
{
	*c = (struct exec_command){ .left = EXEC_COMMAND_KEPT, .is_text = is_text };
	json_out_init(&c->json, STORE_COMMAND_MAX);
	if (!is_text)
		json_out_array(&c->json, NULL);
}

/* Never cuts inside a character of UTF-8. */
static size_t find_cut(const char *word, size_t max)
{
	size_t n = max;

	while (n > 0 && max - n < 3 && ((unsigned char)word[n] & 0xc0) == 0x80)
		n--;
	return n;
}

static void add_cut(struct exec_command *c, const char *word)
{
	size_t n = find_cut(word, c->left);
	char kept[EXEC_COMMAND_KEPT + sizeof(EXEC_COMMAND_CUT)];

	memcpy(kept, word, n);
	memcpy(kept + n, EXEC_COMMAND_CUT, sizeof(EXEC_COMMAND_CUT));
	json_out_str(&c->json, NULL, kept);
	c->is_cut = true;
}

void exec_command_add(struct exec_command *c, const char *word)
{
	size_t len;

	if (c->is_cut)
		return;
	len = strnlen(word, c->left + 1);
	if (len > c->left || (!c->is_text && len == c->left)) {
		add_cut(c, word);
		return;
	}
	json_out_str(&c->json, NULL, word);
	c->left -= c->is_text ? len : len + 1;
}

char *exec_command_take(struct exec_command *c)
{
	if (!c->is_text)
		json_out_end(&c->json);
	return json_out_take(&c->json, NULL);
}
