/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_PROJECT_FRAGMENT_H
#define LODGE_PROJECT_FRAGMENT_H

#include "project/project.h"

enum {
	FRAGMENT_BYTES_MAX = 64 << 20, /* of all files together, and of the JSON they come in */
	FRAGMENT_PATH_MAX = 1024, /* with its NUL */
};

/* Exactly one of files, map, snapshot and from_sandbox is set. */
struct fragment_opts {
	const char *id; /* NULL: generate one */
	const char *title; /* NULL: none */
	/* A JSON object, path -> text; "__BASE64__..." and "data:...;base64,..." are bytes. A path
	 * is relative, without "." and "..", and cannot be both a file and a directory. */
	const char *files;
	size_t files_len;
	struct json_t *map; /* the same as `files`, already parsed; borrowed */
	/* A snapshot of one of the user's own sessions. The caller keeps it, but cannot delete it
	 * while the fragment refers to it. */
	const char *snapshot;
	/* The regular files in the working directory of the user's working copy, without their
	 * modes. The working copy is resumed if it is hibernated. If the files exceed what a
	 * fragment can hold, the fragment refers to a snapshot of the whole sandbox instead. */
	bool from_sandbox;
};
struct fragment_add_result {
	struct store_fragment fragment;
	unsigned skipped; /* from_sandbox: links and names that are not UTF-8 */
};
/* Not allowed for VIEWER. */
int fragment_add(struct engine *e, const struct caller *caller, const char *user,
		 const char *project, const struct fragment_opts *opts,
		 struct fragment_add_result *ret, struct err *err);
/* Newest first. */
int fragment_list(struct engine *e, const struct caller *caller, const char *user,
		  const char *project, struct store_page page, struct store_fragment_list *ret,
		  struct err *err);
/* ret_files may be NULL; free it with store_file_list_fini(). */
int fragment_get(struct engine *e, const struct caller *caller, const char *user,
		 const char *project, const char *fragment, struct store_fragment *ret,
		 struct store_file_list *ret_files, struct err *err);
/* Needs the right to delete the project. Working copies created from the fragment stay. */
int fragment_remove(struct engine *e, const struct caller *caller, const char *user,
		    const char *project, const char *fragment, struct err *err);

/* Loads the fragment, which must belong to the project. */
int fragment_find(struct engine *e, const struct caller *caller, const char *project,
		  const char *fragment, struct store_fragment *ret, struct err *err);
int fragment_load(struct engine *e, const struct caller *caller, const char *fragment,
		  struct store_file_list *ret, struct err *err);

#endif
