/* SPDX-License-Identifier: Apache-2.0 */
#include "tiny.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"

#define BASE 0x400000ull

/* write(1, "hi\n", 3); exit(0) */
static const unsigned char code[] = {
	0xb8, 1,    0,	  0,  0, /* mov $1, %eax */
	0xbf, 1,    0,	  0,  0, /* mov $1, %edi */
	0x48, 0x8d, 0x35, 16, 0, 0, 0, /* lea 16(%rip), %rsi */
	0xba, 3,    0,	  0,  0, /* mov $3, %edx */
	0x0f, 0x05, /* syscall */
	0xb8, 60,   0,	  0,  0, /* mov $60, %eax */
	0x31, 0xff, /* xor %edi, %edi */
	0x0f, 0x05, /* syscall */
	'h',  'i',  '\n',
};

struct image {
	Elf64_Ehdr head;
	Elf64_Phdr load;
	unsigned char code[sizeof(code)];
};

int tiny_write(const char *path, struct err *err)
{
	struct image image = {
		.head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT },
			  .e_type = ET_EXEC,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_entry = BASE + offsetof(struct image, code),
			  .e_phoff = offsetof(struct image, load),
			  .e_ehsize = sizeof(Elf64_Ehdr),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 1 },
		.load = { .p_type = PT_LOAD,
			  .p_flags = PF_R | PF_X,
			  .p_vaddr = BASE,
			  .p_filesz = sizeof(image),
			  .p_memsz = sizeof(image),
			  .p_align = 0x1000 },
	};
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	memcpy(image.code, code, sizeof(code));
	if (fd < 0 || write(fd, &image, sizeof(image)) != sizeof(image))
		return err_sys(err, errno, "%s", path);
	return 0;
}
