/* SPDX-License-Identifier: MIT */
/* The JSON text of a message. The store keeps this text, and each receiver gets the message in the form of the
 * receiver's type. */
#ifndef HW_ALERT_MESSAGE_H
#define HW_ALERT_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "incident/incidents.h"

struct hw_alert_app;
struct hw_json;

struct hw_alert_writer {
	struct hw_incidents *engine;
	const char *node;
};

struct hw_alert_writer hw_alert_writer_of(const struct hw_alert_app *a);

/* Returns the JSON text of a message on the heap, on one line; NULL if there is no memory. It begins with
 * {"message":"NAME-NUMBER", and has at most HW_SEND_MESSAGE_MAX bytes. News that do not fit are counted in `more`. */
char *hw_alert_message_text(const struct hw_alert_writer *w, const struct hw_incident_message *m);
/* Returns the object of an incident, as in a message, on the heap. */
char *hw_alert_incident_text(const struct hw_alert_writer *w, const struct hw_incident_view *v);
/* Writes the members of an incident into an open object. `max`: the most ids of devices. */
void hw_alert_incident_write(const struct hw_alert_writer *w, struct hw_json *j, const struct hw_incident_view *v,
                             size_t max);

/* Reads the number of a message of this receiver, and the id of its first incident ("": none). Returns 0 or -EINVAL. */
int hw_alert_message_number(const char *text, const char *receiver, uint64_t *number, char id[HW_INCIDENT_ID + 1]);

#endif
