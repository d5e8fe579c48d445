/* SPDX-License-Identifier: Apache-2.0 */
/* Other words for commands: those of older versions, of docker and of e2b. */
#ifndef LODGE_CLI_WORDS_H
#define LODGE_CLI_WORDS_H

/* A command line whose argv[0] is such a word, in the words of lodge: a new array that ends with
 * NULL, or argv itself. Updates *argc. NULL: no memory. */
char **words_translate(int *argc, char **argv);

/* What to do in place of a command that lodge does not have; NULL: the word is not known. */
const char *words_hint(const char *word);

#endif
