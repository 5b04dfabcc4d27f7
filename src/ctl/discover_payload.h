/* SPDX-License-Identifier: MIT */
/* Extracts from a payload what heartwheelctl discover needs: words such as online and offline, members of JSON
 * objects that monitor.conf can name, and messages of monitors. Pure. */
#ifndef HW_CTL_DISCOVER_PAYLOAD_H
#define HW_CTL_DISCOVER_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sets of words. Pair k is a word for online (bit 2k) and a word for offline (bit 2k + 1). */
#define HW_WORD_OTHER (UINT32_C(1) << 31) /* any other payload */
#define HW_WORD_PAIRS 14

/* Whether the text is in the list, which ends with NULL. Case is ignored. */
bool hw_word_is_one_of(const char *text, size_t len, const char *const *list);
/* Returns the bit of the word that the payload is, or HW_WORD_OTHER. Returns 0 for an empty payload. */
uint32_t hw_word_of(const char *payload, size_t len);
/* Returns the index of the pair to which all words of the set belong; -1: there is no such pair, or the set is empty.
 */
int hw_word_pair(uint32_t words);
/* The word of a pair that means offline. */
const char *hw_word_offline(int pair);
/* Whether the words of this pair mean a connection only on a topic with a name such as `lwt`. For example, ON and OFF
 * are also the states of a switch. */
bool hw_word_needs_hint(int pair);
/* Whether the last level of a topic is such a name. */
bool hw_word_is_hint(const char *level, size_t len);

enum hw_discover_field {
	HW_FOUND_BATTERY,
	HW_FOUND_RSSI,
	HW_FOUND_IP,
	HW_FOUND_VERSION,
	HW_FOUND_UPTIME,
	HW_FOUND_FIELDS
};
extern const char *const hw_discover_field_names[HW_FOUND_FIELDS];

#define HW_PATH_TEXT 64

/* The form of a payload. */
#define HW_SHAPE_EMPTY  1
#define HW_SHAPE_NUMBER 2
#define HW_SHAPE_TEXT   3 /* greater: a JSON object; the number is a hash of its members' names */

struct hw_payload_seen {
	uint64_t shape;
	bool by_monitor;    /* has a string `by` and a number `seq` */
	const char *member; /* static: a member whose value is in `words`; NULL: none */
	uint32_t words;     /* the value of `member` */
	bool own_timeout;   /* has a number `timeout`, which heartwheeld would use as the device's own timeout */
	char path[HW_FOUND_FIELDS][HW_PATH_TEXT]; /* where a field is; "": nowhere */
};

/* Whether a payload may be a monitor's message. Cheap. */
bool hw_payload_may_be_monitor(const char *payload, size_t len);
/* Reads a payload. A payload of more than 64 KiB counts as text. */
void hw_payload_see(const char *payload, size_t len, struct hw_payload_seen *p);

#endif
