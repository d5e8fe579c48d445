/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the files of a template: fills a sandbox, which is sealed afterwards. That sandbox
 * unpacks the archives; another one decompresses them. */
#ifndef LODGE_SANDBOX_TEMPLATE_TEMPLATE_FILL_H
#define LODGE_SANDBOX_TEMPLATE_TEMPLATE_FILL_H

#include "sandbox/sandbox.h"
#include "sandbox/template/template.h"
#include "sandbox/template/archive_unpack.h"

/* The sandbox to fill, with capacity for `bytes`; 0: 256 GiB. */
struct sandbox_spec template_fill_spec(uint64_t bytes);
/* The sandbox that decompresses, with capacity for `bytes` of files; 0: the default. */
struct sandbox_spec template_fill_host_spec(uint64_t bytes);
/* Flags of the file job that unpacks a root file system. features: enum keeper_feature. */
unsigned template_fill_flags(unsigned features);

/* Waits until the files of the sandbox are on disk, those of the layers below it too: call it
 * before they become a template. */
int template_fill_sync(struct sandbox *sb, struct err *err);
/* Refuses files that no command can run in: none at all, or a root file system without a shell.
 * Images may have none, as those of a single static program. */
int template_fill_check(struct sandbox *sb, bool is_image, struct err *err);
/* Replaces a user name by "uid:gid" from the template's /etc/passwd, because a rootless sandbox has
 * a single user whose id must be known before the sandbox is created. */
int template_fill_user(struct sandbox *sb, struct template *t, struct err *err);

#endif
