/* SPDX-License-Identifier: MIT */
/* Renders a message in the form that a receiver requires. Pure. Internal to src/alert/send. */
#ifndef HW_ALERT_SEND_FORM_H
#define HW_ALERT_SEND_FORM_H

#include "alert/send/message.h"
#include "alert/send/secret.h"

struct evbuffer;
struct hw_note;

/* Each returns a note (note.h) that the caller frees with hw_note_free(), or NULL if there is no memory. */

/* Renders a message for exec, webhook, ntfy, slack and smtp, by the receiver's template. `json`: the JSON text of the
 * message. */
struct hw_note *hw_form_template(const struct hw_receiver_settings *c, const struct hw_send_message *m,
                                 const char *json, size_t len);
/* Makes an event of PagerDuty's Events API v2 for the first news of the message. `resolve`: the event ends a test. */
struct hw_note *hw_form_pagerduty(const struct hw_receiver_secrets *s, const struct hw_send_message *m, bool resolve);

/* hw_form_alert_labels(): the labels of an alert for Alertmanager's API v2. Labels identify the alert, so they stay
 * the same as in the first message. Both functions return a JSON object on the heap, or NULL if there is no memory. */
char *hw_form_alert_labels(const struct hw_send_incident *i, bool test);
char *hw_form_alert_notes(const struct hw_send_incident *i);
/* Appends an alert that ends at `ends_ms` to the buffer: `,{..}`, or without the comma if the buffer is empty.
 * Returns 0 or -ENOMEM. */
int hw_form_alert(struct evbuffer *b, const char *labels, const char *notes, int64_t since_ms, int64_t ends_ms);
/* Returns the alerts in the buffer as a JSON array, in a note that can be sent (note.h). Changes the buffer. NULL
 * if there is no memory. */
struct hw_note *hw_form_alerts(struct evbuffer *b);

#define HW_FORM_TIME 32
/* RFC 3339, UTC. Returns `buf`. */
const char *hw_form_time(int64_t wall_ms, char buf[HW_FORM_TIME]);

#endif
